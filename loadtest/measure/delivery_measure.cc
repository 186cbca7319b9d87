#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"
#include "loadtest/measure/consume.h"

namespace penstock::loadtest {
namespace {

constexpr std::uint64_t kArena = 3ull << 30;

struct Size {
  const char* name;
  FeedShape shape;
  int steps;  // of the ring; ours has about as many
};
constexpr int kAttachRuns = 5;
constexpr int kAttachPrefetch = 4;
constexpr int kPrefetchMore = 3;  // all of it is made before it is taken
const Size kSizes[] = {{"4 KiB", {1, 1, 36, 36, 2}, 455},
                       {"1 MiB", {2, 4, 256, 170, 2}, 227},
                       {"16 MiB", {8, 8, 320, 273, 4}, 28},
                       {"64 MiB", {16, 16, 320, 273, 9}, 6}};

const Size kRemote = {"16 MiB", {8, 8, 320, 273, 3}, 38};
// For the hand-off alone: as many steps of either.
const Size kSmall = {"4 KiB", {1, 1, 36, 36, 28}, 28};
const Size kLarge = {"64 MiB", {16, 16, 320, 273, 2}, 28};

// The least that shared memory can cost: a ring in a memfd that another process
// filled, a futex word for what is ready; both sides populated. Seconds for
// reading every slot in place.
absl::StatusOr<double> BareRing(std::uint64_t slot, int slots) {
  const std::uint64_t bytes = 4096 + slot * slots;
  const int fd = ::memfd_create("ring", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return ErrnoError(errno, "memfd");
  }
  auto* map = static_cast<std::uint8_t*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ::close(fd);
  if (map == MAP_FAILED) return ErrnoError(errno, "mmap");
  ::madvise(map, bytes, MADV_POPULATE_WRITE);
  auto* ready = reinterpret_cast<std::atomic<std::uint32_t>*>(map);
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < slots; ++i) {
      std::uint8_t* p = map + 4096 + slot * i;
      for (std::uint64_t k = 0; k < slot; k += 8) *reinterpret_cast<std::uint64_t*>(p + k) = k ^ i;
      ready->store(i + 1);
      ::syscall(SYS_futex, ready, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);  // all of it is ready, as in ours
  std::uint64_t sum = 0;
  const double begin = NowSeconds();
  for (int i = 0; i < slots; ++i) {
    for (std::uint32_t now; (now = ready->load()) <= static_cast<std::uint32_t>(i);) {
      ::syscall(SYS_futex, ready, FUTEX_WAIT, now, nullptr, nullptr, 0);
    }
    sum += ReadThrough({map + 4096 + slot * i, slot});
  }
  const double seconds = NowSeconds() - begin;
  ::munmap(map, bytes);
  return sum == 0 ? 1e9 : seconds;
}

std::string NextJob() {
  static std::atomic<int> next{0};
  return absl::StrFormat("job-%d", next.fetch_add(1));
}

absl::StatusOr<Consumed> ConsumeOnce(const Bench& bench, const Size& s,
                                     bool remote, bool paced = false) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::string feed,
      WriteFeed(bench, absl::StrFormat("delivery%d-%d", s.steps, s.shape.hop), s.shape));
  PENSTOCK_ASSIGN_OR_RETURN(auto daemon,
                            Daemon::Start(bench, s.steps + kPrefetchMore, kArena));
  const std::string address =
      remote ? absl::StrFormat("tcp:127.0.0.1:%d", daemon->tcp_port())
             : daemon->address();
  return ConsumeReady(address, daemon->address(), feed, NextJob(), paced);
}

double Rate(const Consumed& c) {
  return static_cast<double>(c.bytes) * static_cast<double>(c.steps) /
         c.seconds / 1e6;
}

// MB/s of the same bytes through a plain TCP connection of this machine: one
// thread sends from memory, one receives into memory, as a remote rank does.
absl::StatusOr<double> RawTcp(std::uint64_t bytes, int messages) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return ErrnoError(errno, "listen on loopback");
  }
  std::vector<std::uint8_t> source(bytes, 7);
  std::thread sender([&] {
    const int s = ::accept(listener, nullptr, nullptr);
    for (int i = 0; i < messages; ++i) {
      for (std::uint64_t at = 0; at < bytes;) {
        const ssize_t n = ::send(s, source.data() + at,
                                 std::min<std::uint64_t>(1 << 20, bytes - at),
                                 MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<std::uint64_t>(n);
      }
    }
    ::close(s);
  });
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  absl::Status status;
  double seconds = 1e9;
  if (::connect(s, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    std::uint64_t sum = 0;
    // Two buffers in turn, as the client has.
    std::unique_ptr<std::uint8_t[]> buffers[] = {
        std::make_unique_for_overwrite<std::uint8_t[]>(bytes),
        std::make_unique_for_overwrite<std::uint8_t[]>(bytes)};
    const double begin = NowSeconds();
    for (int i = 0; i < messages; ++i) {
      const auto& into = buffers[i % 2];
      for (std::uint64_t at = 0; at < bytes;) {
        const ssize_t n = ::recv(s, into.get() + at, bytes - at, 0);
        if (n <= 0) break;
        at += static_cast<std::uint64_t>(n);
      }
      sum += ReadThrough({into.get(), bytes});
    }
    seconds = NowSeconds() - begin;
    if (sum == 0) seconds = 1e9;
  }
  ::close(s);
  ::close(listener);
  sender.join();
  return static_cast<double>(bytes) * messages / seconds / 1e6;
}

}  // namespace

absl::StatusOr<std::vector<Ratio>> MeasureDelivery(const Bench& bench) {
  std::vector<Ratio> out;
  for (const Size& s : kSizes) {
    std::uint64_t bytes = 0;
    auto ours = [&]() -> absl::StatusOr<double> {
      PENSTOCK_ASSIGN_OR_RETURN(const Consumed c, ConsumeOnce(bench, s, false));
      bytes = c.bytes;
      return Rate(c);
    };
    auto theirs = [&]() -> absl::StatusOr<double> {
      const std::uint64_t slot =
          bytes != 0 ? bytes
                     : (3ull * s.shape.global_batch * s.shape.frames *
                            s.shape.width * s.shape.height +
                        255) /
                           256 * 256;
      PENSTOCK_ASSIGN_OR_RETURN(const double seconds, BareRing(slot, s.steps));
      return static_cast<double>(slot) * s.steps / seconds / 1e6;
    };
    PENSTOCK_ASSIGN_OR_RETURN(
        Ratio r, RunPairs(absl::StrFormat("arena / bare memfd ring, %s slots",
                                          s.name),
                          "MB/s", bench.pairs, 0.90, true, ours, theirs));
    out.push_back(r);
  }
  auto handoff = [&](const Size& s) -> absl::StatusOr<double> {
    PENSTOCK_ASSIGN_OR_RETURN(const Consumed c,
                              ConsumeOnce(bench, s, false, /*paced=*/true));
    return c.handoff_seconds * 1e6;
  };
  PENSTOCK_ASSIGN_OR_RETURN(
      Ratio flat, RunPairs("hand-off, 64 MiB / 4 KiB slots", "us", bench.pairs,
                           1.25, false, [&] { return handoff(kLarge); },
                           [&] { return handoff(kSmall); }));
  flat.note = "bytes not read";
  out.push_back(flat);
  return out;
}

absl::StatusOr<std::vector<Ratio>> MeasureRemote(const Bench& bench) {
  const Size& s = kRemote;
  std::uint64_t bytes = 0;
  auto ours = [&]() -> absl::StatusOr<double> {
    PENSTOCK_ASSIGN_OR_RETURN(const Consumed c, ConsumeOnce(bench, s, true));
    bytes = c.bytes;
    return Rate(c);
  };
  PENSTOCK_ASSIGN_OR_RETURN(
      Ratio r, RunPairs("remote gRPC / raw TCP, 16 MiB batches", "MB/s",
                        bench.pairs, 0.60, true, ours,
                        [&] { return RawTcp(bytes != 0 ? bytes : 16 << 20,
                                            s.steps); }));
  return std::vector<Ratio>{r};
}

absl::StatusOr<std::vector<Ratio>> MeasureAttach(const Bench& bench) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string feed,
                            WriteFeed(bench, "attach", {8, 8, 256, 144, 0}));
  // A process's start varies more than what it does: the median of some. The
  // daemon goes on making steps ahead; they must not compete with the next run.
  auto run = [&](bool daemons) -> absl::StatusOr<double> {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto daemon, Daemon::Start(bench, kAttachPrefetch, 1ull << 30));
    std::vector<double> ms;
    for (int i = 0; i < kAttachRuns; ++i) {
      const std::string job = NextJob();
      const std::string where =
          daemons ? "--connect " + daemon->address() : "--local";
      const double begin = NowSeconds();
      PENSTOCK_RETURN_IF_ERROR(
          Shell(absl::StrFormat("%s/penstock feed --feed %s --steps 1 --job %s "
                                "--incarnation a %s 2>/dev/null",
                                bench.bin, feed, job, where))
              .status());
      ms.push_back((NowSeconds() - begin) * 1e3);
      if (daemons) {
        PENSTOCK_RETURN_IF_ERROR(
            WaitMade(daemon->address(), job, kAttachPrefetch));
      }
    }
    return Median(ms);
  };
  PENSTOCK_ASSIGN_OR_RETURN(
      Ratio r, RunPairs("attach to first batch / a fresh process alone", "ms",
                        bench.pairs, 1.5, false,
                        [&] { return run(true); }, [&] { return run(false); }));
  // The bound is 1.5 times theirs and 50 ms.
  r.bound = 1.5 + 50.0 / r.theirs;
  r.note = "bound 1.5x + 50 ms";
  return std::vector<Ratio>{r};
}

}  // namespace penstock::loadtest
