#include "server/io/read_engine.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace penstock::io {
namespace {

using penstock::test::TempDir;

// Page-aligned memory.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::uint8_t*>(
            std::aligned_alloc(kReadAlignment, bytes))) {
    std::memset(memory_.get(), 0xEE, bytes);
  }
  std::span<std::uint8_t> span() { return {memory_.get(), bytes_}; }
  std::string text(std::size_t n) const {
    return {reinterpret_cast<const char*>(memory_.get()), n};
  }

 private:
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::uint8_t, Free> memory_;
};

std::string Pattern(std::size_t bytes) {
  std::mt19937 random(1);
  std::string out(bytes, 0);
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

absl::Status ReadNow(ReadEngine& engine, ReadRequest request) {
  std::promise<absl::Status> done;
  request.done = [&](absl::Status s) { done.set_value(std::move(s)); };
  if (auto s = engine.Submit(std::move(request)); !s.ok()) return s;
  return done.get_future().get();
}

// The engines that run here; io_uring is left out by name where it is refused.
std::vector<Backend> Backends() {
  static const bool uring =
      StartReadEngine({.backend = Backend::kUring}, nullptr).ok();
  if (!uring) WARN("skipped: io_uring (refused on this machine)");
  return uring ? std::vector{Backend::kPread, Backend::kUring}
               : std::vector{Backend::kPread};
}

std::unique_ptr<ReadEngine> Start(Backend backend, unsigned depth = 8,
                                  unsigned backlog = 65536) {
  auto engine = StartReadEngine({backend, depth, backlog}, nullptr).value();
  CHECK(engine->backend() ==
        (backend == Backend::kUring ? "io_uring" : "pread"));
  return engine;
}

TEST_CASE("read engine: aligned ranges and the tail of a file", "[io]") {
  TempDir dir;
  const std::string bytes = Pattern(5 * kReadAlignment + 100);
  penstock::test::WriteAll(dir / "shard", bytes);
  const auto file = ReadFile::Open(dir / "shard").value();
  CHECK(file->bytes() == bytes.size());
  for (const Backend backend : Backends()) {
    const auto engine = Start(backend);
    CAPTURE(engine->backend());
    Buffer b(4 * kReadAlignment);
    REQUIRE(ReadNow(*engine, {file, kReadAlignment,
                              b.span().first(2 * kReadAlignment),
                              2 * kReadAlignment, {}})
                .ok());
    CHECK(b.text(2 * kReadAlignment) ==
          bytes.substr(kReadAlignment, 2 * kReadAlignment));
    // Memory behind the range is not touched.
    CHECK(b.span()[2 * kReadAlignment] == 0xEE);

    const std::size_t left = kReadAlignment + 100;
    REQUIRE(ReadNow(*engine, {file, 4 * kReadAlignment, b.span(), left, {}})
                .ok());
    CHECK(b.text(left) == bytes.substr(4 * kReadAlignment));
    CHECK(engine->stats().reads == 2);
    CHECK(engine->stats().bytes == 2 * kReadAlignment + left);
    CHECK(engine->stats().errors == 0);
  }
}

TEST_CASE("B-15: a file that ends too early is named, with what was found",
          "[io]") {
  TempDir dir;
  penstock::test::WriteAll(dir / "cut.pshard", Pattern(kReadAlignment + 7));
  const auto file = ReadFile::Open(dir / "cut.pshard").value();
  for (const Backend backend : Backends()) {
    const auto engine = Start(backend);
    CAPTURE(engine->backend());
    Buffer b(2 * kReadAlignment);
    const auto one_more =
        ReadNow(*engine, {file, 0, b.span(), kReadAlignment + 8, {}});
    CHECK(one_more.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(one_more.message()),
               Catch::Contains("cut.pshard") && Catch::Contains("4103") &&
                   Catch::Contains("4104"));
    const auto behind =
        ReadNow(*engine, {file, 4 * kReadAlignment, b.span(), 1, {}});
    CHECK(behind.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(behind.message()), Catch::Contains("byte 16384"));
    CHECK(engine->stats().errors == 2);
    // It goes on reading.
    CHECK(ReadNow(*engine, {file, 0, b.span(), kReadAlignment + 7, {}}).ok());
  }
}

TEST_CASE("read engine: what is not aligned is refused, not rounded", "[io]") {
  TempDir dir;
  penstock::test::WriteAll(dir / "f", Pattern(4 * kReadAlignment));
  const auto file = ReadFile::Open(dir / "f").value();
  Buffer b(2 * kReadAlignment);
  for (const Backend backend : Backends()) {
    const auto engine = Start(backend);
    CAPTURE(engine->backend());
    const ReadRequest bad[] = {
        {file, 1, b.span(), 1, {}},
        {file, 0, b.span().subspan(1, kReadAlignment), 1, {}},
        {file, 0, b.span().first(kReadAlignment + 1), 1, {}},
        {file, 0, {}, 0, {}},
        {nullptr, 0, b.span(), 1, {}},
    };
    for (ReadRequest r : bad) {
      r.done = [](absl::Status) { FAIL_CHECK("a refused read is not done"); };
      CHECK(engine->Submit(r).code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST_CASE("read file: errors name the path", "[io]") {
  TempDir dir;
  const auto none = ReadFile::Open(dir / "none");
  CHECK(none.status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(none.status().message()),
             Catch::Contains(dir / "none"));
  const auto folder = ReadFile::Open(dir.path());
  CHECK(folder.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(folder.status().message()),
             Catch::Contains(dir.path()));
}

TEST_CASE("B-9: a pipe in the place of a shard is refused, not waited for",
          "[io]") {
  TempDir dir;
  REQUIRE(::mkfifo((dir / "shard").c_str(), 0600) == 0);
  CHECK(ReadFile::Open(dir / "shard").status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("read engine: 1000 random reads equal pread", "[io][property]") {
  const std::uint64_t seed = penstock::test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  TempDir dir;
  const std::string bytes = Pattern(3'000'001);
  penstock::test::WriteAll(dir / "f", bytes);
  const auto file = ReadFile::Open(dir / "f").value();
  const std::size_t pages = bytes.size() / kReadAlignment;
  for (const Backend backend : Backends()) {
    std::mt19937_64 random(seed);
    constexpr int kReads = 1000;
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<std::uint64_t> offsets(kReads), needs(kReads);
    std::vector<absl::Status> got(kReads, absl::UnknownError("not done"));
    std::vector<int> calls(kReads, 0);
    {
      std::mutex mutex;
      std::condition_variable changed;
      int left = kReads;
      const auto engine = Start(backend, 4);
      CAPTURE(engine->backend());
      for (int i = 0; i < kReads; ++i) {
        const auto n = static_cast<std::size_t>(i);
        offsets[n] = random() % (pages + 1) * kReadAlignment;
        const std::size_t size = (1 + random() % 16) * kReadAlignment;
        needs[n] = std::min<std::uint64_t>(size, bytes.size() - offsets[n]);
        buffers.push_back(std::make_unique<Buffer>(size));
        REQUIRE(engine
                    ->Submit({file, offsets[n], buffers[n]->span(), needs[n],
                              [&, n](absl::Status s) {
                                std::lock_guard lock(mutex);
                                got[n] = std::move(s);
                                ++calls[n];
                                if (--left == 0) changed.notify_one();
                              }})
                    .ok());
      }
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return left == 0; });
      CHECK(engine->stats().reads == kReads);
    }
    int wrong = 0;
    for (std::size_t i = 0; i < kReads; ++i) {
      wrong += !got[i].ok() || calls[i] != 1 ||
               buffers[i]->text(needs[i]) != bytes.substr(offsets[i], needs[i]);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("read engine: a full backlog answers not now, and calls nothing",
          "[io]") {
  TempDir dir;
  penstock::test::WriteAll(dir / "f", Pattern(kReadAlignment));
  const auto file = ReadFile::Open(dir / "f").value();
  for (const Backend backend : Backends()) {
    Buffer b(kReadAlignment);
    std::promise<void> inside, go;
    std::shared_future<void> may_go = go.get_future().share();
    std::atomic<int> done{0};
    {
      const auto engine = Start(backend, 1, 3);
      CAPTURE(engine->backend());
      // The engine's only thread stands in this callback.
      REQUIRE(engine
                  ->Submit({file, 0, b.span(), 1,
                            [&](absl::Status) {
                              inside.set_value();
                              may_go.wait();
                              ++done;
                            }})
                  .ok());
      inside.get_future().wait();
      ReadRequest r{file, 0, b.span(), 1, [&](absl::Status) { ++done; }};
      for (int i = 0; i < 3; ++i) REQUIRE(engine->Submit(r).ok());
      for (int i = 0; i < 3; ++i) {
        CHECK(engine->Submit(r).code() == absl::StatusCode::kResourceExhausted);
      }
      CHECK(done.load() == 0);
      go.set_value();
    }
    CHECK(done.load() == 4);  // refused ones never
  }
}

TEST_CASE("read engine: destruction completes every read once, done or cancelled",
          "[io]") {
  TempDir dir;
  const std::string bytes = Pattern(64 * kReadAlignment);
  penstock::test::WriteAll(dir / "f", bytes);
  const auto file = ReadFile::Open(dir / "f").value();
  for (const Backend backend : Backends()) {
    for (int round = 0; round < 5; ++round) {
      constexpr int kReads = 400;
      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<std::atomic<int>> calls(kReads);
      std::atomic<int> wrong{0};
      std::promise<void> first;
      std::atomic<bool> told{false};
      {
        const auto engine = Start(backend, 2);
        for (std::size_t i = 0; i < kReads; ++i) {
          buffers.push_back(std::make_unique<Buffer>(16 * kReadAlignment));
          REQUIRE(engine
                      ->Submit({file, 0, buffers[i]->span(),
                                16 * kReadAlignment,
                                [&, i](absl::Status s) {
                                  ++calls[i];
                                  const bool whole =
                                      s.ok() &&
                                      std::memcmp(buffers[i]->span().data(),
                                                  bytes.data(),
                                                  16 * kReadAlignment) == 0;
                                  if (!whole && s.code() !=
                                                    absl::StatusCode::kCancelled) {
                                    ++wrong;
                                  }
                                  if (!told.exchange(true)) first.set_value();
                                }})
                      .ok());
        }
        first.get_future().wait();
      }
      int once = 0;
      for (const auto& c : calls) once += c.load() == 1;
      CHECK(once == kReads);
      CHECK(wrong.load() == 0);
    }
  }
}

TEST_CASE("read engine: a read may be asked for in a callback", "[io]") {
  TempDir dir;
  penstock::test::WriteAll(dir / "f", Pattern(kReadAlignment));
  const auto file = ReadFile::Open(dir / "f").value();
  for (const Backend backend : Backends()) {
    Buffer b(kReadAlignment);
    const auto engine = Start(backend, 1);
    std::promise<absl::Status> second;
    REQUIRE(engine
                ->Submit({file, 0, b.span(), 1,
                          [&](absl::Status) {
                            auto s = engine->Submit(
                                {file, 0, b.span(), 1, [&](absl::Status t) {
                                   second.set_value(std::move(t));
                                 }});
                            if (!s.ok()) second.set_value(s);
                          }})
                .ok());
    CHECK(second.get_future().get().ok());
  }
}

// In a child that may not set up a ring: 0 when `test` says so.
template <typename Test>
int WithoutUring(Test test) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // seccomp_data.nr
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{4, filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(9);
    }
    ::_exit(test() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST_CASE("read engine: where io_uring is refused, pread reads and says why",
          "[io]") {
  TempDir dir;
  const std::string bytes = Pattern(2 * kReadAlignment);
  penstock::test::WriteAll(dir / "f", bytes);
  CHECK(WithoutUring([&] {
          std::string why;
          auto engine = StartReadEngine({.backend = Backend::kAuto}, &why);
          if (!engine.ok() || (*engine)->backend() != "pread") return false;
          if (why.find("io_uring") == std::string::npos) return false;
          Buffer b(2 * kReadAlignment);
          auto file = ReadFile::Open(dir / "f");
          return file.ok() &&
                 ReadNow(**engine, {*file, 0, b.span(), bytes.size(), {}}).ok() &&
                 b.text(bytes.size()) == bytes;
        }) == 0);
  CHECK(WithoutUring([&] {
          auto engine = StartReadEngine({.backend = Backend::kUring}, nullptr);
          return engine.status().code() ==
                     absl::StatusCode::kFailedPrecondition &&
                 std::string(engine.status().message()).find("io: auto") !=
                     std::string::npos;
        }) == 0);
}

}  // namespace
}  // namespace penstock::io
