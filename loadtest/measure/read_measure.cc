#include <stdlib.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"
#include "server/io/read_engine.h"

namespace penstock::loadtest {
namespace {

constexpr std::uint64_t kFileBytes = 1ull << 30;

absl::Status MakeFile(const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> block((1 << 20) / 8);
  for (std::uint64_t at = 0; at < kFileBytes; at += 1 << 20) {
    for (auto& w : block) w = random();
    out.write(reinterpret_cast<const char*>(block.data()), 1 << 20);
  }
  out.close();
  return out ? absl::OkStatus() : absl::InternalError(path + ": not written");
}

// MB/s of reading `total` bytes in blocks, `depth` at a time.
absl::StatusOr<double> ReadAll(const std::string& path, std::uint64_t block,
                               unsigned depth, bool random,
                               std::uint64_t total) {
  PENSTOCK_ASSIGN_OR_RETURN(auto file, io::ReadFile::Open(path));
  PENSTOCK_ASSIGN_OR_RETURN(
      auto engine,
      io::StartReadEngine({.backend = io::Backend::kUring, .depth = depth},
                          nullptr));
  struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<std::uint8_t, Free> memory(
      static_cast<std::uint8_t*>(std::aligned_alloc(4096, block * depth)));
  std::fill_n(memory.get(), block * depth, 0);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<unsigned> free;
  for (unsigned i = 0; i < depth; ++i) free.push_back(i);
  absl::Status failed;
  std::mt19937_64 rng(2);
  const double begin = NowSeconds();
  for (std::uint64_t done = 0; done < total; done += block) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !free.empty(); });
    const unsigned slot = free.back();
    free.pop_back();
    lock.unlock();
    io::ReadRequest r;
    r.file = file;
    r.offset = random ? rng() % (kFileBytes / block) * block : done % kFileBytes;
    r.into = {memory.get() + slot * block, block};
    r.need = block;
    r.done = [&, slot](absl::Status s) {
      {
        std::lock_guard inner(mutex);
        failed.Update(s);
        free.push_back(slot);
      }
      changed.notify_one();
    };
    PENSTOCK_RETURN_IF_ERROR(engine->Submit(std::move(r)));
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return free.size() == depth; });
  const double seconds = NowSeconds() - begin;
  PENSTOCK_RETURN_IF_ERROR(failed);
  return static_cast<double>(total) / seconds / 1e6;
}

absl::StatusOr<double> Fio(const std::string& path, std::uint64_t block,
                           unsigned depth, bool random, std::uint64_t total) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::string text,
      Shell(absl::StrFormat(
          "fio --name=r --filename=%s --rw=%s --direct=1 --ioengine=io_uring "
          "--bs=%d --iodepth=%d --size=%d --io_size=%d --output-format=json "
          "2>/dev/null",
          path, random ? "randread" : "read", block, depth, kFileBytes, total)));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return absl::InternalError("fio gave no JSON");
  return json["jobs"][0]["read"]["bw_bytes"].get<double>() / 1e6;
}

}  // namespace

absl::StatusOr<std::vector<Ratio>> MeasureRead(const Bench& bench) {
  const std::string path = bench.scratch + "/read.bin";
  PENSTOCK_RETURN_IF_ERROR(MakeFile(path));
  std::vector<Ratio> out;
  struct Case {
    const char* name;
    std::uint64_t block;
    unsigned depth;
    bool random;
    std::uint64_t total;
  };
  for (const Case& c :
       {Case{"read engine / fio, 1 MiB sequential, depth 8", 1 << 20, 8, false,
             kFileBytes},
        Case{"read engine / fio, 64 KiB random, depth 32", 64 << 10, 32, true,
             kFileBytes / 2}}) {
    PENSTOCK_ASSIGN_OR_RETURN(
        Ratio r,
        RunPairs(
            c.name, "MB/s", bench.pairs, 0.90, true,
            [&] { return ReadAll(path, c.block, c.depth, c.random, c.total); },
            [&] { return Fio(path, c.block, c.depth, c.random, c.total); }));
    out.push_back(r);
  }
  return out;
}

}  // namespace penstock::loadtest
