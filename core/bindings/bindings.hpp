// What the bindings share: typed arrays, the release of the GIL, and the objects that Python holds.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <stdexcept>

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

// Ctrl-C is asked for through the interpreter; a KeyboardInterrupt then leaves the kernel.
inline StopToken stop_token(double seconds) {
    return StopToken(seconds, [] {
        nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    });
}

inline void raise_if_interrupted() {
    if (PyErr_Occurred()) throw nb::python_error();
}

// Run a kernel with the GIL released, then let a pending interrupt through.
template <class F>
auto released(double seconds, F&& kernel) {
    auto call = [&] {
        nb::gil_scoped_release release;
        StopToken token = stop_token(seconds);
        return kernel(token);
    };
    auto result = call();
    raise_if_interrupted();
    return result;
}

struct LossHandle {
    AnyLoss loss;
};

// The parts of the module, a file each.
void bind_files(nb::module_& m);
void bind_workspace(nb::module_& m);
