// What the bindings share: typed arrays, the release of the GIL, and the objects that Python holds.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "rows/problem.hpp"
#include "system/parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace adasdca;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Grid = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <class T>
std::span<const T> view(const Vector<T>& x) {
    return {x.data(), x.size()};
}

inline double* pointer(const std::optional<Output>& x, std::int64_t size) {
    if (x && static_cast<std::int64_t>(x->size()) != size)
        throw std::invalid_argument("an output array has the wrong length");
    return x ? x->data() : nullptr;
}

inline void expect(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// A vector that Python owns from now on.
template <class T>
Owned<T> own(Buffer<T>&& vector) {
    auto* keep = new Buffer<T>(std::move(vector));
    nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
    return Owned<T>(keep->data(), {keep->size()}, owner);
}

// A wish to stop. Who heeds it, and may be on another thread, stops at the next kernel.
struct Wish {
    std::shared_ptr<std::atomic<bool>> made = std::make_shared<std::atomic<bool>>(false);
};

// The time that a thread has given itself is over.
struct Expired : std::exception {
    const char* what() const noexcept override { return "the time is over"; }
};

// What this thread heeds in every kernel, whatever limits the kernel itself has.
struct Heeded {
    std::shared_ptr<std::atomic<bool>> wish;
    std::optional<StopToken::Clock::time_point> deadline;

    bool stopped() const { return wish && wish->load(std::memory_order_relaxed); }
    bool expired() const { return deadline && StopToken::Clock::now() >= *deadline; }
};
inline thread_local Heeded heeded;

// Ctrl-C is asked for through the interpreter, whose handler may raise, or make a wish.
inline StopToken stop_token(double seconds) {
    return StopToken(seconds, [] {
        if (heeded.stopped() || heeded.expired()) return true;
        nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0 || heeded.stopped();
    });
}

// A safe point: leave it by an exception if this thread is to stop.
inline void raise_if_stopped() {
    if (!PyErr_Occurred() && heeded.stopped()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    if (PyErr_Occurred()) throw nb::python_error();
    if (heeded.expired()) throw Expired();
}

// Run a kernel with the GIL released, then let an exception through if it was to stop.
template <class F>
auto released(double seconds, F&& kernel) {
    auto call = [&] {
        nb::gil_scoped_release release;
        StopToken token = stop_token(seconds);
        return kernel(token);
    };
    if constexpr (std::is_void_v<decltype(call())>) {
        call();
        raise_if_stopped();
    } else {
        auto result = call();
        raise_if_stopped();
        return result;
    }
}

struct LossHandle {
    AnyLoss loss;
};

template <class... Arrays>
std::shared_ptr<void> keep_alive(const Arrays&... arrays) {
    return std::make_shared<std::tuple<Arrays...>>(arrays...);
}

template <class X>
inline constexpr bool is_csr = requires(const X& x) { x.columns; };

// Rows as Python gave them: the lengths of their arrays, which are kept alive.
struct GivenRows {
    Matrix matrix;
    std::int64_t n, d;
    std::size_t values, columns;
    std::shared_ptr<void> keep;

    // f of the matrix, which has to be dense, or sparse.
    template <class F>
    auto dense(F&& f) const {
        return only<DenseMatrix<float>>(f, "rows must be dense");
    }
    template <class F>
    auto sparse(F&& f) const {
        return only<CsrMatrix<float, std::int32_t>>(f, "rows must be sparse");
    }
    // f of the three arrays of the matrix, which is sparse.
    template <class T, class Index, class F>
    auto with_arrays(const CsrMatrix<T, Index>& x, F&& f) const {
        return f(std::span<const T>{x.values, values}, std::span<const Index>{x.columns, columns},
                 std::span<const std::int64_t>{x.start, static_cast<std::size_t>(n) + 1});
    }

  private:
    template <class Like, class F>
    auto only(F& f, const char* otherwise) const {
        return std::visit(
            [&](const auto& x) -> std::invoke_result_t<F&, const Like&> {
                if constexpr (is_csr<decltype(x)> == is_csr<Like>)
                    return f(x);
                else
                    throw std::invalid_argument(otherwise);
            },
            matrix);
    }
};

// Of the interface that the sources had when this was compiled.
const char* interface_digest();

// The parts of the module, a file each.
void bind_classes(nb::module_& m);
void bind_files(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_separable(nb::module_& m);
void bind_workspace(nb::module_& m);
