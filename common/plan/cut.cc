#include "common/plan/cut.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/plan/balance.h"
#include "common/plan/local_cut.h"
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

absl::Status Refused(std::uint64_t global_batch, std::uint64_t microbatch,
                     std::uint32_t world) {
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
       .action = "change one of them, or mask the rest (uneven: mask); a change of "
                 "the global batch changes the data of every step"});
}

absl::Status LanesRefused(std::uint64_t lanes, std::uint32_t world) {
  std::uint64_t low = std::min<std::uint64_t>(world, lanes), high = world;
  while (lanes % low != 0) --low;
  while (high <= lanes && lanes % high != 0) ++high;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "cut",
       .what = absl::StrCat(world, " ranks cannot share ", lanes, " lanes"),
       .found = absl::StrCat("lanes ", lanes, ", world ", world),
       .expected = absl::StrCat("world ", low,
                                high <= lanes ? absl::StrCat(" or ", high) : "",
                                " for these lanes"),
       .action =
           "use a number of ranks that divides the lanes; a change of the "
           "lanes changes the data of every step"});
}

absl::Status SpeedsRefused(const DataRanks& ranks, std::string found,
                           std::string expected) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "cut",
       .what = absl::StrCat("speeds of ", ranks.world,
                            " data ranks, which cannot have different "
                            "shares of this feed's batch"),
       .found = std::move(found),
       .expected = std::move(expected),
       .action = "correct the feed, or declare no speeds"});
}

std::uint64_t Microbatch(const CutRule& rule) {
  return std::max<std::uint64_t>(rule.microbatch, 1);
}

// Units that each rank takes at most, whole microbatches of them.
std::vector<std::uint64_t> PlacesOf(const CutRule& rule,
                                    std::uint64_t global_batch,
                                    const DataRanks& ranks) {
  const std::uint64_t micro = Microbatch(rule);
  const std::uint64_t microbatches = (global_batch + micro - 1) / micro;
  if (ranks.speeds.empty()) {
    const std::uint64_t share = (microbatches + ranks.world - 1) / ranks.world;
    return std::vector<std::uint64_t>(ranks.world, share * micro);
  }
  auto out = MicrobatchesBySpeed(microbatches, ranks.speeds);
  for (std::uint64_t& places : out) places *= micro;
  return out;
}

// The rank of each unit: in turn ranks take `piece` of them while they have
// places.
std::vector<std::uint32_t> Deal(std::uint64_t there, std::uint64_t piece,
                                std::vector<std::uint64_t> places) {
  std::vector<std::uint32_t> turn(places.size()), out;
  std::iota(turn.begin(), turn.end(), 0u);
  out.reserve(there);
  while (out.size() < there) {
    for (const std::uint32_t r : turn) {
      const std::uint64_t taken =
          std::min({piece, places[r], there - out.size()});
      out.insert(out.end(), taken, r);
      places[r] -= taken;
    }
    std::erase_if(turn, [&](std::uint32_t r) { return places[r] == 0; });
  }
  return out;
}

}  // namespace

CutRule CutRuleOf(const FeedSpec& feed) {
  return {feed.cut, feed.microbatch,
          feed.mode == Mode::kEvaluation ? Uneven::kMask : feed.uneven,
          feed.lanes};
}

absl::StatusOr<std::uint64_t> UnitsOfRank(const CutRule& rule,
                                          std::uint64_t global_batch,
                                          const DataRanks& ranks) {
  const std::uint32_t world = ranks.world;
  if (world == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "cut",
                      .what = "no data ranks",
                      .found = "a world of 0",
                      .expected = "1 or more",
                      .action = "correct the world"});
  }
  if (rule.lanes % world != 0) return LanesRefused(rule.lanes, world);
  if (!ranks.speeds.empty() && rule.lanes != 0) {
    return SpeedsRefused(ranks, absl::StrCat("lanes ", rule.lanes), "no lanes");
  }
  if (!ranks.speeds.empty() && rule.uneven == Uneven::kError) {
    return SpeedsRefused(ranks, "uneven: error", "uneven: mask");
  }
  if (rule.uneven == Uneven::kError) {
    if (Works(global_batch, rule.microbatch, world)) return global_batch / world;
    return Refused(global_batch, rule.microbatch, world);
  }
  const auto places = PlacesOf(rule, global_batch, ranks);
  return *std::max_element(places.begin(), places.end());
}

std::vector<std::uint64_t> RoomOfRanks(const CutRule& rule,
                                       std::uint64_t global_batch,
                                       std::uint64_t there,
                                       const DataRanks& ranks) {
  std::vector<std::uint64_t> out(ranks.world);
  for (const std::uint32_t r :
       Deal(there, 1, PlacesOf(rule, global_batch, ranks))) {
    ++out[r];
  }
  return out;
}

absl::StatusOr<BatchCut> CutBatch(const CutRule& rule,
                                  std::uint64_t global_batch,
                                  std::uint64_t there, const DataRanks& ranks,
                                  std::span<const std::uint64_t> costs,
                                  std::span<const std::uint32_t> homes) {
  BatchCut out;
  PENSTOCK_ASSIGN_OR_RETURN(out.units, UnitsOfRank(rule, global_batch, ranks));
  out.ranks.resize(ranks.world);
  std::vector<std::uint32_t> of_units;
  if (rule.mode == CutMode::kBalanced) {
    if (costs.size() != there) {
      return absl::InvalidArgumentError(
          "a balanced cut needs a cost of each unit");
    }
    of_units = BalanceRanks(
        costs, RoomOfRanks(rule, global_batch, there, ranks), ranks.speeds);
  } else if (rule.mode == CutMode::kLocal) {
    if (homes.size() != there) {
      return absl::InvalidArgumentError(
          "a local cut needs the home of each unit");
    }
    of_units =
        LocalRanks(homes, ranks, RoomOfRanks(rule, global_batch, there, ranks));
  } else {
    const std::uint64_t piece = rule.mode == CutMode::kStrided ? 1
                                : rule.microbatch != 0         ? rule.microbatch
                                                               : out.units;
    of_units = Deal(there, piece, PlacesOf(rule, global_batch, ranks));
  }
  for (std::uint64_t i = 0; i < there; ++i) out.ranks[of_units[i]].push_back(i);
  return out;
}

double LossScale(std::uint64_t local, std::uint64_t global, std::uint32_t world) {
  if (global == 0) return 0;
  return static_cast<double>(local) * world / static_cast<double>(global);
}

}  // namespace penstock::plan

