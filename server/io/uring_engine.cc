#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
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

struct RingExit {
  void operator()(io_uring* r) const noexcept {
    io_uring_queue_exit(r);
    delete r;
  }
};
using RingPtr = std::unique_ptr<io_uring, RingExit>;

// Debian's liburing 2.3 declares wrappers for these but does not export them.
absl::Status Register(io_uring& ring, unsigned opcode, void* argument,
                      unsigned count) {
  if (::syscall(__NR_io_uring_register, ring.ring_fd, opcode, argument, count) <
      0) {
    return ErrnoError(errno, "io_uring_register");
  }
  return absl::OkStatus();
}

// Only reads are allowed on the ring, so that a bug elsewhere cannot open files
// or sockets through it, which no seccomp filter would see.
absl::StatusOr<RingPtr> OpenRing(unsigned entries) {
  auto raw = std::make_unique<io_uring>();
  io_uring_params params{};
  params.flags = IORING_SETUP_R_DISABLED;
  if (int rc = io_uring_queue_init_params(entries, raw.get(), &params);
      rc < 0) {
    return absl::ErrnoToStatus(-rc, "io_uring_queue_init");
  }
  RingPtr ring(raw.release());
  io_uring_restriction allowed[1] = {};
  allowed[0].opcode = IORING_RESTRICTION_SQE_OP;
  allowed[0].sqe_op = IORING_OP_READ;
  PENSTOCK_RETURN_IF_ERROR(
      Register(*ring, IORING_REGISTER_RESTRICTIONS, allowed, 1));
  PENSTOCK_RETURN_IF_ERROR(
      Register(*ring, IORING_REGISTER_ENABLE_RINGS, nullptr, 0));
  return ring;
}

struct InFlight {
  ReadRequest request;
  std::uint64_t got = 0;
};

// One io_uring, one thread that owns it; others hand reads over through a
// queue and an eventfd that the ring itself waits on.
class UringEngine final : public ReadEngine {
 public:
  UringEngine(RingPtr ring, int wake, const ReadEngineOptions& options)
      : ring_(std::move(ring)),
        wake_(wake),
        depth_(options.depth),
        backlog_(options.backlog),
        slots_(options.depth) {
    for (unsigned i = 0; i < depth_; ++i) free_.push_back(i);
    thread_ = std::thread([this] { Run(); });
  }

  ~UringEngine() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
    for (auto& r : queue_) r.done(absl::CancelledError("read engine stopped"));
    ::close(wake_);
  }

  absl::Status Submit(ReadRequest request) override {
    PENSTOCK_RETURN_IF_ERROR(CheckRequest(request));
    bool wake;
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return absl::CancelledError("read engine stopped");
      if (queue_.size() >= backlog_) {
        return absl::ResourceExhaustedError("read engine: backlog is full");
      }
      wake = queue_.empty();
      queue_.push_back(std::move(request));
    }
    if (wake) Wake();
    return absl::OkStatus();
  }

  std::string backend() const override { return "io_uring"; }
  ReadStats stats() const override {
    return {reads_.load(), bytes_.load(), short_.load(), errors_.load()};
  }

 private:
  static constexpr std::uint64_t kWakeTag = UINT64_MAX;

  void Wake() {
    const std::uint64_t one = 1;
    while (::write(wake_, &one, 8) < 0 && errno == EINTR) {
    }
  }

  void ArmWake() {
    io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
    io_uring_prep_read(sqe, wake_, &wake_value_, 8, 0);
    io_uring_sqe_set_data64(sqe, kWakeTag);
    wake_armed_ = true;
  }

  void Prepare(unsigned slot) {
    InFlight& f = slots_[slot];
    io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
    io_uring_prep_read(sqe, f.request.file->fd(), f.request.into.data() + f.got,
                       static_cast<unsigned>(f.request.into.size() - f.got),
                       f.request.offset + f.got);
    io_uring_sqe_set_data64(sqe, slot);
  }

  // Moves reads from the queue to free slots. False: stopping, nothing left.
  bool Refill() {
    std::lock_guard lock(mutex_);
    while (!stopping_ && !free_.empty() && !queue_.empty()) {
      const unsigned slot = free_.back();
      free_.pop_back();
      slots_[slot] = {std::move(queue_.front()), 0};
      queue_.pop_front();
      reads_.fetch_add(1, std::memory_order_relaxed);
      Prepare(slot);
    }
    return !(stopping_ && free_.size() == depth_);
  }

  void Complete(unsigned slot, int result) {
    InFlight& f = slots_[slot];
    if (result == -EINTR || result == -EAGAIN) {
      Prepare(slot);
      return;
    }
    absl::Status status;
    if (result < 0) {
      status = ErrnoError(-result, f.request.file->path());
    } else {
      f.got += static_cast<std::uint64_t>(result);
      const bool more = result > 0 && f.got < f.request.into.size() &&
                        f.got % kReadAlignment == 0;
      if (more) {
        short_.fetch_add(1, std::memory_order_relaxed);
        Prepare(slot);
        return;
      }
      bytes_.fetch_add(f.got, std::memory_order_relaxed);
      status = FinishRead(f.request, f.got);
    }
    if (!status.ok()) errors_.fetch_add(1, std::memory_order_relaxed);
    ReadRequest request = std::move(f.request);
    f = {};
    free_.push_back(slot);
    request.done(std::move(status));
  }

  void Run() {
    while (true) {
      if (!wake_armed_) ArmWake();
      if (!Refill()) break;
      const int rc = io_uring_submit_and_wait(ring_.get(), 1);
      if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
        // The ring itself is broken: nothing can be waited for any more.
        std::abort();
      }
      io_uring_cqe* cqe;
      while (io_uring_peek_cqe(ring_.get(), &cqe) == 0) {
        const std::uint64_t tag = io_uring_cqe_get_data64(cqe);
        const int result = cqe->res;
        io_uring_cqe_seen(ring_.get(), cqe);
        if (tag == kWakeTag) {
          wake_armed_ = false;
        } else {
          Complete(static_cast<unsigned>(tag), result);
        }
      }
    }
    // The wake read may still be in the kernel: let it finish before its
    // buffer goes.
    if (wake_armed_) {
      Wake();
      io_uring_cqe* cqe;
      while (io_uring_submit_and_wait(ring_.get(), 1) == -EINTR) {
      }
      if (io_uring_wait_cqe(ring_.get(), &cqe) == 0) {
        io_uring_cqe_seen(ring_.get(), cqe);
      }
    }
  }

  RingPtr ring_;
  const int wake_;
  std::uint64_t wake_value_ = 0;
  bool wake_armed_ = false;
  const unsigned depth_;
  const std::size_t backlog_;
  std::vector<InFlight> slots_;
  std::vector<unsigned> free_;  // owner thread
  std::mutex mutex_;
  std::deque<ReadRequest> queue_;  // under mutex_
  bool stopping_ = false;          // under mutex_
  std::atomic<std::uint64_t> reads_{0}, bytes_{0}, short_{0}, errors_{0};
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReadEngine>> StartUringEngine(
    const ReadEngineOptions& options) {
  // One entry more than reads, for the wake-up.
  PENSTOCK_ASSIGN_OR_RETURN(RingPtr ring, OpenRing(options.depth * 2 + 2));
  const int wake = ::eventfd(0, EFD_CLOEXEC);
  if (wake < 0) return ErrnoError(errno, "eventfd");
  return std::make_unique<UringEngine>(std::move(ring), wake, options);
}

}  // namespace penstock::io
