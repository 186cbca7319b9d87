#include "server/pipeline/planned_feed.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <variant>
#include <vector>

#include "common/hash/hash.h"
#include "common/plan/cut.h"
#include "common/plan/pack_plan.h"
#include "common/plan/pool.h"
#include "common/status/status.h"
#include "server/dataset/manifest.h"
#include "server/dataset/plan_source.h"

namespace penstock::pipeline {
namespace {

// The pipeline's flat form of an output.
struct Flatten {
  OutputSpec& out;
  void operator()(const plan::VideoOutput& v) const {
    out.kind = OutputKind::kVideo;
    out.width = v.width;
    out.height = v.height;
    out.layout = v.layout;
    out.colour = v.colour;
    out.resize = v.resize;
  }
  void operator()(const plan::KeysOutput& k) const {
    out.kind = OutputKind::kKeys;
    out.track = k.track;
    out.names = k.keys;
  }
  void operator()(const plan::MouseOutput& m) const {
    out.kind = OutputKind::kMouse;
    out.track = m.track;
  }
  void operator()(const plan::ColumnsOutput& c) const {
    out.kind = OutputKind::kColumns;
    out.track = c.track;
    out.names = c.columns;
  }
  void operator()(const plan::TimesOutput&) const {
    out.kind = OutputKind::kTimes;
  }
};

OutputSpec FlatOutput(const plan::OutputSpec& output) {
  OutputSpec flat;
  flat.name = output.name;
  flat.role = output.role;
  std::visit(Flatten{flat}, output.kind);
  return flat;
}

class PlannedFeed : public FeedPlan {
 public:
  explicit PlannedFeed(dataset::OpenedFeed feed) : feed_(std::move(feed)) {
    const plan::FeedSpec& spec = feed_.feed();
    for (std::size_t i = 0; i < feed_.sources.size(); ++i) {
      const dataset::OpenedSource& s = feed_.sources[i];
      sources_.push_back(
          {.name = s.name,
           .dataset = s.dataset,
           .captures = {s.captures.begin(), s.captures.end()},
           .tracks = {s.tracks.begin(), s.tracks.end()},
           .previous_interval = spec.sources[i].view.pairing ==
                                plan::Pairing::kFrameTActionTMinus1});
    }
    for (const plan::OutputSpec& o : spec.outputs) {
      outputs_.push_back(FlatOutput(o));
    }
    for (const plan::BucketSpec& b : spec.buckets) {
      shapes_.push_back({b.name, static_cast<std::uint32_t>(b.frames), b.width,
                         b.height, b.samples});
    }
    frames_ = static_cast<std::uint32_t>(spec.sources[0].view.frames);
    if (feed_.planner->packing()) {
      const auto& length = feed_.planner->plan_inputs()->length;
      const plan::PackLimits limits = plan::PackLimitsOf(spec, *length);
      frames_ = static_cast<std::uint32_t>(limits.frames);
      packing_ = {limits.tokens, limits.segments, frames_,
                  std::max<std::uint64_t>(spec.packing.length_multiple, 1)};
    }
    total_ = feed_.TotalSteps().value_or(0);
  }

  const std::vector<SourceRef>& sources() const override { return sources_; }
  const std::vector<OutputSpec>& outputs() const override { return outputs_; }
  std::uint64_t global_batch() const override {
    return feed_.feed().global_batch;
  }
  std::uint64_t microbatch() const override { return feed_.feed().microbatch; }
  std::uint32_t frames() const override { return frames_; }
  const std::vector<ShapeSpec>& shapes() const override { return shapes_; }
  const PackSpec& packing() const override { return packing_; }
  bool lanes() const override { return feed_.feed().lanes != 0; }
  std::optional<std::uint32_t> ShapeOf(
      const format::TrackRow& track) const override {
    if (shapes_.empty()) return std::nullopt;
    return plan::BucketsOf(feed_.feed().buckets, track).front();
  }
  std::uint64_t total_steps() const override { return total_; }

  absl::Status Reach(std::uint64_t step) const override {
    // No rank wants more: the step is past every end.
    if (feed_.packs == nullptr || step >= plan::kStepMax)
      return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const auto total, feed_.ReachStep({step}));
    total_ = total.value_or(0);
    return absl::OkStatus();
  }

  absl::StatusOr<std::uint64_t> UnitsMax(
      const plan::DataRanks& ranks) const override {
    PENSTOCK_ASSIGN_OR_RETURN(const auto units,
                              feed_.planner->RankUnits(ranks));
    return units.back();
  }

  absl::StatusOr<PlannedStep> Step(
      std::uint64_t step, const plan::DataRanks& ranks) const override {
    PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch, feed_.PlanStep({step}));
    PENSTOCK_ASSIGN_OR_RETURN(plan::BatchCut cut,
                              feed_.planner->Cut(batch, ranks));
    PlannedStep out;
    out.rank_units = cut.units;
    out.packed = feed_.planner->packing();
    for (const plan::Sample& s : batch.samples) out.tokens += s.tokens;
    const std::uint64_t whole = plan::WeightOf(batch);
    for (std::vector<std::uint64_t>& units : cut.ranks) {
      const double scale =
          plan::LossScale(plan::WeightOf(batch, units), whole, ranks.world);
      out.ranks.push_back({std::move(units), scale});
    }
    for (const plan::Unit& u : batch.units) {
      out.units.push_back({u.shape, u.first, u.samples});
    }
    out.samples.reserve(batch.samples.size());
    for (const plan::Sample& s : batch.samples) {
      out.samples.push_back({.id = feed_.IdOf(s),
                             .source = s.source,
                             .capture = s.capture,
                             .track = s.track,
                             .start_frame = s.start_frame,
                             .frames = s.frames,
                             .stride = s.stride,
                             .tokens = s.tokens,
                             .reset = s.reset});
    }
    return out;
  }

 private:
  const dataset::OpenedFeed feed_;
  std::vector<SourceRef> sources_;
  std::vector<OutputSpec> outputs_;
  std::vector<ShapeSpec> shapes_;
  PackSpec packing_;
  std::uint32_t frames_ = 1;
  mutable std::atomic<std::uint64_t> total_ = 0;  // 0: not known
};

// What tells one version of a manifest file from another without reading it:
// device, inode, size, time of change. All zero: it is not there.
using FileStamp = std::array<std::uint64_t, 5>;

FileStamp StampOf(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return {};
  return {st.st_dev, st.st_ino, static_cast<std::uint64_t>(st.st_size),
          static_cast<std::uint64_t>(st.st_ctim.tv_sec),
          static_cast<std::uint64_t>(st.st_ctim.tv_nsec)};
}

}  // namespace

std::shared_ptr<const FeedPlan> PlanOf(dataset::OpenedFeed feed) {
  return std::make_shared<const PlannedFeed>(std::move(feed));
}

absl::StatusOr<LoadedFeed> LoadPlannedFeed(const std::string& text,
                                           const std::string& where,
                                           const std::string& dir) {
  PENSTOCK_ASSIGN_OR_RETURN(dataset::OpenedFeed feed,
                            dataset::OpenFeed(text, where, dir));
  LoadedFeed out{.name = feed.feed().name,
                 .order_digest = hash::Hex(feed.order_digest),
                 .content_digest = hash::Hex(feed.content_digest),
                 .selection_digest = hash::Hex(feed.selection_digest),
                 .notes = feed.notes};
  std::vector<std::pair<std::string, FileStamp>> stamps;
  for (const dataset::OpenedSource& s : feed.sources) {
    out.dataset_ids.push_back(s.dataset->id());
    const std::string path = s.dataset->dir() + "/" + dataset::kManifestFile;
    stamps.emplace_back(path, StampOf(path));
  }
  out.current = [stamps = std::move(stamps)] {
    return std::all_of(stamps.begin(), stamps.end(), [](const auto& s) {
      return s.second != FileStamp{} && StampOf(s.first) == s.second;
    });
  };
  out.plan = PlanOf(std::move(feed));
  return out;
}

}  // namespace penstock::pipeline
