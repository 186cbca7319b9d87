#include "server/import/frame_times.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace penstock::import {
namespace {

// A pause longer than this many median intervals is a hole.
constexpr std::int64_t kHoleIntervals = 3;

// Ticks of the time base in one frame at `rate`, rounded; 0 when unknown.
std::int64_t TicksPerFrame(const demux::Rational& tb,
                           const demux::Rational& rate) {
  if (rate.num <= 0 || rate.den <= 0 || tb.num <= 0) return 0;
  const double t = static_cast<double>(tb.den) * rate.den /
                   (static_cast<double>(tb.num) * rate.num);
  return t < 1 ? 1 : static_cast<std::int64_t>(t + 0.5);
}

std::int64_t NominalTicks(const IngestedVideo& v) {
  if (auto t = TicksPerFrame(v.stream.time_base, v.stream.average_rate); t > 0) {
    return t;
  }
  if (auto t = TicksPerFrame(v.stream.time_base, v.stream.base_rate); t > 0) {
    return t;
  }
  return 1;
}

std::uint64_t FillUnknown(IngestedVideo& v) {
  auto& frames = v.frames;
  const std::int64_t nominal = NominalTicks(v);
  std::uint64_t made_up = 0;
  for (std::size_t i = 0; i < frames.size();) {
    if (frames[i].pts != format::kNoPts) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < frames.size() && frames[end].pts == format::kNoPts) ++end;
    const std::int64_t gaps = static_cast<std::int64_t>(end - i) + 1;
    for (std::size_t k = i; k < end; ++k) {
      const std::int64_t n = static_cast<std::int64_t>(k - i) + 1;
      std::int64_t pts;
      if (i == 0) {  // nothing before: count back from the first known
        pts = end < frames.size()
                  ? frames[end].pts -
                        static_cast<std::int64_t>(end - k) * nominal
                  : static_cast<std::int64_t>(k) * nominal;
      } else if (end == frames.size()) {
        pts = frames[i - 1].pts + n * nominal;
      } else {  // evenly between the neighbours
        __extension__ using Wide = __int128;
        pts = frames[i - 1].pts +
              static_cast<std::int64_t>(
                  static_cast<Wide>(frames[end].pts - frames[i - 1].pts) * n /
                  gaps);
      }
      frames[k].pts = pts;
      v.packets[frames[k].packet].flags |= format::kPacketSyntheticPts;
      ++made_up;
    }
    i = end;
  }
  return made_up;
}

// The decoder's order is the order; a time that does not follow it is replaced
// and flagged, never used to reorder.
std::uint64_t RepairOrder(IngestedVideo& v) {
  const std::int64_t nominal = NominalTicks(v);
  std::uint64_t repaired = 0;
  for (std::size_t i = 1; i < v.frames.size(); ++i) {
    if (v.frames[i].pts > v.frames[i - 1].pts) continue;
    v.frames[i].pts = v.frames[i - 1].pts + nominal;
    v.packets[v.frames[i].packet].flags |= format::kPacketSyntheticPts;
    ++repaired;
  }
  return repaired;
}

void FillDurations(IngestedVideo& v) {
  auto& frames = v.frames;
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    frames[i].duration = frames[i + 1].pts - frames[i].pts;
  }
  const std::int64_t last = v.packets[frames.back().packet].duration;
  frames.back().duration = last > 0 ? last : NominalTicks(v);
}

// Every pts within one tick of first + i / rate.
bool FitsRate(const IngestedVideo& v, const demux::Rational& rate) {
  if (rate.num <= 0 || rate.den <= 0) return false;
  __extension__ using Wide = __int128;
  const auto& tb = v.stream.time_base;
  const Wide num = static_cast<Wide>(rate.den) * tb.den;
  const Wide den = static_cast<Wide>(rate.num) * tb.num;
  for (std::size_t i = 0; i < v.frames.size(); ++i) {
    const Wide expected = (static_cast<Wide>(i) * num + den / 2) / den;
    const Wide found = static_cast<Wide>(v.frames[i].pts) - v.frames[0].pts;
    if (found - expected > 1 || expected - found > 1) return false;
  }
  return true;
}

void FindHoles(IngestedVideo& v) {
  if (v.frames.size() < 2) return;
  std::vector<std::int64_t> intervals;
  for (std::size_t i = 0; i + 1 < v.frames.size(); ++i) {
    intervals.push_back(v.frames[i].duration);
  }
  auto middle = intervals.begin() + intervals.size() / 2;
  std::nth_element(intervals.begin(), middle, intervals.end());
  const std::int64_t median = std::max<std::int64_t>(*middle, 1);
  for (std::size_t i = 0; i + 1 < v.frames.size(); ++i) {
    if (v.frames[i].duration > kHoleIntervals * median) {
      v.holes.push_back({v.frames[i].pts + median, v.frames[i + 1].pts, false});
    }
  }
}

}  // namespace

void CompleteFrameTimes(IngestedVideo& v) {
  const std::uint64_t made_up = FillUnknown(v);
  const std::uint64_t repaired = RepairOrder(v);
  v.synthetic_pts = made_up + repaired > 0;
  if (made_up > 0) {
    v.notes.push_back(absl::StrFormat(
        "%d of %d frames carry no time; it was made from their neighbours and "
        "the declared rate",
        made_up, v.frames.size()));
  }
  if (repaired > 0) {
    v.notes.push_back(absl::StrFormat(
        "%d frames carry a time that is not after the frame before; it was "
        "replaced", repaired));
  }
  FillDurations(v);
  for (const demux::Rational& rate :
       {v.stream.average_rate, v.stream.base_rate}) {
    if (!v.constant_rate && FitsRate(v, rate)) {
      v.constant_rate = true;
      v.stream.average_rate = rate;
    }
  }
  FindHoles(v);
}

}  // namespace penstock::import
