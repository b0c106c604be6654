// Work in numbered pieces on a few threads, and the outside world's wish to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
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
        if (stopped()) return true;
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

// f(piece) for piece = 0 .. pieces-1 on up to `threads` threads, the caller's among them. Which
// thread takes which piece is left to chance, so f must write to places of its own piece.
template <class F>
void for_each_piece(std::int64_t pieces, int threads, StopToken& token, F&& f) {
    std::atomic<std::int64_t> next{0};
    auto work = [&] {
        for (std::int64_t piece; (piece = next.fetch_add(1)) < pieces && !token.stop();) f(piece);
    };
    std::vector<std::thread> helpers;
    const auto wanted = std::min<std::int64_t>(threads, pieces) - 1;
    for (std::int64_t k = 0; k < wanted; ++k) helpers.emplace_back(work);
    work();
    for (auto& helper : helpers) helper.join();
}

}  // namespace adasdca
