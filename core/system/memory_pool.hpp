// Memory that one solve leaves to the next.
//
// The system hands out fresh pages, clears each when it is first touched, and takes them back when
// they are freed: a quarter of a short solve (ijcnn1 squared: 7.4 -> 5.4 ms). Large blocks that are
// given back here stay, up to a limit, for whoever asks for that size again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace adasdca {

class Pool {
  public:
    static constexpr std::size_t alignment = 64;                // a cache line
    static constexpr std::size_t least = std::size_t{1} << 16;  // smaller blocks are not kept
    static constexpr std::size_t most = std::size_t{1} << 26;   // bytes kept in all

    // Never destroyed: an array of Python's may be given back after everything else has gone.
    static Pool& instance() {
        static Pool* const pool = new Pool;
        return *pool;
    }

    void* take(std::size_t bytes) {
        if (bytes >= least)
            // Not to wait, not even for a thread that a fork has left behind: fresh memory will do.
            if (const std::unique_lock lock(mutex_, std::try_to_lock); lock)
                if (Block* block = find(bytes)) return block;
        return fresh(bytes);
    }

    void give(void* memory) noexcept {
        Block* block = static_cast<Block*>(memory);
        const std::size_t bytes = header(block).bytes;
        if (bytes >= least && bytes <= most)
            if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
                while (kept_ + bytes > most || blocks_.size() == blocks_.capacity())
                    release(remove(0));
                blocks_.push_back(block);
                kept_ += bytes;
                return;
            }
        release(block);
    }

  private:
    struct Header {
        std::size_t bytes;
    };
    using Block = std::byte;

    Pool() { blocks_.reserve(128); }

    static Header& header(Block* block) { return *reinterpret_cast<Header*>(block - alignment); }

    static Block* fresh(std::size_t bytes) {
        auto* begin =
            static_cast<Block*>(::operator new(bytes + alignment, std::align_val_t{alignment}));
        new (begin) Header{bytes};
#ifdef __linux__
        // Random visits to small pages miss the TLB every time; huge pages do not.
        const auto address = reinterpret_cast<std::uintptr_t>(begin);
        const std::uintptr_t page = 1 << 21, first = (address + page - 1) / page * page;
        if (address + bytes >= first + page)
            madvise(reinterpret_cast<void*>(first), address + bytes - first, MADV_HUGEPAGE);
#endif
        return begin + alignment;
    }

    static void release(Block* block) noexcept {
        ::operator delete(block - alignment, std::align_val_t{alignment});
    }

    // The block that fits best, of those that waste no more than a quarter; the latest of equals,
    // which is the likeliest to be in the cache.
    Block* find(std::size_t bytes) {
        std::size_t best = blocks_.size();
        for (std::size_t k = blocks_.size(); k-- > 0;) {
            const std::size_t size = header(blocks_[k]).bytes;
            if (size < bytes || size > bytes + bytes / 4) continue;
            if (best == blocks_.size() || size < header(blocks_[best]).bytes) best = k;
        }
        return best == blocks_.size() ? nullptr : remove(best);
    }

    Block* remove(std::size_t k) {
        Block* block = blocks_[k];
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(k));
        kept_ -= header(block).bytes;
        return block;
    }

    std::mutex mutex_;
    std::vector<Block*> blocks_;  // oldest first
    std::size_t kept_ = 0;
};

template <class T>
struct Pooled {
    using value_type = T;
    static_assert(alignof(T) <= Pool::alignment);

    Pooled() = default;
    template <class U>
    Pooled(const Pooled<U>&) {}

    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(Pool::instance().take(count * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t) noexcept { Pool::instance().give(memory); }

    // Elements without a value are left as they are, not cleared.
    template <class U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
    template <class U, class... Values>
    void construct(U* place, Values&&... values) {
        ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
    }
    friend bool operator==(const Pooled&, const Pooled&) { return true; }
};

// A vector in such memory. Buffer<T>(n) is not initialised, Buffer<T>(n, value) is.
template <class T>
using Buffer = std::vector<T, Pooled<T>>;

using Indices = Buffer<std::int32_t>;

}  // namespace adasdca
