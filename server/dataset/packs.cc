#include "server/dataset/packs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "common/hash/hash.h"
#include "server/dataset/cache_file.h"
#include "server/dataset/mapped_file.h"

namespace penstock::dataset {
namespace {

// The file, little-endian: magic, key, windows (u64), packs of each (u32), and
// XXH3-64 of what comes before.
constexpr std::string_view kMagic = "PSPACK1\n";
constexpr std::size_t kHeadBytes = 8 + 32 + 8;
constexpr std::size_t kSumBytes = 8;
constexpr std::uint64_t kFileBytesMax = 1ull << 30;

constexpr std::size_t kBatchOfThread = 8;  // windows
constexpr std::uint64_t kSaveEvery = 256;  // windows
constexpr auto kWorthSaving = std::chrono::milliseconds(50);

void Put(std::vector<std::uint8_t>& out, const void* data, std::size_t bytes) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  out.insert(out.end(), p, p + bytes);
}

std::vector<std::uint8_t> Encode(const Digest256& key,
                                 const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint8_t> out;
  const std::uint64_t windows = counts.size();
  out.reserve(kHeadBytes + counts.size() * sizeof(std::uint32_t) + kSumBytes);
  Put(out, kMagic.data(), kMagic.size());
  Put(out, key.data(), key.size());
  Put(out, &windows, sizeof windows);
  Put(out, counts.data(), counts.size() * sizeof(std::uint32_t));
  const std::uint64_t sum = hash::Xxh3_64(out);
  Put(out, &sum, sizeof sum);
  return out;
}

// None when it is not what Encode made under the key.
std::vector<std::uint32_t> Decode(const Digest256& key, std::string_view text) {
  std::uint64_t windows = 0, sum = 0;
  if (text.size() < kHeadBytes + kSumBytes || !text.starts_with(kMagic) ||
      std::memcmp(text.data() + kMagic.size(), key.data(), key.size()) != 0) {
    return {};
  }
  std::memcpy(&windows, text.data() + kHeadBytes - sizeof windows, sizeof windows);
  const std::size_t body = text.size() - kSumBytes;
  if (windows > kFileBytesMax ||
      body != kHeadBytes + windows * sizeof(std::uint32_t)) {
    return {};
  }
  std::memcpy(&sum, text.data() + body, sizeof sum);
  if (hash::Xxh3_64({reinterpret_cast<const std::uint8_t*>(text.data()), body}) !=
      sum) {
    return {};
  }
  std::vector<std::uint32_t> counts(windows);
  std::memcpy(counts.data(), text.data() + kHeadBytes,
              windows * sizeof(std::uint32_t));
  return counts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Packs>> Packs::Open(
    std::shared_ptr<const plan::Planner> planner, const Digest256& key,
    std::string file) {
  PENSTOCK_ASSIGN_OR_RETURN(plan::PackPlan plan, planner->MakePacks());
  std::unique_ptr<Packs> out(
      new Packs(std::move(planner), key, std::move(file), std::move(plan)));
  PENSTOCK_RETURN_IF_ERROR(out->Load());
  return out;
}

absl::Status Packs::Load() {
  if (file_.empty()) return absl::OkStatus();
  const auto text = ReadSmallFile(file_, kFileBytesMax);
  if (!text.ok()) return absl::OkStatus();
  const std::vector<std::uint32_t> counts = Decode(key_, *text);
  PENSTOCK_ASSIGN_OR_RETURN(const std::size_t taken, plan_.Append(counts, true));
  if (taken != counts.size()) {
    PENSTOCK_ASSIGN_OR_RETURN(plan_, planner_->MakePacks());
  }
  saved_windows_ = plan_.windows();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint32_t>> Packs::CountOf(
    const std::vector<plan::PackWindow>& windows) const {
  std::vector<std::uint32_t> counts(windows.size());
  std::vector<absl::Status> failed(windows.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < windows.size();) {
      const auto packed = plan::PackOne(*planner_->plan_inputs(), *plan_.stream(),
                                        windows[i]);
      failed[i] = packed.status();
      if (packed.ok()) counts[i] = static_cast<std::uint32_t>(packed->packs.size());
    }
  };
  const std::size_t threads = std::min<std::size_t>(
      std::max(1u, std::thread::hardware_concurrency()), windows.size());
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  others.clear();  // joined
  for (const absl::Status& status : failed) PENSTOCK_RETURN_IF_ERROR(status);
  return counts;
}

absl::Status Packs::Count(std::uint64_t count) {
  const std::size_t batch =
      kBatchOfThread * std::max(1u, std::thread::hardware_concurrency());
  const auto begin = std::chrono::steady_clock::now();
  while (plan_.packs() < count && !plan_.ended()) {
    // About as many windows as are missing.
    const std::uint64_t mean =
        plan_.windows() == 0 ? 1 : std::max<std::uint64_t>(
                                       1, plan_.packs() / plan_.windows());
    const std::uint64_t missing = (count - plan_.packs() + mean - 1) / mean;
    const auto windows = plan_.Next(std::min<std::uint64_t>(batch, missing));
    const auto counts = CountOf(windows);
    if (!counts.ok()) {
      Save();
      return counts.status();
    }
    PENSTOCK_RETURN_IF_ERROR(plan_.Append(*counts).status());
    if (plan_.windows() - saved_windows_ >= kSaveEvery) Save();
    if (progress_) progress_(plan_.packs(), count);
  }
  if (std::chrono::steady_clock::now() - begin >= kWorthSaving) Save();
  return absl::OkStatus();
}

// A folder that cannot be written only costs the counting the next time.
void Packs::Save() {
  if (file_.empty() || plan_.windows() == saved_windows_) return;
  KeepFile(file_, Encode(key_, plan_.counts())).IgnoreError();
  saved_windows_ = plan_.windows();
}

}  // namespace penstock::dataset
