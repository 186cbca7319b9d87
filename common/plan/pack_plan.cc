#include "common/plan/pack_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/plan/steps.h"
#include "common/plan/tokens.h"
#include "common/random/permutation.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::size_t kAnchorEvery = 64;

absl::Status TooLongError(const PlanInputs& inputs, const Sample& s,
                          const PackLimits& limits) {
  const SourceSpec& source = inputs.feed.sources[s.source];
  const auto& capture = inputs.sources[s.source].index.captures[s.capture];
  const bool tokens = s.tokens > limits.tokens;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = absl::StrCat("source \"", source.name, "\", capture ",
                             hash::Hex(capture.id).substr(0, 16), ", frame ",
                             s.start_frame),
       .what = "a sample is longer than a pack",
       .found = tokens ? absl::StrCat(s.tokens, " tokens in ", s.frames, " frames")
                       : absl::StrCat(s.frames, " frames"),
       .expected = tokens ? absl::StrCat("at most ", limits.tokens, " tokens")
                          : absl::StrCat("at most ", limits.frames, " frames"),
       .action = "raise packing.tokens or packing.frames, use fewer frames, or set "
                 "too_long: split or truncate"});
}

// The sample with the most of its frames that fit; 0 frames: not even one does.
Sample CutToFit(const PlanInputs& inputs, Sample s, const PackLimits& limits) {
  const auto fits = [&](std::uint64_t frames) {
    s.frames = static_cast<std::uint32_t>(frames);
    return TokensOf(inputs, s) <= limits.tokens;
  };
  std::uint64_t low = 0, high = std::min<std::uint64_t>(s.frames, limits.frames);
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  s.frames = static_cast<std::uint32_t>(low);
  s.tokens = low == 0 ? 0 : TokensOf(inputs, s);
  return s;
}

// Appends a sample, or what the feed says is made of one that is too long.
absl::Status AddFitting(const PlanInputs& inputs, const PackLimits& limits, Sample s,
                        std::vector<Sample>& out) {
  while (s.tokens > limits.tokens || s.frames > limits.frames) {
    const TooLong rule = inputs.feed.packing.too_long;
    const Sample part = rule == TooLong::kError ? Sample{.frames = 0}
                                                : CutToFit(inputs, s, limits);
    if (part.frames == 0) return TooLongError(inputs, s, limits);
    out.push_back(part);
    if (rule == TooLong::kTruncate) return absl::OkStatus();
    s.start_frame += std::uint64_t{part.frames} * s.stride;
    s.frames -= part.frames;
    ++s.piece;
    s.tokens = TokensOf(inputs, s);
  }
  out.push_back(s);
  return absl::OkStatus();
}

}  // namespace

PackLimits PackLimitsOf(const FeedSpec& feed, const CostFormula& length) {
  const PackingSpec& p = feed.packing;
  PackLimits out{p.tokens, p.frames, p.segments};
  if (out.frames != 0) return out;
  std::uint64_t low = 1, high = kFramesMax;
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (length.Of({.frames = static_cast<double>(middle)}) <= p.tokens) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  out.frames = low;
  return out;
}

absl::StatusOr<PackedWindow> PackOne(const PlanInputs& inputs, const Stream& stream,
                                     const PackWindow& window) {
  PackedWindow out{.window = window, .samples = {}, .packs = {}};
  std::vector<Sample> drawn;
  std::vector<Unit> units;
  stream.Read(window.begin, window.end, &drawn, &units);
  const PackLimits limits = PackLimitsOf(inputs.feed, *inputs.length);
  for (const Sample& s : drawn) {
    PENSTOCK_RETURN_IF_ERROR(AddFitting(inputs, limits, s, out.samples));
  }
  std::vector<PackItem> items;
  items.reserve(out.samples.size());
  for (const Sample& s : out.samples) items.push_back({s.tokens, s.frames});
  auto packs = PackItems(items, limits);
  const random::Permutation order(
      packs.size(),
      random::MakeKey(inputs.feed.seed, "plan.packs", "", window.number));
  for (std::size_t i = 0; i < packs.size(); ++i) {
    out.packs.push_back(std::move(packs[order.At(i)]));
  }
  return out;
}

double FillOf(const FeedSpec& feed, const PackedWindow& packed) {
  double tokens = 0;
  for (const Sample& s : packed.samples) tokens += static_cast<double>(s.tokens);
  return tokens / (static_cast<double>(packed.packs.size()) *
                   static_cast<double>(feed.packing.tokens));
}

absl::StatusOr<PackPlan> PackPlan::Create(std::shared_ptr<const PlanInputs> inputs) {
  PackPlan out(std::move(inputs));
  const FeedSpec& feed = out.inputs_->feed;
  // Every view of every stage is made and checked once, with stages that begin at
  // once; streams after it take them over.
  std::vector<std::uint64_t> at_once(feed.stages.size());
  PENSTOCK_ASSIGN_OR_RETURN(const auto all, Stream::Create(out.inputs_, at_once));
  PENSTOCK_ASSIGN_OR_RETURN(out.stream_, Stream::Create(out.inputs_, {}, all.get()));
  out.loaded_.window.number = UINT64_MAX;
  PENSTOCK_RETURN_IF_ERROR(out.EnterStages());
  return out;
}

PackWindow PackPlan::WindowAt(std::uint64_t number, std::uint64_t position) const {
  return {number, position,
          std::min(position + inputs_->feed.packing.window,
                   stream_->NextBreak(position))};
}

absl::Status PackPlan::EnterStages() {
  const auto& stages = inputs_->feed.stages;
  const std::size_t before = starts_.size();
  while (starts_.size() < stages.size() &&
         packs_ >= UnitsBefore(inputs_->feed, stages[starts_.size()].step)) {
    starts_.push_back(position_);
  }
  if (starts_.size() > before) {
    PENSTOCK_ASSIGN_OR_RETURN(stream_,
                              Stream::Create(inputs_, starts_, stream_.get()));
  }
  ended_ = stream_->total().has_value() && position_ >= *stream_->total();
  return absl::OkStatus();
}

std::vector<PackWindow> PackPlan::Next(std::size_t count) const {
  std::vector<PackWindow> out;
  std::uint64_t position = position_;
  const std::uint64_t end = stream_->total().value_or(UINT64_MAX);
  for (std::uint64_t n = windows(); out.size() < count && position < end; ++n) {
    out.push_back(WindowAt(n, position));
    position = out.back().end;
  }
  return out;
}

absl::StatusOr<std::size_t> PackPlan::Append(std::span<const std::uint32_t> counts,
                                             bool known) {
  const Stream* stream = stream_.get();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (ended_ || (!known && stream_.get() != stream)) return i;
    if (windows() % kAnchorEvery == 0) anchors_.push_back({position_, packs_});
    position_ = WindowAt(windows(), position_).end;
    packs_ += counts[i];
    counts_.push_back(counts[i]);
    PENSTOCK_RETURN_IF_ERROR(EnterStages());
  }
  return counts.size();
}

absl::Status PackPlan::Reach(std::uint64_t packs) {
  while (packs_ < packs && !ended_) {
    const PackWindow next = WindowAt(windows(), position_);
    PENSTOCK_RETURN_IF_ERROR(Load(next));
    const auto count = static_cast<std::uint32_t>(loaded_.packs.size());
    PENSTOCK_RETURN_IF_ERROR(Append({&count, 1}).status());
  }
  return absl::OkStatus();
}

std::pair<PackWindow, std::uint64_t> PackPlan::Find(std::uint64_t pack) const {
  const auto after = std::upper_bound(
      anchors_.begin(), anchors_.end(), pack,
      [](std::uint64_t p, const Anchor& a) { return p < a.packs; });
  const auto anchor = std::prev(after);
  std::uint64_t before = anchor->packs;
  PackWindow w = WindowAt(
      static_cast<std::uint64_t>(anchor - anchors_.begin()) * kAnchorEvery,
      anchor->position);
  while (before + counts_[w.number] <= pack) {
    before += counts_[w.number];
    w = WindowAt(w.number + 1, w.end);
  }
  return {w, before};
}

absl::Status PackPlan::Load(const PackWindow& window) {
  if (loaded_.window.number == window.number) return absl::OkStatus();
  loaded_.window.number = UINT64_MAX;  // also after an error
  PENSTOCK_ASSIGN_OR_RETURN(loaded_, PackOne(*inputs_, *stream_, window));
  return absl::OkStatus();
}

absl::Status PackPlan::Read(std::uint64_t begin, std::uint64_t end,
                            std::vector<Sample>* samples, std::vector<Unit>* units) {
  PENSTOCK_RETURN_IF_ERROR(Reach(end));
  for (std::uint64_t pack = begin; pack < std::min(end, packs_);) {
    const auto [window, before] = Find(pack);
    PENSTOCK_RETURN_IF_ERROR(Load(window));
    for (; pack < end && pack - before < loaded_.packs.size(); ++pack) {
      const auto& members = loaded_.packs[pack - before];
      units->push_back(
          {0, samples->size(), static_cast<std::uint32_t>(members.size())});
      for (const std::uint32_t m : members) samples->push_back(loaded_.samples[m]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint64_t>> PackPlan::CountsBefore(std::uint64_t pack) {
  PENSTOCK_RETURN_IF_ERROR(Reach(pack));
  if (pack >= packs_) return stream_->CountsBefore(position_);
  const auto [window, before] = Find(pack);
  std::vector<std::uint64_t> counts = stream_->CountsBefore(window.begin);
  PENSTOCK_RETURN_IF_ERROR(Load(window));
  for (std::uint64_t p = 0; p < pack - before; ++p) {
    for (const std::uint32_t m : loaded_.packs[p]) {
      const Sample& s = loaded_.samples[m];
      counts[s.source] += s.piece == 0 ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace penstock::plan
