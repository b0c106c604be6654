// The reader and the writer of numbers, against the C library.
#include "io/decimal.hpp"

#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

// [+-] digits [. digits] [e [+-] digits] with a digit beside the point: how far it goes from the
// front of the text, 0 where there is no such number. An exponent without digits is no number.
std::size_t length_of_number(const std::string& text) {
    std::size_t k = 0;
    const auto digits = [&] {
        const std::size_t first = k;
        while (std::isdigit(static_cast<unsigned char>(text[k]))) ++k;
        return k - first;
    };
    const auto sign = [&] { k += text[k] == '+' || text[k] == '-'; };
    sign();
    std::size_t count = digits();
    if (text[k] == '.') {
        ++k;
        count += digits();
    }
    if (count == 0) return 0;
    if (text[k] == 'e' || text[k] == 'E') {
        ++k;
        sign();
        if (digits() == 0) return 0;
    }
    return k;
}

bool same(double a, double b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

void check_reading(std::string text) {
    text.push_back('\n');
    const std::size_t length = length_of_number(text);
    const std::string number = text.substr(0, length);
    // On the heap and no longer than promised, so that a look too far is seen.
    text.append(adasdca::decimal::overread, '7');
    const std::vector<char> memory(text.begin(), text.end());
    const char* p = memory.data();
    double value = 0;
    const bool read = adasdca::decimal::read(p, value);
    CHECK(read == (length > 0));
    CHECK(static_cast<std::size_t>(p - memory.data()) == length);
    if (read) CHECK(same(value, std::strtod(number.c_str(), nullptr)));
}

void check_writing(double value) {
    std::string text;
    adasdca::decimal::append(text, value);
    CHECK(same(std::strtod(text.c_str(), nullptr), value));
    check_reading(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A text without a zero byte, as the C library ends there; and the same bytes as a double.
    std::string text(reinterpret_cast<const char*>(data), size);
    check_reading(text.substr(0, text.find('\0')));
    const auto value = Bytes(data, size).next<double>();
    if (std::isfinite(value)) check_writing(value);
    return 0;
}
