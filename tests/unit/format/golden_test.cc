#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/support/temp_dir.h"
#include "tests/unit/format/samples.h"

namespace penstock::format {
namespace {

// tests/golden/format/restate.py reads the same files from README.md's words.
// PENSTOCK_WRITE_GOLDEN=1 writes them; a change is a new format version.
void Same(const std::string& name, const test::Bytes& bytes) {
  const std::string path = PENSTOCK_SOURCE_DIR "/tests/golden/format/" + name;
  const std::string text(bytes.begin(), bytes.end());
  if (std::getenv("PENSTOCK_WRITE_GOLDEN") != nullptr) {
    penstock::test::WriteAll(path, text);
  }
  CHECK(penstock::test::ReadAll(path) == text);
}

TEST_CASE("format: today's encoder gives the golden bytes", "[format][golden]") {
  const auto shard = test::MakeShard();
  Same("small.pshard", shard.bytes);
  Same("small.pidx", EncodeCaptureIndex(test::IndexOf(shard)));
}

}  // namespace
}  // namespace penstock::format
