#include "server/pipeline/unit_tensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::pipeline {
namespace {

using layout::TensorDesc;

// A row of one rank's tensors, and how many of its frames are samples'.
struct Row {
  std::uint64_t slot = 0, unit = 0, row = 0;
  std::uint32_t shape = 0;
  std::uint64_t frames = 0;
};

// Every row of every unit, masked ones too; those are of the first shape.
std::vector<Row> RowsOf(const BatchLayout& layout, const StepWork& work) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> used;
  for (const StepItem& item : work.items) {
    auto& rows = used[{item.rank, item.unit}];
    const std::size_t row = layout.unit_stride != 0 ? item.row : 0;
    rows.resize(std::max(rows.size(), row + 1));
    rows[row] = std::max<std::uint64_t>(rows[row], item.frame + item.sample.frames);
  }
  std::vector<Row> out;
  for (const auto& [rank, slot] : work.slots) {
    const RankWork& of_rank = work.of_ranks.at(rank);
    for (std::uint64_t unit = 0; unit < work.rank_units; ++unit) {
      const bool there = unit < of_rank.shapes.size();
      const std::uint32_t shape = there ? of_rank.shapes[unit] : 0;
      const auto frames = used.find({rank, unit});
      const std::uint64_t rows =
          layout.unit_stride != 0 ? layout.shapes[shape].slab.tensors[0].shape[0] : 1;
      for (std::uint64_t row = 0; row < rows; ++row) {
        const bool filled = frames != used.end() && row < frames->second.size();
        out.push_back({slot.offset, unit, row, shape,
                       filled ? frames->second[row] : 0});
      }
    }
  }
  return out;
}

// A tensor of i32 in one row.
class Ints {
 public:
  Ints(const BatchLayout& layout, std::span<std::uint8_t> arena,
       const TensorDesc& tensor, std::uint64_t slot, std::uint64_t unit,
       std::uint64_t row)
      : bytes_(arena.subspan(slot + layout.RowOffset(tensor, unit, row),
                             tensor.item_bytes())) {}
  std::uint64_t size() const { return bytes_.size() / sizeof(std::int32_t); }
  void Set(std::uint64_t i, std::uint64_t value) {
    const auto v = static_cast<std::int32_t>(value);
    std::memcpy(bytes_.data() + i * sizeof v, &v, sizeof v);
  }

 private:
  std::span<std::uint8_t> bytes_;
};

const TensorDesc& Named(const ShapeLayout& shape, std::string_view name) {
  return *std::find_if(shape.slab.tensors.begin(), shape.slab.tensors.end(),
                       [&](const TensorDesc& t) { return t.name == name; });
}

// The tokens of a pack in the order in which its slices follow each other,
// slice by slice. `ends` are those of the samples.
std::vector<std::vector<std::uint64_t>> SlicesOf(
    const plan::CpCut& cp, std::uint64_t tokens,
    std::vector<std::uint64_t> ends) {
  ends.insert(ends.begin(), 0);
  ends.push_back(tokens);  // the padding is a document of its own
  std::vector<std::vector<std::uint64_t>> out(cp.off() ? 1 : cp.size);
  for (std::uint32_t c = 0; c < out.size(); ++c) {
    const auto mode = cp.off() ? plan::CpMode::kOff : cp.mode;
    // The layout was refused where this could fail.
    const auto ranges =
        plan::CpSlice(mode, tokens, static_cast<std::uint32_t>(out.size()), c,
                      ends)
            .value();
    for (const plan::IndexRange& r : ranges) {
      for (std::uint64_t i = 0; i < r.count; ++i) {
        out[c].push_back(r.begin + i * r.stride);
      }
    }
  }
  return out;
}

// What lies where in one pack. Adds the samples' tokens in each of its slices
// to `slice_tokens`.
void FillPack(const BatchLayout& layout, std::span<std::uint8_t> arena,
              std::uint64_t slot, std::uint64_t unit,
              std::span<const StepItem* const> items,
              std::vector<std::uint64_t>& slice_tokens) {
  const ShapeLayout& shape = layout.shapes[0];
  const auto ints = [&](std::string_view name) {
    return Ints(layout, arena, Named(shape, name), slot, unit, 0);
  };
  Ints segments = ints("segment_ids"), positions = ints("position_ids");
  Ints tokens_before = ints("cu_seqlens"), frames_before = ints("cu_frames");
  struct Token {
    std::uint64_t segment = 0, position = 0;
  };
  std::vector<Token> tokens(segments.size());
  std::vector<std::uint64_t> ends;
  std::uint64_t token = 0, frame = 0;
  tokens_before.Set(0, 0);
  frames_before.Set(0, 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const SampleRef& s = items[i]->sample;
    for (std::uint64_t k = 0; k < s.tokens; ++k) tokens[token++] = {i + 1, k};
    ends.push_back(token);
    frame += s.frames;
    tokens_before.Set(i + 1, token);
    frames_before.Set(i + 1, frame);
  }
  std::uint64_t at = 0;
  const auto slices = SlicesOf(layout.cp, tokens.size(), std::move(ends));
  slice_tokens.resize(slices.size());
  for (std::size_t c = 0; c < slices.size(); ++c) {
    for (const std::uint64_t t : slices[c]) {
      segments.Set(at, tokens[t].segment);
      positions.Set(at++, tokens[t].position);
      slice_tokens[c] += tokens[t].segment != 0 ? 1 : 0;
    }
  }
  for (std::uint64_t i = items.size() + 1; i < tokens_before.size(); ++i) {
    tokens_before.Set(i, token);
    frames_before.Set(i, frame);
  }
}

}  // namespace

void ClearPadding(const FeedPlan& plan, const BatchLayout& layout,
                  std::span<std::uint8_t> arena, const StepWork& work) {
  for (const Row& r : RowsOf(layout, work)) {
    const auto& tensors = layout.shapes[r.shape].slab.tensors;
    for (std::size_t o = 0; o < plan.outputs().size(); ++o) {
      const TensorDesc& t = tensors[o];
      const std::uint64_t used = r.frames * t.strides[1];
      const auto rest =
          arena.subspan(r.slot + layout.RowOffset(t, r.unit, r.row) + used,
                        t.item_bytes() - used);
      std::memset(rest.data(), 0, rest.size());
    }
  }
}

void FillPlanTensors(const FeedPlan& plan, const BatchLayout& layout,
                     std::span<std::uint8_t> arena, StepWork& work) {
  if (!plan.shapes().empty()) {
    for (const Row& r : RowsOf(layout, work)) {
      Ints(layout, arena, Named(layout.shapes[r.shape], "sample_frames"), r.slot,
           r.unit, r.row)
          .Set(0, r.frames);
    }
  }
  if (plan.lanes()) {
    for (const StepItem& item : work.items) {
      Ints(layout, arena, Named(layout.shapes[0], "reset"), item.slot,
           item.unit, 0)
          .Set(0, item.sample.reset ? 1 : 0);
    }
  }
  if (plan.packing().tokens == 0) return;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<const StepItem*>>
      packs;
  for (const StepItem& item : work.items) {
    packs[{item.rank, item.unit}].push_back(&item);
  }
  for (const auto& [rank, slot] : work.slots) {
    for (std::uint64_t unit = 0; unit < work.rank_units; ++unit) {
      FillPack(layout, arena, slot.offset, unit, packs[{rank, unit}],
               work.of_ranks[rank].slice_tokens);
    }
  }
}

}  // namespace penstock::pipeline
