#include "common/config/yaml_message.h"

#include <catch2/catch.hpp>

#include "common/status/nearest_name.h"
#include "penstock/v1/daemon.pb.h"
#include "penstock/v1/feed.pb.h"

namespace penstock::config {
namespace {

std::string FaultsOf(const std::string& yaml) {
  v1::Feed feed;
  return std::string(ParseYaml(yaml, "f.yaml", &feed).status().message());
}

bool Has(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("yaml: scalars, lists, messages, enums, oneofs", "[config]") {
  v1::Feed feed;
  auto positions = ParseYaml(
      "name: \"a b\"\nseed: 18446744073709551615\norder: sequential\n"
      "sources:\n  - name: one\n    weight: 0.30\n    view: {frames: 4}\n"
      "outputs:\n  - name: k\n    keys:\n      keys: [KeyW, 1, true]\n"
      "  - name: t\n    times:\n",
      "f.yaml", &feed);
  REQUIRE(positions.status().message() == "");
  CHECK(feed.name() == "a b");
  CHECK(feed.seed() == UINT64_MAX);
  CHECK(feed.order() == v1::ORDER_SEQUENTIAL);
  CHECK(feed.sources(0).weight() == "0.30");  // verbatim
  CHECK(feed.outputs(0).keys().keys(1) == "1");
  CHECK(feed.outputs(1).has_times());
  CHECK(positions->Where("sources[0].weight") == "f.yaml:6:13");
  CHECK(positions->Where("sources[0].view.stride") == "f.yaml:7:11");
  CHECK(positions->Where("epochs") == "f.yaml");
}

TEST_CASE("yaml: another message, and an empty document", "[config]") {
  v1::DaemonConfig config;
  CHECK(ParseYaml("workers: 3\nio: pread\n", "d.yaml", &config).ok());
  CHECK(config.workers() == 3);
  CHECK(ParseYaml("", "d.yaml", &config).ok());
  CHECK(ParseYaml("# nothing\n", "d.yaml", &config).ok());
}

TEST_CASE("yaml: an unknown field has a position and the nearest name",
          "[config]") {
  CHECK(Has(FaultsOf("name: x\nglobal_bacth: 4\n"),
            "f.yaml:2:1: unknown field \"global_bacth\"\n"));
  CHECK(Has(FaultsOf("name: x\nglobal_bacth: 4\n"),
            "did you mean \"global_batch\"?"));
  CHECK(Has(FaultsOf("zzzzzzzz: 4\n"), "one of name, seed, global_batch"));
  CHECK(Has(FaultsOf("a: &a {name: x}\n<<: *a\n"), "unknown field \"<<\""));
}

TEST_CASE("yaml: wrong types say what was expected", "[config]") {
  CHECK(Has(FaultsOf("seed: -1\n"), "f.yaml:1:7: bad value of \"seed\""));
  CHECK(Has(FaultsOf("seed: 18446744073709551616\n"), "whole number from 0"));
  CHECK(Has(FaultsOf("seed: 1.0\n"), "whole number"));
  CHECK(Has(FaultsOf("seed: 0x10\n"), "whole number"));
  CHECK(Has(FaultsOf("seed: [1]\n"), "found     a list"));
  CHECK(Has(FaultsOf("name:\n"), "found     nothing"));
  CHECK(Has(FaultsOf("sources: {name: x}\n"), "a list of fields"));
  CHECK(Has(FaultsOf("sources: [x]\n"), "found     \"x\""));
  CHECK(Has(FaultsOf("order: shufle\n"), "did you mean \"shuffle\"?"));
  CHECK(
      Has(FaultsOf("order: ORDER_SHUFFLE\n"), "expected  shuffle, sequential"));
  CHECK(Has(FaultsOf("order: unspecified\n"), "bad value"));
  CHECK(Has(FaultsOf("- a\n- b\n"), "found     a list"));
  CHECK(Has(FaultsOf("[1]: x\n"), "the name of a field"));
}

TEST_CASE("yaml: a field twice, and two of a oneof", "[config]") {
  CHECK(Has(FaultsOf("seed: 1\nseed: 1\n"), "f.yaml:2:1: the field \"seed\""));
  CHECK(Has(FaultsOf("outputs:\n- times: {}\n  mouse: {}\n"),
            "f.yaml:3:3: \"mouse\" and \"times\" are both given"));
}

TEST_CASE("yaml: several faults in one run, but not without end", "[config]") {
  const std::string text = FaultsOf("sed: 1\nepochs: x\nordr: shuffle\n");
  CHECK(Has(text, "f.yaml:1:1"));
  CHECK(Has(text, "f.yaml:2:9"));
  CHECK(Has(text, "f.yaml:3:1"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "x" + std::to_string(i) + ": 1\n";
  CHECK(Has(FaultsOf(many), "f.yaml:20:1"));
  CHECK_FALSE(Has(FaultsOf(many), "f.yaml:21:1"));
  CHECK(Has(FaultsOf(many), "there are more faults"));
}

TEST_CASE("yaml: hostile documents end early", "[config]") {
  SECTION("aliases that double") {
    std::string bomb = "a0: &a0 [x, x]\n";
    for (int i = 1; i < 40; ++i) {
      const std::string b = std::to_string(i - 1), n = std::to_string(i);
      bomb += "a" + n + ": &a" + n + " [*a" + b + ", *a" + b + "]\n";
    }
    bomb += "outputs:\n- keys: {keys: *a39}\n";
    CHECK_FALSE(FaultsOf(bomb).empty());
    // The same through fields that exist.
    CHECK(Has(FaultsOf("sources: &s [" + std::string(3, ' ') +
                       "{view: &v "
                       "{frames: 1}}]\noutputs: [{keys: {keys: [a]}}]\n" +
                       bomb),
              "unknown field"));
  }
  SECTION("many values through one alias") {
    std::string text = "outputs:\n- keys: {keys: &k [";
    for (int i = 0; i < 2000; ++i) text += "x,";
    text += "x]}\n";
    for (int i = 0; i < 100; ++i) text += "- keys: {keys: *k}\n";
    CHECK(Has(FaultsOf(text), "too many values"));
  }
  SECTION("deep") {
    CHECK_FALSE(FaultsOf("sources: " + std::string(5000, '[')).empty());
    CHECK_FALSE(
        FaultsOf("sources: " + std::string(400, '[') + std::string(400, ']'))
            .empty());
  }
  SECTION("large") {
    CHECK(Has(FaultsOf("name: " + std::string(kYamlBytesMax, 'x')), "larger"));
  }
  SECTION("an alias inside itself") {
    CHECK_FALSE(FaultsOf("sources: &a [*a]\n").empty());
  }
  SECTION("several documents") {
    CHECK(Has(FaultsOf("name: x\n---\nname: y\n"), "several documents"));
  }
  SECTION("not YAML") {
    CHECK(Has(FaultsOf("name: x\n  bad: [\n"), "f.yaml:2:"));
    CHECK_FALSE(FaultsOf("name: *nowhere\n").empty());
    CHECK_FALSE(FaultsOf(std::string("\x00\xff\xfe", 3)).empty());
  }
}

TEST_CASE("nearest name: near ones only", "[config]") {
  const std::vector<std::string> names = {"frames", "stride", "fps", "hop"};
  CHECK(NearestName("framse", names) == "frames");
  CHECK(NearestName("Frames", names) == "frames");
  CHECK(NearestName("hopp", names) == "hop");
  CHECK(NearestName("weight", names) == "");
  CHECK(NearestName("", names) == "");
  CHECK(NearestName(std::string(10000, 'f'), names) == "");
}

}  // namespace
}  // namespace penstock::config
