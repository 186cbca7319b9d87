#include "server/cli/batch_items.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/layout/item_digest.h"
#include "common/status/status.h"

namespace penstock::cli {
namespace {

using layout::TensorDesc;

constexpr std::string_view kOfThePlan[] = {"sample_frames", "reset",
                                           "segment_ids",   "position_ids",
                                           "cu_seqlens",    "cu_frames"};

bool OfThePlan(const TensorDesc& t) {
  return std::count(std::begin(kOfThePlan), std::end(kOfThePlan), t.name) != 0;
}

// A video tensor is [rows, T, C, H, W] or [rows, T, H, W, C] of bytes.
bool IsVideo(const TensorDesc& t) {
  return t.dtype == layout::DType::kU8 && t.shape.size() == 5;
}

const TensorDesc* Named(const BatchPart& part, std::string_view name) {
  for (const TensorDesc& t : part.tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

std::uint64_t IntAt(const ConsumedBatch& batch, const TensorDesc& t,
                    std::uint64_t row, std::uint64_t i) {
  std::int32_t v = 0;
  std::memcpy(&v, batch.bytes.data() + t.ItemOffset(row) + i * sizeof v, sizeof v);
  return static_cast<std::uint64_t>(v);
}

// The frames of a sample in a row.
struct Slice {
  std::uint64_t row = 0, first = 0, frames = 0;
};

std::vector<Slice> SlicesOf(const ConsumedBatch& batch, const BatchPart& part) {
  std::vector<Slice> out;
  const std::uint64_t rows = part.tensors[0].shape[0];
  const TensorDesc* frames = Named(part, "sample_frames");
  const TensorDesc* ends = Named(part, "cu_frames");
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (frames != nullptr) {
      const std::uint64_t n = IntAt(batch, *frames, row, 0);
      if (n != 0) out.push_back({row, 0, n});
    } else if (ends != nullptr) {
      for (std::uint64_t i = 1; i < ends->shape[1]; ++i) {
        const std::uint64_t begin = IntAt(batch, *ends, row, i - 1);
        const std::uint64_t end = IntAt(batch, *ends, row, i);
        if (end > begin) out.push_back({row, begin, end - begin});
      }
    } else if (row < batch.sample_ids.size()) {
      out.push_back({row, 0, part.tensors[0].shape[1]});
    }
  }
  return out;
}

std::span<const std::uint8_t> BytesOf(const ConsumedBatch& batch,
                                      const TensorDesc& t, const Slice& s) {
  return batch.bytes.subspan(t.ItemOffset(s.row) + s.first * t.strides[1],
                             s.frames * t.strides[1]);
}

absl::Status CheckPadding(const ConsumedBatch& batch, const BatchPart& part,
                          const std::vector<Slice>& slices) {
  std::vector<std::uint64_t> used(part.tensors[0].shape[0], 0);
  for (const Slice& s : slices) used[s.row] = s.first + s.frames;
  for (const TensorDesc& t : part.tensors) {
    if (OfThePlan(t)) continue;
    for (std::uint64_t row = 0; row < used.size(); ++row) {
      const auto rest =
          BytesOf(batch, t, {row, used[row], t.shape[1] - used[row]});
      if (std::all_of(rest.begin(), rest.end(), [](auto b) { return b == 0; })) {
        continue;
      }
      return MakeError(absl::StatusCode::kDataLoss,
                       {.where = absl::StrFormat("step %d, row %d, tensor \"%s\"",
                                                 batch.step, row, t.name),
                        .what = "what no sample fills is not empty",
                        .found = "bytes other than 0",
                        .expected = "0",
                        .action = "report it with the dataset, the feed and the "
                                  "step"});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Digest128>> DigestItems(const ConsumedBatch& batch) {
  std::vector<Digest128> out;
  for (const BatchPart& part : batch.parts) {
    const std::vector<Slice> slices = SlicesOf(batch, part);
    PENSTOCK_RETURN_IF_ERROR(CheckPadding(batch, part, slices));
    for (const Slice& s : slices) {
      std::vector<Digest128> chunks;
      for (const TensorDesc& t : part.tensors) {
        if (OfThePlan(t)) continue;
        const auto bytes = BytesOf(batch, t, s);
        if (IsVideo(t)) {
          layout::AppendChunkDigests(bytes, t.strides[1], chunks);
        } else {
          layout::AppendChunkDigests(bytes, chunks);
        }
      }
      out.push_back(layout::DigestOfDigests(chunks));
    }
  }
  return out;
}

std::uint64_t FramesOf(const ConsumedBatch& batch) {
  std::uint64_t frames = 0;
  for (const BatchPart& part : batch.parts) {
    const auto videos = std::count_if(part.tensors.begin(), part.tensors.end(), IsVideo);
    for (const Slice& s : SlicesOf(batch, part)) {
      frames += s.frames * static_cast<std::uint64_t>(videos);
    }
  }
  return frames;
}

}  // namespace penstock::cli
