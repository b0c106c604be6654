// Work in numbered pieces on a few threads, and the outside world's wish to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace adasdca {

// Asked now and then by long loops, on any thread; true means: leave at once. `question` may be
// empty and is only asked on the thread that made the token, at most every few milliseconds.
class StopToken {
  public:
    using Clock = std::chrono::steady_clock;

    explicit StopToken(double seconds_left, std::function<bool()> question = {})
        : question_(std::move(question)), next_(Clock::now() + interval) {
        limited_ = seconds_left < 1e9;
        if (limited_)
            deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds_left));
    }

    bool stop() {
        if (stopped() || (!limited_ && !question_)) return stopped();
        const auto now = Clock::now();
        if (limited_ && now >= deadline_) stopped_ = true;
        if (std::this_thread::get_id() == owner_ && question_ && now >= next_) {
            next_ = now + interval;
            if (question_()) stopped_ = true;
        }
        return stopped();
    }

    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  private:
    static constexpr std::chrono::milliseconds interval{10};
    std::function<bool()> question_;
    std::thread::id owner_ = std::this_thread::get_id();
    Clock::time_point next_, deadline_;
    bool limited_ = false;
    std::atomic<bool> stopped_{false};
};

// Nanoseconds of work for which a thread is started. One with less than a millisecond to do takes
// as long to start, and longer if others keep its processor busy (ijcnn1 squared, beside the
// waiting threads of a BLAS: 8.9 ms on two threads, 5.3 on one).
inline std::atomic<double> thread_work{1e6};

inline int worthwhile(double nanoseconds, int threads) {
    return static_cast<int>(
        std::clamp(nanoseconds / thread_work, 1.0, static_cast<double>(std::max(threads, 1))));
}

// f(piece) for piece = 0 .. pieces-1 on up to `threads` threads, the caller's among them, and when
// all are done g(piece) for the `more` pieces of a second kind. Which thread takes which piece is
// left to chance, so f and g must write to places of their own piece. Where the system has no
// thread left, those that did start do all of the work. What f or g throws, on whichever thread,
// ends the work, and the caller gets it once no other thread runs.
template <class F, class G>
void for_each_piece(std::int64_t pieces, std::int64_t more, int threads, StopToken& token, F&& f,
                    G&& g) {
    std::atomic<std::int64_t> next{0}, next_more{0};
    std::atomic<int> busy{0};  // threads that may have a piece of the first kind
    std::exception_ptr thrown;
    std::atomic<bool> failed{false};
    auto take = [&](std::atomic<std::int64_t>& at, std::int64_t end, auto& work) noexcept {
        try {
            for (std::int64_t piece; (piece = at.fetch_add(1)) < end && !failed && !token.stop();)
                work(piece);
        } catch (...) {
            if (!failed.exchange(true)) thrown = std::current_exception();
        }
    };
    auto work = [&]() noexcept {
        ++busy;
        take(next, pieces, f);
        if (--busy == 0) busy.notify_all();
        if (more == 0) return;
        // A thread that comes later finds no piece left, so that those who go on may do so.
        for (int others; (others = busy) != 0;) busy.wait(others);
        take(next_more, more, g);
    };
    std::vector<std::thread> helpers;
    const auto wanted = std::min<std::int64_t>(threads, pieces) - 1;
    try {
        for (std::int64_t k = 0; k < wanted; ++k) helpers.emplace_back(work);
    } catch (const std::system_error&) {  // no thread left
    } catch (const std::bad_alloc&) {     // no memory for one
    }
    work();
    for (auto& helper : helpers) helper.join();
    if (thrown) std::rethrow_exception(thrown);
}

template <class F>
void for_each_piece(std::int64_t pieces, int threads, StopToken& token, F&& f) {
    for_each_piece(pieces, 0, threads, token, f, [](std::int64_t) {});
}

}  // namespace adasdca
