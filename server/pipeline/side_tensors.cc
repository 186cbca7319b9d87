#include "server/pipeline/side_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/format/input_bins.h"
#include "common/format/timing.h"
#include "common/hash/hash.h"
#include "common/status/nearest_name.h"
#include "common/status/status.h"

namespace penstock::pipeline {
namespace {

using Json = nlohmann::json;

constexpr std::uint8_t kValidBit = 128;

bool KindFits(OutputKind output, const std::string& track_kind) {
  if (output == OutputKind::kColumns) {
    return track_kind == "ticks" || track_kind == "frames";
  }
  return track_kind == "events";
}

std::int32_t Saturate(std::int64_t v) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX));
}

template <typename T>
void Put(std::span<std::uint8_t> out, std::size_t index, T value) {
  std::memcpy(out.data() + index * sizeof(T), &value, sizeof(T));
}

// The intervals one after the other as boundaries, when they touch; else each
// is binned alone.
std::vector<format::InputInterval> Bin(
    std::span<const format::BlockView> blocks, const SampleTimes& times) {
  std::vector<format::InputInterval> out;
  const std::size_t n = times.begins.size();
  bool touching = true;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    touching = touching && times.ends[i] == times.begins[i + 1];
  }
  if (touching) {
    std::vector<std::int64_t> boundaries = times.begins;
    boundaries.push_back(times.ends.back());
    return format::BinInputs(blocks, boundaries);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t two[2] = {times.begins[i], times.ends[i]};
    auto one = format::BinInputs(blocks, two);
    out.push_back(one.empty() ? format::InputInterval{} : std::move(one[0]));
  }
  return out;
}

void FillKeys(const SideTrack& track, const SampleTimes& times,
              const std::vector<format::InputInterval>& bins,
              std::span<std::uint8_t> out) {
  const std::size_t k = track.index.size();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    for (std::size_t c = 0; c < k; ++c) {
      std::uint8_t bits = 0;
      if (times.valid[i]) {
        bits = kValidBit;
        if (track.index[c] >= 0) {
          auto it = bins[i].keys.find(static_cast<std::uint32_t>(track.index[c]));
          if (it != bins[i].keys.end()) bits |= it->second;
        }
      }
      out[i * k + c] = bits;
    }
  }
}

void FillMouse(const SampleTimes& times,
               const std::vector<format::InputInterval>& bins,
               std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const bool valid = times.valid[i];
    Put<std::int32_t>(out, i * 4 + 0, valid ? Saturate(bins[i].dx) : 0);
    Put<std::int32_t>(out, i * 4 + 1, valid ? Saturate(bins[i].dy) : 0);
    Put<std::int32_t>(out, i * 4 + 2, valid ? Saturate(bins[i].wheel) : 0);
    Put<std::int32_t>(out, i * 4 + 3, valid ? 1 : 0);
  }
}

// The last row before the end of each interval, values then flags. A table of
// ticks says nothing where ticks are missing and after its end.
void FillColumns(const SideTrack& track,
                 std::span<const format::BlockView> blocks,
                 const SampleTimes& times, std::span<std::uint8_t> out) {
  struct At {
    std::int64_t t_ns;
    std::uint32_t block, row;
  };
  std::vector<At> rows;
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const auto table = blocks[b].Rows();
    const bool carried =
        (blocks[b].header.flags & format::kBlockCarried) != 0 && b > 0;
    for (std::uint32_t r = carried ? 1 : 0; r < table.size(); ++r) {
      rows.push_back({table[r].t_ns, b, r});
    }
  }
  const std::size_t n = track.index.size();
  for (std::size_t i = 0; i < times.ends.size(); ++i) {
    auto it = std::lower_bound(
        rows.begin(), rows.end(), times.ends[i],
        [](const At& a, std::int64_t t) { return a.t_ns < t; });
    const bool found = times.valid[i] && it != rows.begin() &&
                       times.ends[i] <= track.known_until_ns &&
                       times.ends[i] - std::prev(it)->t_ns <= track.hold_ns;
    for (std::size_t c = 0; c < n; ++c) {
      float value = 0, flag = 0;
      const auto column = static_cast<std::size_t>(track.index[c]);
      if (found) {
        const At& at = *std::prev(it);
        const format::BlockView& block = blocks[at.block];
        if (column < block.ColumnCount() && block.ColumnValid(column, at.row)) {
          const std::int64_t bits = block.ColumnBits(column, at.row);
          value = track.floating[c]
                      ? static_cast<float>(std::bit_cast<double>(bits))
                      : static_cast<float>(bits);
          flag = 1;
        }
      }
      Put<float>(out, i * 2 * n + c, value);
      Put<float>(out, i * 2 * n + n + c, flag);
    }
  }
}

// A tick of a steady rate is known for one period and a half; without a rate a row
// holds until the next, the last one for two usual distances.
void SetKnown(const format::TrackRow& row, SideTrack& track) {
  if (row.kind != format::TrackKind::kTicks || row.rows == 0) return;
  if (row.rate_num > 0) {
    track.hold_ns = format::PtsToNs(3, row.rate_den, row.rate_num) / 2;
  } else if (row.rows > 1) {
    const std::int64_t last = row.end_ns - 1;
    track.known_until_ns =
        last + 2 * ((last - row.first_ns) /
                    static_cast<std::int64_t>(row.rows - 1));
  }
}

}  // namespace

absl::StatusOr<const SideTrack*> SideTracks::Find(std::uint32_t source,
                                                  std::uint32_t capture,
                                                  std::uint32_t output) {
  std::lock_guard lock(mutex_);
  auto& slot = found_[{source, capture, output}];
  if (!slot) {
    PENSTOCK_ASSIGN_OR_RETURN(SideTrack track,
                              Resolve(plan_.sources()[source], capture,
                                      plan_.outputs()[output]));
    slot = std::make_unique<SideTrack>(std::move(track));
  }
  return slot.get();
}

absl::StatusOr<SideTrack> SideTracks::Resolve(const SourceRef& source,
                                              std::uint32_t capture,
                                              const OutputSpec& output) const {
  PENSTOCK_ASSIGN_OR_RETURN(const auto tracks,
                            source.dataset->TracksOf(capture));
  const std::string where = absl::StrFormat(
      "output \"%s\", source \"%s\", capture %s", output.name, source.name,
      hash::Hex(source.dataset->index().captures[capture].id).substr(0, 16));
  std::vector<std::string> names;
  for (const auto& t : tracks) {
    if (!KindFits(output.kind, t.kind)) continue;
    names.push_back(t.name);
    if (!output.track.empty() && t.name != output.track) continue;
    SideTrack found;
    found.track = t.ord;
    SetKnown(source.dataset->index().tracks[t.ord], found);
    const Json schema = Json::parse(t.schema, nullptr, false);
    std::vector<std::string> known;
    if (output.kind == OutputKind::kColumns) {
      for (const Json& c : schema.value("columns", Json::array())) {
        known.push_back(c.value("name", ""));
        found.floating.push_back(c.value("type", "") == "f64");
      }
    } else {
      for (const Json& c : schema.value("codes", Json::array())) {
        known.push_back(c.get<std::string>());
      }
    }
    std::vector<bool> floating;
    for (const std::string& name : output.names) {
      const auto it = std::find(known.begin(), known.end(), name);
      if (it == known.end() && output.kind == OutputKind::kColumns) {
        return MakeError(
            absl::StatusCode::kNotFound,
            {.where = where,
             .what = "track \"" + t.name + "\" has no column \"" + name + "\"",
             .found = absl::StrJoin(known, ", "),
             .expected = NearestName(name, known).empty()
                             ? "one of these"
                             : "\"" + NearestName(name, known) + "\"?",
             .action = "correct the column; `penstock inspect DATASET --json` "
                       "lists them"});
      }
      // A key that was never touched in a capture is not in its dictionary;
      // CheckSides() sees to it that some capture has it.
      const auto at = it == known.end() ? -1 : it - known.begin();
      found.index.push_back(static_cast<std::int32_t>(at));
      floating.push_back(at >= 0 && output.kind == OutputKind::kColumns &&
                         found.floating[static_cast<std::size_t>(at)]);
    }
    found.floating = std::move(floating);
    found.known = std::move(known);
    return found;
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      {.where = where,
       .what = output.track.empty() ? "the capture has no such track"
                                    : "no track \"" + output.track + "\"",
       .found =
           names.empty() ? "none of this kind" : absl::StrJoin(names, ", "),
       .expected = "a track of this kind in every capture of the feed",
       .action = "correct the output, or leave these captures out "
                 "with a filter"});
}

absl::Status CheckSides(const FeedPlan& plan) {
  SideTracks tracks(plan);
  for (std::uint32_t o = 0; o < plan.outputs().size(); ++o) {
    const OutputSpec& output = plan.outputs()[o];
    if (output.kind == OutputKind::kVideo || output.kind == OutputKind::kTimes) {
      continue;
    }
    std::set<std::string> known;
    for (std::uint32_t s = 0; s < plan.sources().size(); ++s) {
      for (const std::uint32_t capture : plan.sources()[s].captures) {
        PENSTOCK_ASSIGN_OR_RETURN(const SideTrack* track,
                                  tracks.Find(s, capture, o));
        known.insert(track->known.begin(), track->known.end());
      }
    }
    if (output.kind != OutputKind::kKeys) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    for (const std::string& name : output.names) {
      if (known.contains(name)) continue;
      const std::string near = NearestName(name, names);
      return MakeError(
          absl::StatusCode::kNotFound,
          {.where = "output \"" + output.name + "\"",
           .what = "no capture of the feed ever has the key \"" + name + "\"",
           .found = names.empty() ? "captures whose event tracks are empty"
                                  : absl::StrJoin(names, ", "),
           .expected = names.empty()  ? "captures that have this key"
                       : near.empty() ? "one of these"
                                      : "\"" + near + "\"?",
           .action = "correct the key; `penstock inspect DATASET --json` lists "
                     "the codes of each track"});
    }
  }
  return absl::OkStatus();
}

void FillSide(const OutputSpec& output, const SideTrack* track,
              std::span<const format::BlockView> blocks,
              const SampleTimes& times, std::span<std::uint8_t> out) {
  switch (output.kind) {
    case OutputKind::kVideo:
      return;
    case OutputKind::kTimes:
      for (std::size_t i = 0; i < times.starts.size(); ++i) {
        Put<std::int64_t>(out, i, times.starts[i]);
      }
      return;
    case OutputKind::kKeys:
      FillKeys(*track, times, Bin(blocks, times), out);
      return;
    case OutputKind::kMouse:
      FillMouse(times, Bin(blocks, times), out);
      return;
    case OutputKind::kColumns:
      FillColumns(*track, blocks, times, out);
      return;
  }
}

}  // namespace penstock::pipeline
