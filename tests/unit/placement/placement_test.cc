#include <catch2/catch.hpp>

#include "client/placement/expand.h"

namespace penstock::placement {
namespace {

TEST_CASE("placement: says what is missing, or is there", "[placement]") {
  std::unique_ptr<DeviceExpander> expander;
  const Message message = DeviceExpander::Create(0, 1 << 20, &expander);
  if (message.empty()) {
    REQUIRE(expander != nullptr);
    CHECK(expander->Synchronize().empty());
  } else {
    CHECK(expander == nullptr);
    CHECK(message.find("device placement") == 0);
    CHECK(message.find("use placement \"host\"") != std::string::npos);
  }
}

TEST_CASE("placement: a device that is not there is refused", "[placement]") {
  std::unique_ptr<DeviceExpander> expander;
  CHECK_FALSE(DeviceExpander::Create(-1, 1 << 20, &expander).empty());
  CHECK(expander == nullptr);
}

}  // namespace
}  // namespace penstock::placement
