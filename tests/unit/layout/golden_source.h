#ifndef PENSTOCK_TESTS_UNIT_LAYOUT_GOLDEN_SOURCE_H_
#define PENSTOCK_TESTS_UNIT_LAYOUT_GOLDEN_SOURCE_H_

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace penstock::layout::test {

// source_bytes() of tests/golden/layout/restate.py.
inline std::vector<std::uint8_t> SourceBytes(std::size_t count,
                                             std::uint32_t seed) {
  std::uint32_t x = seed * 2654435761u + 12345u;
  std::vector<std::uint8_t> out(count);
  for (auto& b : out) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<std::uint8_t>(x >> 24);
  }
  return out;
}

inline std::string ReadGolden(const std::string& name) {
  std::ifstream in(std::string(PENSTOCK_SOURCE_DIR "/tests/golden/layout/") +
                       name,
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace penstock::layout::test

#endif  // PENSTOCK_TESTS_UNIT_LAYOUT_GOLDEN_SOURCE_H_
