#ifndef PENSTOCK_TESTS_SUPPORT_SEED_H_
#define PENSTOCK_TESTS_SUPPORT_SEED_H_

#include <cstdint>
#include <cstdlib>

namespace penstock::test {

// The seed of generated cases: PENSTOCK_TEST_SEED, or 1. Tests print it with
// INFO, so that a failure can be replayed.
inline std::uint64_t SeedFromEnv() {
  const char* text = std::getenv("PENSTOCK_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_SUPPORT_SEED_H_
