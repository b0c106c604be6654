// What the core promises whatever compiles it, checked on what GNU's compilers are not told.
#include <random>

#include "duality/certificate.hpp"
#include "fuzz/decimal.cpp"

namespace {

using namespace adasdca;

// What is added to the first product, less than half of its last digit each, is lost in a chain
// that begins with it.
template <class T>
void check_dots() {
    for (std::int64_t d = 1; d < 400; ++d) {
        std::vector<T> x(static_cast<std::size_t>(d), T(0x1.6ap-27));
        std::vector<double> w(x.begin(), x.end());
        std::vector<std::int32_t> columns(x.size());
        for (std::size_t j = 0; j < x.size(); ++j) columns[j] = static_cast<std::int32_t>(j);
        x[0] = 1;
        w[0] = 1;
        Twofold exact, square;
        for (std::size_t j = 0; j < x.size(); ++j) {
            exact.add_product(x[j], w[j]);
            square.add_product(w[j], w[j]);
        }
        const double norm = std::sqrt(square.value());
        const double most =
            ScoreError{norm, 0, 0, unit_roundoff, 0, 0}.of(norm, static_cast<double>(d), 0, 0);
        RowState state{};
        const DenseRow<T> dense{state, x.data(), d};
        const SparseRow<std::int32_t, const T*> sparse{state, columns.data(), x.data(), d};
        for (const double dot : {dense.dot(w.data()), sparse.dot(w.data())})
            CHECK(std::abs(exact.sum - dot + exact.rest) <= most);
    }
}

void check_products(std::mt19937_64& draw) {
    for (int k = 0; k < 1000; ++k) {
        const std::uint64_t a = draw(), b = draw() >> (k % 64);
        __extension__ using Wide = unsigned __int128;
        CHECK(high_product(a, b) == static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64));
        // Of integers of 53 bits at most, and what is left when it is taken off again.
        const auto x = static_cast<double>(a >> 11), y = static_cast<double>(b >> 11);
        Twofold sum;
        sum.add_product(x, y);
        sum.add(1.0);
        sum.add_product(-x, y);
        CHECK(sum.value() == 1.0);
    }
}

void check_numbers(std::mt19937_64& draw) {
    for (int k = 0; k < 20000; ++k) {
        const std::uint64_t bits = draw();
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(&bits), sizeof bits);
        std::string text;
        for (std::size_t length = draw() % 50; text.size() < length;)
            text += "0123456789012345678901234567890123456789.e-+"[draw() % 44];
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    }
}

}  // namespace

int main() {
    std::mt19937_64 draw(0);
    check_dots<double>();
    check_dots<float>();
    check_products(draw);
    check_numbers(draw);
}
