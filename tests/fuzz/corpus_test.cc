#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <string>

#include "tests/fuzz/targets.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace penstock::fuzz {
namespace {

void Run(const Target& target, const std::string& bytes) {
  target.run({reinterpret_cast<const std::uint8_t*>(bytes.data()),
              bytes.size()});
}

TEST_CASE("fuzz: the corpora and their neighbours crash no parser", "[fuzz]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const Target& target : kTargets) {
    const std::string folder =
        PENSTOCK_SOURCE_DIR "/tests/fuzz/corpus/" + std::string(target.name);
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      INFO(entry.path());
      ++files;
      const std::string bytes = test::ReadAll(entry.path().string());
      Run(target, bytes);
      for (std::size_t n = 0; n < bytes.size(); n += 1 + bytes.size() / 200) {
        Run(target, bytes.substr(0, n));
      }
      for (int i = 0; i < 2000 && !bytes.empty(); ++i) {
        std::string bad = bytes;
        for (std::uint64_t k = random() % 3; k < 3; ++k) {
          bad[random() % bad.size()] = static_cast<char>(random());
        }
        if (random() % 2 == 0 && bad.size() >= 4) {
          bad.replace(random() % (bad.size() - 3), 4, "\xff\xff\xff\xff");
        }
        Run(target, bad);
      }
    }
    CHECK(files > 0);
  }
}

}  // namespace
}  // namespace penstock::fuzz
