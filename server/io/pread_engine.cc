#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "common/status/status.h"
#include "server/io/engines.h"

namespace penstock::io {
namespace {

constexpr unsigned kThreadsMax = 16;

// The fallback where io_uring is refused: a pool of threads around pread.
class PreadEngine final : public ReadEngine {
 public:
  explicit PreadEngine(const ReadEngineOptions& options)
      : backlog_(options.backlog) {
    for (unsigned i = 0; i < std::min(options.depth, kThreadsMax); ++i) {
      threads_.emplace_back([this] { Run(); });
    }
  }

  ~PreadEngine() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
    for (auto& r : queue_) r.done(absl::CancelledError("read engine stopped"));
  }

  absl::Status Submit(ReadRequest request) override {
    PENSTOCK_RETURN_IF_ERROR(CheckRequest(request));
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return absl::CancelledError("read engine stopped");
      if (queue_.size() >= backlog_) {
        return absl::ResourceExhaustedError("read engine: backlog is full");
      }
      queue_.push_back(std::move(request));
    }
    changed_.notify_one();
    return absl::OkStatus();
  }

  std::string backend() const override { return "pread"; }
  ReadStats stats() const override {
    return {reads_.load(), bytes_.load(), short_.load(), errors_.load()};
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      ReadRequest r = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      absl::Status status = ReadWhole(r);
      if (!status.ok()) errors_.fetch_add(1);
      r.done(std::move(status));
      lock.lock();
    }
  }

  absl::Status ReadWhole(const ReadRequest& r) {
    std::uint64_t got = 0;
    reads_.fetch_add(1);
    while (got < r.into.size()) {
      const ssize_t n =
          ::pread(r.file->fd(), r.into.data() + got, r.into.size() - got,
                  static_cast<off_t>(r.offset + got));
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) return ErrnoError(errno, r.file->path());
      got += static_cast<std::uint64_t>(n);
      if (n == 0 || got % kReadAlignment != 0) break;  // the end of the file
    }
    bytes_.fetch_add(got);
    return FinishRead(r, got);
  }

  const std::size_t backlog_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReadRequest> queue_;
  bool stopping_ = false;
  std::atomic<std::uint64_t> reads_{0}, bytes_{0}, short_{0}, errors_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ReadEngine> StartPreadEngine(const ReadEngineOptions& options) {
  return std::make_unique<PreadEngine>(options);
}

}  // namespace penstock::io
