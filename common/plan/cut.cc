#include "common/plan/cut.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

bool Works(std::uint64_t batch, std::uint64_t micro, std::uint64_t world) {
  return batch % world == 0 && (micro == 0 || batch / world % micro == 0);
}

// Batch sizes next to `batch` that `world` ranks share in whole microbatches.
std::string NearBatches(std::uint64_t batch, std::uint64_t micro,
                        std::uint64_t world) {
  const std::uint64_t unit = world * std::max<std::uint64_t>(micro, 1);
  const std::uint64_t low = batch / unit * unit;
  return low == 0 ? absl::StrCat(unit) : absl::StrCat(low, " or ", low + unit);
}

// Worlds next to `world` that share the batch. World 1 always does, as the
// microbatch divides the batch.
std::string NearWorlds(std::uint64_t batch, std::uint64_t micro,
                       std::uint64_t world) {
  std::uint64_t low = std::min(world, batch), high = world;
  while (low > 0 && !Works(batch, micro, low)) --low;
  while (high <= batch && !Works(batch, micro, high)) ++high;
  std::string text = low > 0 ? absl::StrCat(low) : "";
  if (high <= batch) absl::StrAppend(&text, text.empty() ? "" : " or ", high);
  return text.empty() ? "none" : text;
}

}  // namespace

absl::Status CheckCut(std::uint64_t global_batch, std::uint64_t microbatch,
                      std::uint32_t world) {
  if (world > 0 && Works(global_batch, microbatch, world)) {
    return absl::OkStatus();
  }
  if (world == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "cut",
                      .what = "no data ranks",
                      .found = "a world of 0",
                      .expected = "1 or more",
                      .action = "correct the world"});
  }
  const std::string micro =
      microbatch == 0 ? ""
                      : absl::StrCat(" in whole microbatches of ", microbatch);
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "cut",
       .what =
           absl::StrCat(world, " ranks cannot share the global batch", micro),
       .found = absl::StrCat("global batch ", global_batch, ", world ", world),
       .expected = absl::StrCat(
           "global batch ", NearBatches(global_batch, microbatch, world),
           " for this world; world ",
           NearWorlds(global_batch, microbatch, world), " for this batch"),
       .action = "change one of them; a change of the global batch changes the "
                 "data of every step"});
}

absl::StatusOr<std::vector<std::uint64_t>> ItemsOfRank(
    std::uint64_t global_batch, std::uint64_t microbatch, std::uint32_t world,
    Rank rank) {
  PENSTOCK_RETURN_IF_ERROR(CheckCut(global_batch, microbatch, world));
  if (rank.value >= world) {
    return MakeError(absl::StatusCode::kOutOfRange,
                     {.where = "cut",
                      .what = "no such data rank",
                      .found = absl::StrCat("rank ", rank.value, " of ", world),
                      .expected = absl::StrCat("0 to ", world - 1),
                      .action = "correct the rank or the world"});
  }
  std::vector<std::uint64_t> items;
  items.reserve(global_batch / world);
  for (std::uint64_t i = rank.value; i < global_batch; i += world) {
    items.push_back(i);
  }
  return items;
}

absl::StatusOr<std::vector<std::vector<std::uint64_t>>> AssignToRanks(
    std::uint64_t global_batch, std::uint64_t microbatch, std::uint32_t world) {
  PENSTOCK_RETURN_IF_ERROR(CheckCut(global_batch, microbatch, world));
  std::vector<std::vector<std::uint64_t>> ranks(world);
  for (std::uint32_t r = 0; r < world; ++r) {
    PENSTOCK_ASSIGN_OR_RETURN(
        ranks[r], ItemsOfRank(global_batch, microbatch, world, Rank{r}));
  }
  return ranks;
}

}  // namespace penstock::plan
