#include "server/pipeline/worker_pool.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "common/hash/hash.h"
#include "tests/unit/worker/clip.h"

namespace penstock::pipeline {
namespace {

using shm::JobReason;

const char* const kDecoder = PENSTOCK_BIN_DIR "/penstock-decoder";
const char* const kH264 =
    PENSTOCK_SOURCE_DIR "/tests/data/captures/freedoom2-map01/video.mp4";

const test::Clip& SharedClip() {
  static const test::Clip clip = test::LoadClip(kH264, {.packets_max = 120});
  return clip;
}

// Results by job, and a way to wait for them.
class Results {
 public:
  JobCallback For(std::size_t index) {
    {
      std::lock_guard lock(mutex_);
      if (results_.size() <= index) results_.resize(index + 1);
      ++expected_;
    }
    return [this, index](JobResult r) {
      std::lock_guard lock(mutex_);
      results_[index] = std::move(r);
      ++arrived_;
      changed_.notify_all();
    };
  }
  std::vector<JobResult> Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ == expected_; });
    return results_;
  }
  void WaitFor(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= n; });
  }
  std::size_t arrived() {
    std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<JobResult> results_;
  std::size_t expected_ = 0, arrived_ = 0;
};

struct Rig {
  explicit Rig(WorkerPoolOptions options, const test::Clip& c = SharedClip(),
               std::uint64_t arena_bytes = 8u << 20)
      : clip(c) {
    options.decoder_path = kDecoder;
    auto started = WorkerPool::Start(options, [this] { deaths.fetch_add(1); });
    REQUIRE(started.ok());
    pool = std::move(*started);
    arena = *shm::Arena::Create(arena_bytes);
    input = *shm::Arena::Create(clip.input.size());
    std::memcpy(input->bytes().data(), clip.input.data(), clip.input.size());
    auto added = pool->AddArena(*arena, *input);
    REQUIRE(added.ok());
    id = *added;
    REQUIRE(arena->Seal().ok());
  }
  // Six jobs of twenty frames; destinations are the jobs' own.
  std::vector<shm::DecodeJob> Jobs() const {
    std::vector<shm::DecodeJob> jobs;
    std::uint64_t at = 0;
    for (std::uint32_t j = 0; j < 6; ++j) {
      std::vector<std::uint32_t> frames;
      for (std::uint32_t i = 0; i < 20; ++i) frames.push_back(i * 6 + j);
      jobs.push_back(test::JobFor(clip, frames, {test::SmallRgb(clip)}, at));
      at += test::TargetBytes(jobs.back());
    }
    return jobs;
  }
  Digest128 ArenaDigest() const { return hash::Xxh3_128(arena->bytes()); }

  const test::Clip& clip;
  std::atomic<int> deaths{0};
  std::unique_ptr<shm::Arena> arena, input;
  ArenaId id = 0;
  std::unique_ptr<WorkerPool> pool;  // ends before the areas
};

// What a quiet run leaves, once for all tests.
const Digest128& ExpectedArena() {
  static const Digest128 expected = [] {
    Rig rig({.workers = 1});
    Results results;
    const auto jobs = rig.Jobs();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
    }
    for (const auto& r : results.Wait()) REQUIRE(r.status.ok());
    return rig.ArenaDigest();
  }();
  return expected;
}

// Waits on an event of the pool (its statistics), bounded by the test's limit.
template <typename F>
WorkerPoolStats Until(const WorkerPool& pool, F condition) {
  for (;;) {
    const auto stats = pool.stats();
    if (condition(stats)) return stats;
    std::this_thread::yield();
  }
}

TEST_CASE("pool: same bytes whatever the number of workers", "[pool]") {
  for (std::uint32_t workers : {1u, 2u, 4u}) {
    Rig rig({.workers = workers});
    Results results;
    const auto jobs = rig.Jobs();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
    }
    const auto all = results.Wait();
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      REQUIRE(all[j].status.ok());
      CHECK(all[j].attempts == 1);
      CHECK(all[j].cpu_ns > 0);
      REQUIRE(all[j].digests.size() == jobs[j].targets.size());
      for (std::size_t i = 0; i < jobs[j].targets.size(); ++i) {
        CHECK(hash::Xxh3_128(rig.arena->bytes().subspan(
                  jobs[j].targets[i].destination,
                  layout::FrameBytes(jobs[j].transforms[0]))) ==
              all[j].digests[i]);
      }
    }
    CHECK(rig.ArenaDigest() == ExpectedArena());
    const auto stats = rig.pool->stats();
    CHECK(stats.jobs_done == 6);
    CHECK(stats.frames == 120);
  }
}

TEST_CASE("pool: kill -9 of workers in mid-job changes no byte (B-34)",
          "[pool]") {
  const Digest128 expected = ExpectedArena();
  Rig rig({.workers = 2, .kills_max = 1000});
  Results results;
  const auto jobs = rig.Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
  }
  // Kill as long as something runs, but let some attempts finish: 25 kills.
  std::uint64_t kills = 0;
  while (kills < 25 && results.arrived() < jobs.size()) {
    const auto stats = Until(*rig.pool, [&](const WorkerPoolStats& s) {
      return results.arrived() == jobs.size() ||
             (s.jobs_running > 0 && !s.worker_pids.empty() &&
              s.worker_kills >= kills);
    });
    if (results.arrived() == jobs.size() || stats.worker_pids.empty()) break;
    for (const auto pid : stats.worker_pids) {
      if (kill(pid, SIGKILL) == 0) break;
    }
    ++kills;
    Until(*rig.pool, [&](const WorkerPoolStats& s) {
      return s.worker_kills >= kills || results.arrived() == jobs.size();
    });
  }
  for (const auto& r : results.Wait()) {
    INFO(r.status.ToString());
    REQUIRE(r.status.ok());
  }
  CHECK(rig.ArenaDigest() == expected);
  CHECK(rig.pool->stats().jobs_retried > 0);
}

TEST_CASE("pool: a worker that hangs is restarted and its job run again",
          "[pool]") {
  const Digest128 expected = ExpectedArena();
  Rig rig({.workers = 1, .watchdog_ms = 3000});
  const auto stats = Until(*rig.pool, [](const WorkerPoolStats& s) {
    return s.workers_alive == 1;
  });
  REQUIRE(kill(stats.worker_pids[0], SIGSTOP) == 0);
  Results results;
  const auto jobs = rig.Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
  }
  const auto all = results.Wait();
  for (const auto& r : all) REQUIRE(r.status.ok());
  CHECK(all[0].attempts == 2);
  CHECK(rig.pool->stats().worker_timeouts == 1);
  CHECK(rig.ArenaDigest() == expected);
}

TEST_CASE("pool: a hang that repeats is a deadline, not bad data", "[pool]") {
  Rig rig({.workers = 1, .watchdog_ms = 1, .timeouts_max = 3});
  std::vector<std::uint32_t> frames;
  for (std::uint32_t i = 0; i < 120; ++i) frames.push_back(i);
  Results results;
  REQUIRE(rig.pool->Submit(rig.id,
                           test::JobFor(rig.clip, frames,
                                        {test::SmallRgb(rig.clip)}),
                           results.For(0))
              .ok());
  const auto r = results.Wait()[0];
  CHECK(r.status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(r.reason == JobReason::kTimeout);
  CHECK(r.attempts == 3);
}

TEST_CASE("pool: a job that ends two workers is data loss, by name", "[pool]") {
  Rig rig({.workers = 1});
  const auto jobs = rig.Jobs();
  std::atomic<int> ended{0};
  Results results;
  REQUIRE(rig.pool->Submit(rig.id, jobs[0], results.For(0)).ok());
  while (results.arrived() == 0 && ended < 2) {
    const auto stats = Until(*rig.pool, [&](const WorkerPoolStats& s) {
      return results.arrived() != 0 ||
             (s.jobs_running == 1 && s.worker_pids.size() == 1 &&
              s.worker_crashes == static_cast<std::uint64_t>(ended));
    });
    if (results.arrived() != 0) break;
    kill(stats.worker_pids[0], SIGSEGV);  // what a decoder's bug looks like
    ++ended;
    Until(*rig.pool, [&](const WorkerPoolStats& s) {
      return results.arrived() != 0 ||
             s.worker_crashes == static_cast<std::uint64_t>(ended);
    });
  }
  const auto r = results.Wait()[0];
  CHECK(r.status.code() == absl::StatusCode::kDataLoss);
  CHECK(r.reason == JobReason::kWorkerDied);
  CHECK(r.attempts == 2);
  CHECK(std::string(r.status.message()).find("signal 11") != std::string::npos);
  // The pool lives.
  Results more;
  REQUIRE(rig.pool->Submit(rig.id, jobs[1], more.For(0)).ok());
  CHECK(more.Wait()[0].status.ok());
}

TEST_CASE("pool: bad data fails twice in different workers, a bad block once",
          "[pool]") {
  const test::Clip spoiled =
      test::LoadClip(kH264, {.packets_max = 20, .spoil_frame = 5});
  SECTION("hash") {
    Rig rig({.workers = 1}, spoiled);
    Results results;
    REQUIRE(rig.pool->Submit(rig.id,
                             test::JobFor(spoiled, {5},
                                          {test::SmallRgb(spoiled)}),
                             results.For(0)).ok());
    const auto r = results.Wait()[0];
    CHECK(r.status.code() == absl::StatusCode::kDataLoss);
    CHECK(r.reason == JobReason::kHashDiffers);
    CHECK(r.attempts == 2);
    CHECK(r.digests.empty());
  }
  SECTION("block") {
    test::Clip damaged = spoiled;
    damaged.input[200] ^= 1;
    Rig rig({.workers = 1}, damaged);
    Results results;
    REQUIRE(rig.pool->Submit(rig.id,
                             test::JobFor(damaged, {3},
                                          {test::SmallRgb(damaged)}),
                             results.For(0)).ok());
    const auto r = results.Wait()[0];
    CHECK(r.reason == JobReason::kBlockDamaged);
    CHECK(r.attempts == 1);
  }
}

TEST_CASE("pool: bounded queue, wrong jobs and unknown arenas are refused",
          "[pool]") {
  Rig rig({.workers = 1, .queue_max = 3});
  const auto jobs = rig.Jobs();
  const auto stats = Until(*rig.pool, [](const WorkerPoolStats& s) {
    return s.workers_alive == 1;
  });
  REQUIRE(kill(stats.worker_pids[0], SIGSTOP) == 0);  // nothing moves now
  Results results;
  REQUIRE(rig.pool->Submit(rig.id, jobs[0], results.For(0)).ok());
  Until(*rig.pool, [](const WorkerPoolStats& s) { return s.jobs_running == 1; });
  for (std::size_t i = 1; i <= 3; ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
  }
  bool called = false;
  const auto refuse = [&](JobResult) { called = true; };
  CHECK(rig.pool->Submit(rig.id, jobs[4], refuse).code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(rig.pool->Submit(rig.id + 1, jobs[4], refuse).code() ==
        absl::StatusCode::kNotFound);
  auto outside = jobs[4];
  outside.targets[0].destination = rig.arena->size();
  CHECK(rig.pool->Submit(rig.id, outside, refuse).code() ==
        absl::StatusCode::kInvalidArgument);
  REQUIRE(kill(stats.worker_pids[0], SIGCONT) == 0);
  for (const auto& r : results.Wait()) CHECK(r.status.ok());
  CHECK_FALSE(called);
}

TEST_CASE("pool: stop cancels what waits and runs, leaves no process (B-34)",
          "[pool]") {
  auto rig = std::make_unique<Rig>(WorkerPoolOptions{.workers = 2});
  Results results;
  const auto jobs = rig->Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig->pool->Submit(rig->id, jobs[i], results.For(i)).ok());
  }
  const auto stats = Until(*rig->pool, [](const WorkerPoolStats& s) {
    return s.workers_alive == 2;
  });
  const auto zygote = rig->pool->zygote_pid();
  rig->pool->Stop();
  CHECK(results.arrived() == jobs.size());
  for (const auto& r : results.Wait()) {
    CHECK((r.status.ok() || r.status.code() == absl::StatusCode::kCancelled));
  }
  CHECK(rig->pool->Submit(rig->id, jobs[0], {}).code() ==
        absl::StatusCode::kUnavailable);
  CHECK(kill(zygote, 0) != 0);
  const auto after = rig->ArenaDigest();
  rig->pool.reset();
  CHECK(rig->ArenaDigest() == after);
  CHECK(rig->deaths == 0);
}

TEST_CASE("pool: death of the zygote is a named error, and ends the workers",
          "[pool]") {
  Rig rig({.workers = 2});
  Results results;
  const auto jobs = rig.Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
  }
  Until(*rig.pool, [](const WorkerPoolStats& s) { return s.jobs_running > 0; });
  REQUIRE(kill(rig.pool->zygote_pid(), SIGKILL) == 0);
  std::size_t unavailable = 0;
  for (const auto& r : results.Wait()) {
    unavailable += r.status.code() == absl::StatusCode::kUnavailable;
    CHECK((r.status.ok() || r.status.code() == absl::StatusCode::kUnavailable));
  }
  CHECK(unavailable > 0);
  const auto s = rig.pool->Submit(rig.id, jobs[0], {});
  CHECK(s.code() == absl::StatusCode::kUnavailable);
  CHECK(std::string(s.message()).find("decoder zygote died") !=
        std::string::npos);
  CHECK(rig.pool->DropArena(rig.id).ok());
  CHECK(rig.deaths == 1);
  // A new pool and a new arena give the same bytes.
  Rig again({.workers = 2});
  Results more;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(again.pool->Submit(again.id, jobs[i], more.For(i)).ok());
  }
  for (const auto& r : more.Wait()) REQUIRE(r.status.ok());
  CHECK(again.ArenaDigest() == ExpectedArena());
}

TEST_CASE("pool: arenas come and go beside each other", "[pool]") {
  Rig rig({.workers = 1});
  auto second = *shm::Arena::Create(8u << 20);
  auto id = rig.pool->AddArena(*second, *rig.input);
  REQUIRE(id.ok());
  REQUIRE(second->Seal().ok());
  CHECK(rig.pool->AddArena(*second, *rig.input).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  Results results;
  const auto jobs = rig.Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(2 * i)).ok());
    REQUIRE(rig.pool->Submit(*id, jobs[i], results.For(2 * i + 1)).ok());
  }
  REQUIRE(rig.pool->DropArena(rig.id).ok());
  CHECK(rig.pool->DropArena(rig.id).code() == absl::StatusCode::kNotFound);
  // Nobody writes to a dropped arena any more.
  const auto dropped = rig.ArenaDigest();
  const auto all = results.Wait();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK((all[2 * i].status.ok() ||
           all[2 * i].status.code() == absl::StatusCode::kCancelled));
    CHECK(all[2 * i + 1].status.ok());
  }
  CHECK(rig.ArenaDigest() == dropped);
  CHECK(hash::Xxh3_128(second->bytes()) == ExpectedArena());
}

TEST_CASE("pool: workers are recycled without losing a job", "[pool]") {
  Rig rig({.workers = 1, .jobs_per_worker = 2});
  Results results;
  const auto jobs = rig.Jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(rig.pool->Submit(rig.id, jobs[i], results.For(i)).ok());
  }
  for (const auto& r : results.Wait()) REQUIRE(r.status.ok());
  CHECK(rig.pool->stats().worker_recycled == 3);
  CHECK(rig.ArenaDigest() == ExpectedArena());
}

TEST_CASE("pool: a worker holds nothing but its socket and one arena",
          "[pool]") {
  const int extra = open("/dev/zero", O_RDONLY);  // not close-on-exec
  Rig rig({.workers = 1});
  auto second = *shm::Arena::Create(1u << 20);
  REQUIRE(rig.pool->AddArena(*second, *rig.input).ok());
  const auto stats = Until(*rig.pool, [](const WorkerPoolStats& s) {
    return s.workers_alive == 2;
  });
  Results results;  // a finished job: confinement is complete by then
  REQUIRE(rig.pool->Submit(rig.id, rig.Jobs()[0], results.For(0)).ok());
  REQUIRE(results.Wait()[0].status.ok());
  const std::string proc = "/proc/" + std::to_string(stats.worker_pids[0]);
  std::set<int> fds;
  for (const auto& e : std::filesystem::directory_iterator(proc + "/fd")) {
    fds.insert(std::stoi(e.path().filename()));
  }
  CHECK(fds == std::set<int>{0, 1, 2, 3});
  std::ifstream maps(proc + "/maps");
  int areas = 0;
  for (std::string line; std::getline(maps, line);) {
    areas += line.find("memfd:penstock") != std::string::npos;
  }
  CHECK(areas == 2);  // its arena and its input area
  std::ifstream status(proc + "/status");
  std::string all((std::istreambuf_iterator<char>(status)), {});
  CHECK(all.find("NoNewPrivs:\t1") != std::string::npos);
  CHECK(all.find("Threads:\t1") != std::string::npos);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(all.find("Seccomp:\t2") != std::string::npos);
#endif
  close(extra);
}

TEST_CASE("pool: start names what is wrong with the program", "[pool]") {
  const auto code = [](const std::string& path) {
    return WorkerPool::Start({.decoder_path = path}).status().code();
  };
  CHECK(code("/nowhere/penstock-decoder") == absl::StatusCode::kNotFound);
  CHECK(code("/bin/true") == absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace penstock::pipeline
