#include "common/layout/tensor.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::layout {
namespace {

absl::Status Invalid(const std::string& name, std::string what) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "tensor \"" + name + "\"",
       .what = std::move(what),
       .found = "the outputs of the feed as given",
       .expected =
           "tensors with a name of their own, a known type and a size above 0",
       .action = "correct the outputs of the feed"});
}

absl::Status Check(const std::vector<ItemTensor>& tensors, std::size_t i) {
  const ItemTensor& t = tensors[i];
  if (t.name.empty()) return Invalid(t.name, "has no name");
  for (std::size_t k = 0; k < i; ++k) {
    if (tensors[k].name == t.name) return Invalid(t.name, "is there twice");
  }
  if (DTypeBytes(t.dtype) == 0) return Invalid(t.name, "has an unknown dtype");
  if (t.shape.size() + 1 > kDimensionsMax) {
    return Invalid(t.name, absl::StrFormat("has more than %d dimensions",
                                           kDimensionsMax));
  }
  if (std::count(t.shape.begin(), t.shape.end(), 0) != 0) {
    return Invalid(t.name, "has a side of 0");
  }
  return absl::OkStatus();
}

absl::Status TooLarge() {
  return MakeError(
      absl::StatusCode::kOutOfRange,
      {.where = "batch slab",
       .what = "the share of a rank is too large",
       .found = "more than that",
       .expected = absl::StrFormat("at most %d bytes", kSlabBytesMax),
       .action = "make global_batch, frames or the output sizes smaller, or "
                 "use more ranks"});
}

}  // namespace

std::uint64_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kU8: return 1;
    case DType::kI32: return 4;
    case DType::kI64: return 8;
    case DType::kF32: return 4;
  }
  return 0;
}

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kU8: return "u8";
    case DType::kI32: return "i32";
    case DType::kI64: return "i64";
    case DType::kF32: return "f32";
  }
  return "unknown";
}

absl::StatusOr<SlabLayout> LayOutSlab(const std::vector<ItemTensor>& tensors,
                                      std::uint64_t items) {
  if (items == 0 || tensors.empty() || tensors.size() > kTensorsMax) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "batch slab",
         .what = "nothing to lay out, or too much",
         .found =
             absl::StrFormat("%d items of %d tensors", items, tensors.size()),
         .expected =
             absl::StrFormat("at least one item, 1 to %d tensors", kTensorsMax),
         .action = "make global_batch, frames or the output sizes fit"});
  }
  SlabLayout slab;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(Check(tensors, i));
    TensorDesc d{.name = tensors[i].name, .dtype = tensors[i].dtype};
    d.shape.push_back(items);
    d.shape.insert(d.shape.end(), tensors[i].shape.begin(),
                   tensors[i].shape.end());
    d.strides.assign(d.shape.size(), 0);
    // Row-major, checked from the innermost side outwards.
    std::uint64_t bytes = DTypeBytes(d.dtype);
    for (std::size_t k = d.shape.size(); k-- > 0;) {
      d.strides[k] = bytes;
      if (d.shape[k] > kSlabBytesMax / bytes) return TooLarge();
      bytes *= d.shape[k];
    }
    d.offset = slab.bytes;
    slab.bytes += (bytes + kTensorAlignment - 1) / kTensorAlignment *
                  kTensorAlignment;
    if (slab.bytes > kSlabBytesMax) return TooLarge();
    slab.tensors.push_back(std::move(d));
  }
  return slab;
}

}  // namespace penstock::layout
