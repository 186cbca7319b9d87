#include "server/pipeline/planned_feed.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "common/hash/hash.h"
#include "common/plan/cut.h"
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

class PlannedFeed : public FeedPlan {
 public:
  explicit PlannedFeed(dataset::OpenedFeed feed) : feed_(std::move(feed)) {
    const plan::FeedSpec& spec = feed_.feed();
    for (std::size_t i = 0; i < feed_.sources.size(); ++i) {
      const dataset::OpenedSource& s = feed_.sources[i];
      sources_.push_back(
          {.name = s.name,
           .dataset = s.dataset,
           .captures = s.captures,
           .tracks = s.tracks,
           .previous_interval = spec.sources[i].view.pairing ==
                                plan::Pairing::kFrameTActionTMinus1});
    }
    for (const plan::OutputSpec& o : spec.outputs) {
      outputs_.push_back(FlatOutput(o));
    }
  }

  const std::vector<SourceRef>& sources() const override { return sources_; }
  const std::vector<OutputSpec>& outputs() const override { return outputs_; }
  std::uint64_t global_batch() const override {
    return feed_.feed().global_batch;
  }
  std::uint64_t microbatch() const override { return feed_.feed().microbatch; }
  std::uint32_t frames() const override {
    return static_cast<std::uint32_t>(feed_.feed().sources[0].view.frames);
  }
  std::uint64_t total_steps() const override {
    return feed_.planner->TotalSteps().value_or(0);
  }

  absl::StatusOr<std::uint64_t> UnitsMax(
      std::uint32_t data_world) const override {
    PENSTOCK_ASSIGN_OR_RETURN(const auto units,
                              feed_.planner->RankUnits(data_world));
    return units.back();
  }

  absl::StatusOr<PlannedStep> Step(std::uint64_t step,
                                   std::uint32_t data_world) const override {
    PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch,
                              feed_.planner->PlanStep({step}));
    PENSTOCK_ASSIGN_OR_RETURN(plan::BatchCut cut,
                              feed_.planner->Cut(batch, data_world));
    PlannedStep out;
    out.units = cut.units;
    for (std::vector<std::uint64_t>& samples : cut.samples) {
      const double scale = plan::LossScale(samples.size(), batch.samples.size(),
                                           data_world);
      out.ranks.push_back({std::move(samples), scale});
    }
    out.samples.reserve(batch.samples.size());
    for (const plan::Sample& s : batch.samples) {
      out.samples.push_back({.id = feed_.IdOf(s),
                             .source = s.source,
                             .capture = s.capture,
                             .track = s.track,
                             .start_frame = s.start_frame,
                             .frames = s.frames,
                             .stride = s.stride});
    }
    return out;
  }

 private:
  const dataset::OpenedFeed feed_;
  std::vector<SourceRef> sources_;
  std::vector<OutputSpec> outputs_;
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

OutputSpec FlatOutput(const plan::OutputSpec& output) {
  OutputSpec flat;
  flat.name = output.name;
  std::visit(Flatten{flat}, output.kind);
  return flat;
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
  out.plan = std::make_shared<const PlannedFeed>(std::move(feed));
  return out;
}

}  // namespace penstock::pipeline
