// What the fuzz targets share: the end of a run that found something, and numbers from bytes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                \
        }                                                                                \
    } while (false)

// Takes numbers from the front of the bytes; zeros when there are none left.
class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    template <class T>
    T next() {
        T value{};
        const std::size_t count = size_ < sizeof(T) ? size_ : sizeof(T);
        std::memcpy(&value, data_, count);
        skip(count);
        return value;
    }
    void skip(std::size_t count) {
        data_ += count;
        size_ -= count;
    }
    const std::uint8_t* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    const std::uint8_t* data_;
    std::size_t size_;
};
