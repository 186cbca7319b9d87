#include "server/pipeline/step_work.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/format/timing.h"
#include "common/layout/item_digest.h"
#include "common/status/status.h"
#include "server/io/read_engine.h"

namespace penstock::pipeline {
namespace {

using format::GopRow;
using format::TrackRow;

bool HasSides(const FeedPlan& plan) {
  return std::any_of(
      plan.outputs().begin(), plan.outputs().end(),
      [](const OutputSpec& o) { return o.kind != OutputKind::kVideo; });
}

// Frames whose times a sample needs: its own, and the one that ends its last
// interval (or begins its first).
std::vector<std::uint64_t> TimedFrames(const SourceRef& source,
                                       const SampleRef& s,
                                       std::uint64_t track_frames) {
  std::vector<std::uint64_t> frames;
  if (source.previous_interval) {
    if (s.start_frame >= s.stride) frames.push_back(s.start_frame - s.stride);
  }
  for (std::uint32_t i = 0; i < s.frames; ++i) {
    frames.push_back(s.start_frame + std::uint64_t{i} * s.stride);
  }
  if (!source.previous_interval) {
    const std::uint64_t next =
        s.start_frame + std::uint64_t{s.frames} * s.stride;
    if (next < track_frames) frames.push_back(next);
  }
  return frames;
}

// Times of a sample from the noted frame times.
SampleTimes TimesOf(const FeedPlan& plan, const StepWork& work,
                    const SampleRef& s) {
  const SourceRef& source = plan.sources()[s.source];
  const TrackRow& track = source.dataset->index().tracks[s.track];
  auto at = [&](std::uint64_t frame) {
    if (frame >= track.rows) return track.end_ns;
    auto it = work.frame_ns.find({s.source, s.track, frame});
    return it == work.frame_ns.end() ? track.end_ns : it->second;
  };
  SampleTimes t;
  for (std::uint32_t i = 0; i < s.frames; ++i) {
    const std::uint64_t frame = s.start_frame + std::uint64_t{i} * s.stride;
    t.starts.push_back(at(frame));
    if (!source.previous_interval) {
      t.begins.push_back(at(frame));
      t.ends.push_back(at(frame + s.stride));
      t.valid.push_back(true);
    } else {
      const bool exists = frame >= s.stride;
      t.begins.push_back(exists ? at(frame - s.stride) : at(frame));
      t.ends.push_back(at(frame));
      t.valid.push_back(exists);
    }
  }
  return t;
}

class StepBuilder {
 public:
  StepBuilder(const FeedPlan& plan, const BatchLayout& layout,
              ShardCache& shards, SideTracks& sides, StepWork& work)
      : plan_(plan),
        layout_(layout),
        shards_(shards),
        sides_(sides),
        work_(work),
        has_sides_(HasSides(plan)) {}

  absl::Status Build() {
    for (std::uint32_t i = 0; i < work_.items.size(); ++i) {
      PENSTOCK_RETURN_IF_ERROR(AddItem(i));
    }
    for (auto& [key, unit] : units_) work_.units.push_back(std::move(unit));
    work_.units_left = static_cast<std::uint32_t>(work_.units.size());
    work_.sides_left = static_cast<std::uint32_t>(work_.sides.size());
    return absl::OkStatus();
  }

 private:
  // The index row of the GOP that holds a frame of a track.
  absl::StatusOr<std::uint32_t> GopOf(const format::CaptureIndexView& index,
                                      const TrackRow& track,
                                      std::uint64_t frame) const {
    const auto gops = index.GopsOf(track);
    auto it = std::upper_bound(
        gops.begin(), gops.end(), frame,
        [](std::uint64_t f, const GopRow& g) { return f < g.first_frame; });
    if (it == gops.begin() ||
        frame >= std::prev(it)->first_frame + std::prev(it)->frame_count) {
      return MakeError(absl::StatusCode::kDataLoss,
                       {.where = "captures.pidx",
                        .what = "no GOP has a frame that the plan asks for",
                        .found = absl::StrFormat("frame %d of a track of %d",
                                                 frame, track.rows),
                        .expected = "GOPs that hold every frame",
                        .action = "run `penstock verify` on the dataset"});
    }
    return static_cast<std::uint32_t>(std::prev(it) - index.gops.begin());
  }

  absl::StatusOr<GopUnit*> UnitOf(const StepItem& item, std::uint32_t gop) {
    auto& slot = units_[{item.sample.source, gop}];
    if (slot) return slot.get();
    slot = std::make_unique<GopUnit>();
    slot->source = item.sample.source;
    slot->capture = item.sample.capture;
    slot->track = item.sample.track;
    slot->gops = {gop};
    const auto& dataset = *plan_.sources()[item.sample.source].dataset;
    const GopRow& row = dataset.index().gops[gop];
    PENSTOCK_ASSIGN_OR_RETURN(slot->shard, shards_.Get(dataset, row.shard));
    slot->codec = row.codec;
    if (row.codec >= slot->shard->codecs.size()) {
      return MakeError(
          absl::StatusCode::kDataLoss,
          {.where = slot->shard->file->path(),
           .what = "no such codec parameters",
           .found = absl::StrFormat("number %d", row.codec),
           .expected = absl::StrFormat("one of %d", slot->shard->codecs.size()),
           .action = "run `penstock verify` on the dataset"});
    }
    slot->shards = {slot->shard};
    const auto& source = plan_.sources()[item.sample.source];
    const auto at = std::lower_bound(source.captures.begin(),
                                     source.captures.end(), item.sample.capture) -
                    source.captures.begin();
    slot->transforms =
        layout_.transforms[item.sample.source][static_cast<std::size_t>(at)];
    return slot.get();
  }

  // Lead frames of the GOP are wanted: the GOPs before it come along.
  absl::Status AddPreroll(GopUnit& unit) {
    if (unit.gops.size() > 1) return absl::OkStatus();
    const auto& dataset = *plan_.sources()[unit.source].dataset;
    const auto& index = dataset.index();
    const std::uint32_t gop = unit.gops[0];
    const TrackRow& track = index.tracks[unit.track];
    const std::uint32_t before = std::min<std::uint32_t>(
        index.gops[gop].preroll,
        gop - static_cast<std::uint32_t>(track.first_gop));
    std::vector<std::uint32_t> gops;
    std::vector<std::shared_ptr<const OpenShard>> shards;
    for (std::uint32_t g = gop - before; g < gop; ++g) {
      gops.push_back(g);
      PENSTOCK_ASSIGN_OR_RETURN(auto shard,
                                shards_.Get(dataset, index.gops[g].shard));
      shards.push_back(std::move(shard));
    }
    gops.push_back(gop);
    shards.push_back(unit.shard);
    unit.gops = std::move(gops);
    unit.shards = std::move(shards);
    return absl::OkStatus();
  }

  absl::Status AddItem(std::uint32_t i) {
    StepItem& item = work_.items[i];
    const SampleRef& s = item.sample;
    const SourceRef& source = plan_.sources()[s.source];
    const auto& index = source.dataset->index();
    const TrackRow& track = index.tracks[s.track];
    item.chunks.resize(plan_.outputs().size());
    std::uint32_t video = 0;
    for (std::uint32_t o = 0; o < plan_.outputs().size(); ++o) {
      if (plan_.outputs()[o].kind != OutputKind::kVideo) continue;
      item.chunks[o].resize(s.frames);
      const auto& tensor = layout_.shapes[item.shape].slab.tensors[o];
      for (std::uint32_t f = 0; f < s.frames; ++f) {
        const std::uint64_t frame = s.start_frame + std::uint64_t{f} * s.stride;
        PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t gop,
                                  GopOf(index, track, frame));
        PENSTOCK_ASSIGN_OR_RETURN(GopUnit * unit, UnitOf(item, gop));
        const GopRow& row = index.gops[gop];
        if (frame < row.first_frame + row.lead_count) {
          PENSTOCK_RETURN_IF_ERROR(AddPreroll(*unit));
        }
        unit->targets.push_back(
            {static_cast<std::uint32_t>(frame), video,
             item.slot + layout_.RowOffset(tensor, item.unit, item.row) +
                 (item.frame + f) * tensor.strides[1],
             0});
        unit->places.push_back({i, o, f});
      }
      ++video;
    }
    if (has_sides_) PENSTOCK_RETURN_IF_ERROR(AddSides(item));
    return absl::OkStatus();
  }

  absl::Status AddSides(const StepItem& item) {
    const SampleRef& s = item.sample;
    const SourceRef& source = plan_.sources()[s.source];
    const auto& index = source.dataset->index();
    const TrackRow& track = index.tracks[s.track];
    std::int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (std::uint64_t frame : TimedFrames(source, s, track.rows)) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t gop,
                                GopOf(index, track, frame));
      work_.frame_ns.emplace(std::tuple{s.source, s.track, frame}, 0);
      PENSTOCK_RETURN_IF_ERROR(UnitOf(item, gop).status());
      lo = std::min(lo, index.gops[gop].first_ns);
      hi = std::max(hi, index.gops[gop].end_ns);
    }
    for (std::uint32_t o = 0; o < plan_.outputs().size(); ++o) {
      const OutputSpec& output = plan_.outputs()[o];
      if (output.kind == OutputKind::kVideo ||
          output.kind == OutputKind::kTimes) {
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const SideTrack* side,
                                sides_.Find(s.source, s.capture, o));
      const TrackRow& row = index.tracks[side->track];
      for (std::uint64_t k = 0; k < row.segment_count; ++k) {
        const auto segment = static_cast<std::uint32_t>(row.first_segment + k);
        const auto& seg = index.segments[segment];
        if (seg.first_ns >= hi || seg.end_ns <= lo) continue;
        PENSTOCK_RETURN_IF_ERROR(AddSideRead(s.source, segment));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddSideRead(std::uint32_t source, std::uint32_t segment) {
    auto [it, added] = work_.sides.try_emplace({source, segment});
    if (!added) return absl::OkStatus();
    const auto& dataset = *plan_.sources()[source].dataset;
    const auto& seg = dataset.index().segments[segment];
    SideRead& read = it->second;
    read.source = source;
    read.segment = segment;
    PENSTOCK_ASSIGN_OR_RETURN(read.shard, shards_.Get(dataset, seg.shard));
    const std::uint64_t begin =
        seg.offset / io::kReadAlignment * io::kReadAlignment;
    const std::uint64_t end = (seg.offset + seg.bytes + io::kReadAlignment - 1) /
                              io::kReadAlignment * io::kReadAlignment;
    read.bytes = end - begin;
    read.memory.reset(static_cast<std::uint8_t*>(
        std::aligned_alloc(io::kReadAlignment, read.bytes)));
    if (!read.memory) return absl::ResourceExhaustedError("no memory");
    return absl::OkStatus();
  }

  const FeedPlan& plan_;
  const BatchLayout& layout_;
  ShardCache& shards_;
  SideTracks& sides_;
  StepWork& work_;
  const bool has_sides_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<GopUnit>>
      units_;  // by source and GOP
};

}  // namespace

void TakeItems(PlannedStep& planned, StepWork& work) {
  work.rank_units = planned.rank_units;
  work.global_samples = planned.samples.size();
  work.global_tokens = planned.tokens;
  std::map<std::uint64_t, StepItem> items;  // by place in the global order
  for (const auto& [rank, slot] : work.slots) {
    RankWork& of_rank = work.of_ranks[rank];
    of_rank.loss_scale = planned.ranks[rank].loss_scale;
    const auto& units = planned.ranks[rank].units;
    for (std::uint64_t local = 0; local < units.size(); ++local) {
      const UnitRef& unit = planned.units[units[local]];
      of_rank.shapes.push_back(unit.shape);
      of_rank.samples.push_back(unit.samples);
      std::uint32_t frame = 0;
      for (std::uint32_t k = 0; k < unit.samples; ++k) {
        StepItem& item = items[unit.first + k];
        item.sample = std::move(planned.samples[unit.first + k]);
        item.rank = rank;
        item.slot = slot.offset;
        item.shape = unit.shape;
        item.unit = local;
        item.row = k;
        item.frame = planned.packed ? frame : 0;
        frame += item.sample.frames;
        of_rank.tokens += item.sample.tokens;
      }
    }
  }
  for (auto& [at, item] : items) work.items.push_back(std::move(item));
}

absl::Status BuildStep(const FeedPlan& plan, const BatchLayout& layout,
                       ShardCache& shards, SideTracks& sides, StepWork& work) {
  return StepBuilder(plan, layout, shards, sides, work).Build();
}

void TakeFrameTimes(const FeedPlan& plan, const GopUnit& unit,
                    std::span<const format::BlockView> blocks,
                    StepWork& work) {
  const TrackRow& track =
      plan.sources()[unit.source].dataset->index().tracks[unit.track];
  for (const auto& block : blocks) {
    for (const auto& row : block.Packets()) {
      if (row.frame == format::kNoFrame) continue;
      auto it = work.frame_ns.find({unit.source, unit.track, row.frame});
      if (it == work.frame_ns.end()) continue;
      it->second = format::PtsToNs(row.pts, track.time_base_num,
                                   track.time_base_den) -
                   track.origin_ns;
    }
  }
}

absl::Status FillSides(const FeedPlan& plan, const BatchLayout& layout,
                       SideTracks& sides, std::span<std::uint8_t> arena,
                       StepWork& work) {
  for (StepItem& item : work.items) {
    const SampleRef& s = item.sample;
    const auto& index = plan.sources()[s.source].dataset->index();
    SampleTimes times;
    for (std::uint32_t o = 0; o < plan.outputs().size(); ++o) {
      const OutputSpec& output = plan.outputs()[o];
      if (output.kind == OutputKind::kVideo) continue;
      if (times.starts.empty()) times = TimesOf(plan, work, s);
      const SideTrack* side = nullptr;
      std::vector<format::BlockView> blocks;
      if (output.kind != OutputKind::kTimes) {
        PENSTOCK_ASSIGN_OR_RETURN(side, sides.Find(s.source, s.capture, o));
        const std::int64_t lo =
            *std::min_element(times.begins.begin(), times.begins.end());
        const std::int64_t hi =
            *std::max_element(times.ends.begin(), times.ends.end());
        const TrackRow& row = index.tracks[side->track];
        for (std::uint64_t k = 0; k < row.segment_count; ++k) {
          const auto segment =
              static_cast<std::uint32_t>(row.first_segment + k);
          const auto& seg = index.segments[segment];
          if (seg.first_ns >= hi || seg.end_ns <= lo) continue;
          auto it = work.sides.find({s.source, segment});
          if (it == work.sides.end() || !it->second.block) continue;
          blocks.push_back(*it->second.block);
        }
      }
      const auto& tensor = layout.shapes[item.shape].slab.tensors[o];
      auto out = arena.subspan(
          item.slot + layout.RowOffset(tensor, item.unit, item.row) +
              item.frame * tensor.strides[1],
          s.frames * tensor.strides[1]);
      std::memset(out.data(), 0, out.size());
      FillSide(output, side, blocks, times, out);
      layout::AppendChunkDigests(out, item.chunks[o]);
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::pipeline
