// Numbers as text: read to the nearest double, written with the fewest digits that read back equal.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <version>

// libc++ has all of <charconv> from version 20 on and does not say so; of macOS only newer ones.
#if !defined(ADASDCA_CHARCONV) &&   \
    (defined(__cpp_lib_to_chars) || \
     (defined(_LIBCPP_VERSION) && _LIBCPP_VERSION >= 200000 && !defined(__APPLE__)))
#define ADASDCA_CHARCONV 1
#endif
#if !ADASDCA_CHARCONV
#include <clocale>
#include <cstdio>
#include <cstdlib>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

namespace adasdca::decimal {

// Reading may look this far beyond a number, whatever is there.
inline constexpr std::size_t overread = 8;

// Up to eight digits at p and their number. A loop over digits ends with a mispredicted branch,
// about as dear as all of this.
inline int digits(const char* p, std::uint64_t& value) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    if constexpr (std::endian::native == std::endian::big) {
        std::uint64_t turned = 0;
        for (int k = 0; k < 8; ++k) turned |= (word >> (8 * k) & 0xFF) << (56 - 8 * k);
        word = turned;
    }
    word ^= 0x3030303030303030;  // digits become 0 ... 9
    const std::uint64_t other =
        ((word + 0x7676767676767676) | word) & 0x8080808080808080;  // exact up to the first one
    const int count = other ? std::countr_zero(other) / 8 : 8;
    // Leading zeros take the place of what follows the digits; then neighbours are joined, three
    // times. Two shifts: one by 64 is undefined.
    word = word << (32 - 4 * count) << (32 - 4 * count);
    word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FF;
    word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFF;
    value = (word * 10000 + (word >> 32)) & 0xFFFFFFFF;
    return count;
}

inline constexpr std::array<std::uint64_t, 9> integer_powers{
    1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};

inline constexpr std::array<double, 23> exact_powers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// A run of digits appended to `whole`, which wraps around beyond 19; returns how many.
inline std::int64_t run_of_digits(const char*& p, std::uint64_t& whole) {
    const char* first = p;
    for (int count = 8; count == 8;) {
        std::uint64_t part;
        count = digits(p, part);
        whole = whole * integer_powers[static_cast<std::size_t>(count)] + part;
        p += count;
    }
    return p - first;
}

#if !ADASDCA_CHARCONV
// The C library reads and writes numbers as the user's locale has them, unless told otherwise.
class PlainLocale {
  public:
    PlainLocale() : before_(uselocale(plain())) {}
    ~PlainLocale() { uselocale(before_); }
    PlainLocale(const PlainLocale&) = delete;

  private:
    static locale_t plain() {
        static const locale_t c = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
        return c;
    }
    locale_t before_;
};
#endif

// The nearest double of the text [first, last), a number without a sign. Where the range of doubles
// is left, std::from_chars does not tell on which side: `large` does.
inline double nearest(const char* first, const char* last, bool large) {
#if ADASDCA_CHARCONV
    double value = 0.0;
    if (std::from_chars(first, last, value).ec == std::errc::result_out_of_range)
        return large ? std::numeric_limits<double>::infinity() : 0.0;
    return value;
#else
    (void)large;
    const PlainLocale plain;
    return std::strtod(std::string(first, last).c_str(), nullptr);
#endif
}

// Read [+-] digits [. digits] [e [+-] digits] at p, with a digit before or after the point, and go
// behind it. False, with p where it was, if no such number is there. The text must end in something
// else than a digit, and `overread` bytes behind it must exist. Too large a number is infinite.
inline bool read(const char*& p, double& out) {
    const char* q = p;
    const bool negative = *q == '-';
    if (*q == '-' || *q == '+') ++q;
    const char* const first = q;
    std::uint64_t whole = 0;
    std::int64_t count = run_of_digits(q, whole), exponent = 0;
    if (*q == '.') {
        ++q;
        exponent = -run_of_digits(q, whole);
        count -= exponent;
    }
    if (count == 0) return false;
    if (*q == 'e' || *q == 'E') {
        const char* e = q + 1;
        const bool down = *e == '-';
        if (*e == '-' || *e == '+') ++e;
        std::int64_t power = 0;
        const char* const start = e;
        for (; *e >= '0' && *e <= '9'; ++e)
            if (power < std::int64_t{1} << 40) power = 10 * power + (*e - '0');
        if (e == start) return false;
        exponent += down ? -power : power;
        q = e;
    }
    double value;
    // Both numbers are exact, so that one operation rounds correctly (Clinger, 1990).
    if (count <= 19 && whole <= std::uint64_t{1} << 53 && exponent >= -22 && exponent <= 22) {
        value = static_cast<double>(whole);
        const double power = exact_powers[static_cast<std::size_t>(std::abs(exponent))];
        value = exponent < 0 ? value / power : value * power;
    } else {
        // The place of the first digit that is not 0 tells on which side the range was left.
        std::int64_t zeros = 0;
        for (const char* d = first; *d == '0' || *d == '.'; ++d) zeros += *d == '0';
        value = nearest(first, q, exponent + (count - zeros) > 0);
    }
    out = negative ? -value : value;
    p = q;
    return true;
}

inline void append(std::string& text, double value) {
    std::array<char, 32> buffer;
#if ADASDCA_CHARCONV
    const auto done = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    text.append(buffer.data(), done.ptr);
#else
    const PlainLocale plain;
    for (int precision = 15; precision <= 17; ++precision) {
        std::snprintf(buffer.data(), buffer.size(), "%.*g", precision, value);
        if (std::strtod(buffer.data(), nullptr) == value) break;
    }
    text.append(buffer.data());
#endif
}

inline void append(std::string& text, std::int64_t value) {
    std::array<char, 24> buffer;
    const auto done = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    text.append(buffer.data(), done.ptr);
}

}  // namespace adasdca::decimal
