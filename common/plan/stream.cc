#include "common/plan/stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/tokens.h"
#include "common/random/permutation.h"

namespace penstock::plan {

// The orders used while walking over neighbouring units: the last pass of each
// bucket, made when first needed.
class Stream::Walk {
 public:
  Walk(const Stream& stream, std::vector<Sample>* samples, std::vector<Unit>* units)
      : inputs_(*stream.inputs_), stream_(stream), samples_(samples), units_(units) {
    std::size_t buckets = 0;
    for (const auto& l : stream.lineages()) {
      std::vector<std::size_t>& of_lineage = first_.emplace_back();
      for (const Lineage::Stratum& s : l->strata()) {
        of_lineage.push_back(buckets);
        buckets += s.pool.buckets().size();
      }
    }
    orders_.resize(buckets);
  }

  // Unit number `i` of a segment.
  void Add(const Segment& segment, std::uint64_t i) {
    if (segment.deal) return AddChunk(segment, i);
    const Mixture::Slot slot = segment.mixture->At(i);
    const Segment::Start& start = segment.starts[slot.source];
    const auto lineage = static_cast<std::uint32_t>(start.lineage);
    const Lineage& l = *stream_.lineages()[lineage];
    const Lineage::Draw draw = l.At(start.draws + slot.rank);
    const Pool& pool = l.strata()[draw.stratum].pool;
    const Pool::Unit unit = pool.At(draw.unit);
    Take({slot.source, lineage, draw.stratum, unit.bucket}, unit.first_draw,
         pool.buckets()[unit.bucket].samples, start.epoch);
  }

  // Unit number `i` of a part of an evaluation.
  void Add(const Run& run, std::uint64_t i) {
    const Pool::Bucket& b =
        stream_.lineages()[run.lineage]->strata()[0].pool.buckets()[run.bucket];
    const std::uint64_t first = i * b.samples;
    Take({run.source, run.lineage, 0, run.bucket}, first,
         std::min(b.samples, b.view.size() - first), 0);
  }

 private:
  void AddChunk(const Segment& segment, std::uint64_t i) {
    const LaneDeal& deal = *segment.deal;
    const LaneDeal::Chunk c =
        deal.At(static_cast<std::uint32_t>(i % deal.size()),
                segment.chunks + i / deal.size());
    const Segment::Start& start = segment.starts[c.source];
    const auto lineage = static_cast<std::uint32_t>(start.lineage);
    const Pool::Bucket& bucket =
        stream_.lineages()[lineage]->strata()[0].pool.buckets()[0];
    Sample s{.source = c.source,
             .lineage = lineage,
             .epoch = Epoch{start.epoch + c.pass},
             .index = c.window,
             .reset = c.reset};
    units_->push_back({0, samples_->size(), 1});
    Push(bucket.view.At(c.window), s);
  }

  void Push(const Window& w, Sample& s) {
    s.capture = w.capture;
    s.track = w.track;
    s.start_frame = w.start_frame;
    s.stride = w.stride;
    s.frames = w.frames;
    s.tokens = TokensOf(inputs_, s);
    samples_->push_back(s);
  }

  struct PassOrder {
    Epoch epoch;
    random::Permutation permutation;
  };
  struct Where {
    std::uint32_t source, lineage, stratum, bucket;
  };

  void Take(const Where& at, std::uint64_t first_draw, std::uint64_t count,
            std::uint64_t epoch) {
    const Lineage::Stratum& stratum =
        stream_.lineages()[at.lineage]->strata()[at.stratum];
    const Pool::Bucket& bucket = stratum.pool.buckets()[at.bucket];
    const std::uint64_t n = bucket.view.size();
    units_->push_back({bucket.shape, samples_->size(), static_cast<std::uint32_t>(count)});
    for (std::uint64_t r = first_draw; r < first_draw + count; ++r) {
      Sample s{.source = at.source, .lineage = at.lineage, .stratum = at.stratum,
               .shape = bucket.shape, .epoch = Epoch{epoch + r / n}};
      s.index = Order(at, stratum, s.epoch, r % n);
      Push(bucket.view.At(s.index), s);
    }
  }

  std::uint64_t Order(const Where& at, const Lineage::Stratum& stratum, Epoch epoch,
                      std::uint64_t place) {
    const FeedSpec& feed = inputs_.feed;
    if (feed.order == OrderMode::kSequential) return place;
    std::optional<PassOrder>& order =
        orders_[first_[at.lineage][at.stratum] + at.bucket];
    if (!order || order->epoch != epoch) {
      const Pool::Bucket& bucket = stratum.pool.buckets()[at.bucket];
      std::string name = feed.sources[at.source].name;
      if (!stratum.label.empty()) absl::StrAppend(&name, "/", stratum.label);
      if (!feed.buckets.empty()) {
        absl::StrAppend(&name, "#", feed.buckets[bucket.shape].name);
      }
      order.emplace(PassOrder{
          epoch, random::Permutation(
                     bucket.view.size(),
                     random::MakeKey(feed.seed, "plan.order", name, epoch.value))});
    }
    return order->permutation.At(place);
  }

  const PlanInputs& inputs_;
  const Stream& stream_;
  std::vector<Sample>* samples_;
  std::vector<Unit>* units_;
  std::vector<std::vector<std::size_t>> first_;  // order of a stratum's buckets
  std::vector<std::optional<PassOrder>> orders_;
};

absl::StatusOr<std::shared_ptr<const Stream>> Stream::Create(
    std::shared_ptr<const PlanInputs> inputs, std::span<const std::uint64_t> starts,
    const Stream* before) {
  auto out = std::make_shared<Stream>();
  out->inputs_ = std::move(inputs);
  const FeedSpec& feed = out->inputs_->feed;
  if (feed.mode == Mode::kEvaluation) {
    PENSTOCK_RETURN_IF_ERROR(out->LayEvaluation());
  } else if (feed.packing.tokens != 0) {
    PENSTOCK_ASSIGN_OR_RETURN(
        out->schedule_,
        Schedule::CreateInUnits(*out->inputs_, starts,
                                before == nullptr ? nullptr : &before->schedule_));
    out->total_ = out->schedule_.total();
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(out->schedule_, Schedule::Create(*out->inputs_));
  }
  return out;
}

absl::Status Stream::LayEvaluation() {
  const FeedSpec& feed = inputs_->feed;
  std::uint64_t units = 0;
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    const SourceSpec& spec = feed.sources[i];
    if (spec.weight.nanos == 0) continue;
    std::shared_ptr<const Lineage> lineage = inputs_->sources[i].Made(spec.view);
    if (lineage == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(
          Lineage made,
          Lineage::Create(spec.view, {}, feed.buckets, inputs_->sources[i],
                          absl::StrCat("source \"", spec.name, "\" (", spec.dataset,
                                       ")")));
      lineage = std::make_shared<const Lineage>(std::move(made));
    }
    const auto& buckets = lineage->strata()[0].pool.buckets();
    for (std::uint32_t b = 0; b < buckets.size(); ++b) {
      runs_.push_back({units, i, static_cast<std::uint32_t>(evaluated_.size()), b});
      const std::uint64_t n = buckets[b].view.size(), m = buckets[b].samples;
      units += n / m + (n % m != 0 ? 1 : 0);
    }
    evaluated_.push_back(std::move(lineage));
  }
  total_ = units;
  return absl::OkStatus();
}

std::uint64_t Stream::NextBreak(std::uint64_t position) const {
  const std::uint64_t end = total_.value_or(UINT64_MAX);
  for (const Segment& g : schedule_.segments()) {
    if (g.first_position > position) return std::min(g.first_position, end);
  }
  return end;
}

void Stream::Read(std::uint64_t begin, std::uint64_t end,
                  std::vector<Sample>* samples, std::vector<Unit>* units) const {
  Walk walk(*this, samples, units);
  const auto after = [](std::uint64_t at, const auto& part) {
    return at < part.first;
  };
  const auto segment_after = [](std::uint64_t at, const Segment& g) {
    return at < g.first_position;
  };
  for (std::uint64_t p = begin; p < end; ++p) {
    if (!runs_.empty()) {
      const Run& run =
          *std::prev(std::upper_bound(runs_.begin(), runs_.end(), p, after));
      walk.Add(run, p - run.first);
      continue;
    }
    const auto& segments = schedule_.segments();
    const Segment& g = *std::prev(
        std::upper_bound(segments.begin(), segments.end(), p, segment_after));
    walk.Add(g, p - g.first_position);
  }
}

std::vector<std::uint64_t> Stream::CountsBefore(std::uint64_t position) const {
  if (runs_.empty()) return schedule_.CountsBefore(position);
  std::vector<std::uint64_t> counts(inputs_->feed.sources.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const std::uint64_t end = i + 1 < runs_.size() ? runs_[i + 1].first : *total_;
    counts[runs_[i].source] +=
        std::min(position, end) - std::min(position, runs_[i].first);
  }
  return counts;
}

}  // namespace penstock::plan
