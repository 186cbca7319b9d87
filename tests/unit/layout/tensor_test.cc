#include "common/layout/tensor.h"

#include <catch2/catch.hpp>

namespace penstock::layout {
namespace {

TEST_CASE("slab: tensors are row-major, in order, 256-byte aligned",
          "[layout]") {
  auto slab = LayOutSlab({{"video", DType::kU8, {4, 3, 9, 16}},
                          {"keys", DType::kU8, {4, 5}},
                          {"mouse", DType::kI32, {4, 4}},
                          {"times", DType::kI64, {4}},
                          {"scalar", DType::kF32, {}}},
                         3);
  REQUIRE(slab.ok());
  const auto& t = slab->tensors;
  REQUIRE(t.size() == 5);
  CHECK(t[0].shape == std::vector<std::uint64_t>{3, 4, 3, 9, 16});
  CHECK(t[0].strides == std::vector<std::uint64_t>{1728, 432, 144, 16, 1});
  CHECK(t[0].offset == 0);
  CHECK(t[0].bytes() == 5184);
  CHECK(t[1].offset == 5376);  // 21 * 256
  CHECK(t[2].offset == 5632);
  CHECK(t[2].strides == std::vector<std::uint64_t>{64, 16, 4});
  CHECK(t[2].ItemOffset(2) == 5632 + 128);
  CHECK(t[3].offset == 5888);
  CHECK(t[4].offset == 6144);
  CHECK(t[4].strides == std::vector<std::uint64_t>{4});
  CHECK(slab->bytes == 6400);
}

TEST_CASE("slab: refuses what has no meaning", "[layout]") {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const ItemTensor ok{"a", DType::kU8, {2}};
  CHECK(LayOutSlab({ok}, 0).status().code() == invalid);
  CHECK(LayOutSlab({}, 1).status().code() == invalid);
  CHECK(LayOutSlab({ok, ok}, 1).status().code() == invalid);
  CHECK(LayOutSlab({{"", DType::kU8, {2}}}, 1).status().code() == invalid);
  CHECK(LayOutSlab({{"a", DType{7}, {2}}}, 1).status().code() == invalid);
  CHECK(LayOutSlab({{"a", DType::kU8, {2, 0}}}, 1).status().code() == invalid);
  CHECK(LayOutSlab({{"a", DType::kU8, {1, 1, 1, 1, 1, 1, 1, 1}}}, 1)
            .status()
            .code() == invalid);
  SECTION("sizes that overflow 64 bits") {
    const std::uint64_t huge = std::uint64_t{1} << 63;
    CHECK(LayOutSlab({{"a", DType::kI64, {huge, huge}}}, huge).status().code() ==
          absl::StatusCode::kOutOfRange);
    CHECK(LayOutSlab({{"a", DType::kU8, {kSlabBytesMax}},
                      {"b", DType::kU8, {kSlabBytesMax}}}, 1)
              .status().code() == absl::StatusCode::kOutOfRange);
  }
}

}  // namespace
}  // namespace penstock::layout
