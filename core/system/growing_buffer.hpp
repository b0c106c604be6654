// An array that grows in place where the system can do that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace adasdca {

// By realloc, unlike a std::vector: large blocks are moved by their page tables, so that there is
// never a second copy, and room that is never written to takes no memory.
template <class T>
class Growing {
  public:
    Growing() = default;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          room_(std::exchange(other.room_, 0)) {}
    Growing& operator=(Growing&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
        return *this;
    }
    ~Growing() { std::free(data_); }

    T* data() { return data_; }
    std::size_t size() const { return size_; }
    T* end() { return data_ + size_; }

    // Make room for `count` more entries at end(), to be taken over by `extend`.
    void reserve(std::size_t count) {
        if (count > room_ - size_) resize_room(std::max(size_ + count, room_ + room_ / 2));
    }
    void extend(std::size_t count) { size_ += count; }
    void push(T value) {
        reserve(1);
        data_[size_++] = value;
    }

    // The memory, for the caller to free.
    T* release() {
        resize_room(std::max<std::size_t>(size_, 1));
        size_ = room_ = 0;
        return std::exchange(data_, nullptr);
    }

    // The same numbers as a wider type, in the same memory.
    template <class Wide>
    Growing<Wide> widened() && {
        static_assert(sizeof(Wide) >= sizeof(T));
        const std::size_t count = size_;
        Growing<Wide> wide;
        wide.adopt(release(), count);
        auto* bytes = reinterpret_cast<unsigned char*>(wide.data());
        for (std::size_t k = count; k-- > 0;) {  // from the end: nothing is overwritten unread
            T narrow;
            std::memcpy(&narrow, bytes + k * sizeof(T), sizeof(T));
            const Wide value = narrow;
            std::memcpy(bytes + k * sizeof(Wide), &value, sizeof(Wide));
        }
        return wide;
    }

    void adopt(void* memory, std::size_t count) {
        std::free(data_);
        data_ = static_cast<T*>(memory);
        resize_room(std::max<std::size_t>(count, 1));
        size_ = count;
    }

  private:
    void resize_room(std::size_t room) {
        void* moved = std::realloc(data_, room * sizeof(T));
        if (moved == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        room_ = room;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, room_ = 0;
};

}  // namespace adasdca
