#include "common/plan/lanes.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/weights.h"
#include "common/random/permutation.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

// Sources in the order of the lanes.
std::vector<std::uint32_t> Merged(std::span<const std::uint32_t> lanes) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>> all;
  for (std::uint32_t s = 0; s < lanes.size(); ++s) {
    for (std::uint32_t i = 0; i < lanes[s]; ++i) {
      all.emplace_back(2 * std::uint64_t{i} + 1, 2 * std::uint64_t{lanes[s]}, s);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const std::uint64_t left = std::get<0>(a) * std::get<1>(b);
    const std::uint64_t right = std::get<0>(b) * std::get<1>(a);
    return std::tie(left, std::get<2>(a)) < std::tie(right, std::get<2>(b));
  });
  std::vector<std::uint32_t> out;
  for (const auto& [num, den, source] : all) out.push_back(source);
  return out;
}

}  // namespace

std::vector<std::uint32_t> LaneDeal::LanesOf(std::span<const std::uint32_t> quotas,
                                             std::uint32_t lanes) {
  std::vector<std::uint32_t> out;
  std::vector<std::pair<std::uint64_t, std::size_t>> rest;  // remainder, source
  std::uint32_t left = lanes;
  for (std::size_t s = 0; s < quotas.size(); ++s) {
    const std::uint64_t share = std::uint64_t{quotas[s]} * lanes;
    out.push_back(static_cast<std::uint32_t>(share / kMixturePeriod));
    left -= out.back();
    rest.emplace_back(share % kMixturePeriod, s);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::uint32_t i = 0; i < left; ++i) ++out[rest[i].second];
  return out;
}

absl::StatusOr<LaneDeal> LaneDeal::Create(const FeedSpec& feed,
                                          std::span<const std::uint32_t> lanes,
                                          std::vector<Source> sources) {
  LaneDeal out;
  out.seed_ = feed.seed;
  out.keyed_ = feed.order == OrderMode::kShuffle;
  for (const SourceSpec& s : feed.sources) out.names_.push_back(s.name);
  out.sources_ = std::move(sources);
  out.counts_.assign(lanes.begin(), lanes.end());
  std::vector<std::uint32_t> number(lanes.size());
  for (const std::uint32_t source : Merged(lanes)) {
    out.lanes_.push_back({source, number[source]++, 0, {}});
  }
  for (std::uint32_t s = 0; s < lanes.size(); ++s) {
    if (lanes[s] > 0) PENSTOCK_RETURN_IF_ERROR(out.Deal(feed, s));
  }
  return out;
}

absl::Status LaneDeal::Deal(const FeedSpec& feed, std::uint32_t source) {
  const View& view = ViewOf(source);
  const auto chunks_of = [&](std::uint32_t capture) {
    return view.FirstOf(capture + 1) - view.FirstOf(capture);
  };
  std::vector<std::uint32_t> captures;
  for (std::uint32_t c = 0; c < view.captures(); ++c) {
    if (chunks_of(c) > 0) captures.push_back(c);
  }
  if (captures.size() < counts_[source]) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where =
             absl::StrCat("feed \"", feed.name, "\", source \"", names_[source], "\""),
         .what = "fewer captures than lanes",
         .found = absl::StrCat(captures.size(), " captures with a window, ",
                               counts_[source], " lanes"),
         .expected = "a capture for each lane",
         .action = "use fewer lanes, or give the source less weight"});
  }
  std::vector<std::uint32_t> order(captures.size());
  const random::Permutation keyed(
      captures.size(), random::MakeKey(seed_, "plan.lanes.deal", names_[source],
                                       sources_[source].epoch));
  for (std::size_t i = 0; i < captures.size(); ++i) {
    order[i] = captures[keyed_ ? keyed.At(i) : i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return chunks_of(a) > chunks_of(b); });
  std::vector<std::size_t> own;  // the source's lanes
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if (lanes_[l].source == source) own.push_back(l);
  }
  using Load = std::pair<std::uint64_t, std::size_t>;  // chunks, lane of `own`
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t l = 0; l < own.size(); ++l) loads.push({0, l});
  for (const std::uint32_t capture : order) {
    const std::size_t l = loads.top().second;
    loads.pop();
    Lane& lane = lanes_[own[l]];
    lane.captures.push_back(capture);
    lane.chunks += chunks_of(capture);
    loads.push({lane.chunks, l});
  }
  for (const std::size_t l : own) {
    std::sort(lanes_[l].captures.begin(), lanes_[l].captures.end());
  }
  return absl::OkStatus();
}

LaneDeal::Chunk LaneDeal::At(std::uint32_t number, std::uint64_t chunk) const {
  const Lane& lane = lanes_[number];
  const View& view = ViewOf(lane.source);
  Chunk out{.source = lane.source, .pass = chunk / lane.chunks};
  std::uint64_t left = chunk % lane.chunks;
  const random::Permutation order(
      lane.captures.size(),
      random::MakeKey(seed_, "plan.lanes",
                      absl::StrCat(names_[lane.source], "#", lane.number),
                      sources_[lane.source].epoch + out.pass));
  for (std::uint64_t place = 0;; ++place) {
    const std::uint32_t capture = lane.captures[keyed_ ? order.At(place) : place];
    const std::uint64_t first = view.FirstOf(capture);
    const std::uint64_t chunks = view.FirstOf(capture + 1) - first;
    if (left >= chunks) {
      left -= chunks;
      continue;
    }
    out.window = first + left;
    out.reset = left == 0 || !view.GoesOn(out.window);
    return out;
  }
}

std::uint64_t LaneDeal::CountBefore(std::uint32_t source, std::uint64_t units) const {
  std::uint64_t count = units / size() * counts_[source];
  for (std::uint64_t l = 0; l < units % size(); ++l) {
    count += lanes_[l].source == source ? 1 : 0;
  }
  return count;
}

std::uint64_t LaneDeal::ChunksWithin(std::uint32_t source, std::uint64_t passes) const {
  std::uint64_t out = UINT64_MAX;
  for (const Lane& l : lanes_) {
    if (l.source != source || passes > UINT64_MAX / l.chunks) continue;
    out = std::min(out, passes * l.chunks);
  }
  return out;
}

std::uint64_t LaneDeal::PassesBegun(std::uint32_t source, std::uint64_t chunks) const {
  std::uint64_t out = 0;
  for (const Lane& l : lanes_) {
    if (l.source == source) {
      out = std::max(out, chunks / l.chunks + (chunks % l.chunks != 0 ? 1 : 0));
    }
  }
  return out;
}

}  // namespace penstock::plan
