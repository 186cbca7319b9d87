#ifndef PENSTOCK_COMMON_LAYOUT_TENSOR_H_
#define PENSTOCK_COMMON_LAYOUT_TENSOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Where the tensors of a batch lie in its slab.
namespace penstock::layout {

enum class DType : std::uint8_t { kU8 = 1, kI32 = 2, kI64 = 3, kF32 = 4 };

std::uint64_t DTypeBytes(DType dtype);         // 0 for an unknown value
std::string_view DTypeName(DType dtype);       // "u8", "i32", "i64", "f32"

inline constexpr std::uint64_t kTensorAlignment = 256;
inline constexpr std::uint64_t kSlabBytesMax = std::uint64_t{1} << 40;
inline constexpr std::size_t kTensorsMax = 256;
inline constexpr std::size_t kDimensionsMax = 8;

// One tensor of one item (sample).
struct ItemTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<std::uint64_t> shape;  // without the batch dimension
};

// One tensor of a batch: row-major, items back to back.
struct TensorDesc {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<std::uint64_t> shape;    // first: items
  std::vector<std::uint64_t> strides;  // in bytes, as many as shape
  std::uint64_t offset = 0;            // in the slab, 256-byte aligned

  std::uint64_t bytes() const { return shape[0] * item_bytes(); }
  std::uint64_t item_bytes() const { return strides[0]; }
  // Offset in the slab of item `item`.
  std::uint64_t ItemOffset(std::uint64_t item) const {
    return offset + item * strides[0];
  }
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

struct SlabLayout {
  std::vector<TensorDesc> tensors;  // in the order given
  std::uint64_t bytes = 0;          // multiple of 256
};

// Tensors in the order given, each at the next multiple of 256.
//
// kInvalidArgument: no item, no tensor, a side of 0, too many dimensions or
//   tensors, an unknown dtype, an empty or repeated name
// kOutOfRange: more than kSlabBytesMax
absl::StatusOr<SlabLayout> LayOutSlab(const std::vector<ItemTensor>& tensors,
                                      std::uint64_t items);

}  // namespace penstock::layout

#endif  // PENSTOCK_COMMON_LAYOUT_TENSOR_H_
