#include "server/dataset/manifest.h"

#include <catch2/catch.hpp>

#include "common/hash/hash.h"

namespace penstock::dataset {
namespace {

Manifest Sample() {
  Manifest m;
  m.id = std::string(64, 'a');
  m.schema = R"({"b": 1, "a": [1.5, "é"]})";
  m.lineage = R"({"tool":"penstock 0.1","sources":["x.mp4"]})";
  m.files = {{"shards/0.pshard", 9, std::string(64, 'c')},
             {"captures.pidx", 7, std::string(64, 'b')}};
  m.shards = {"shards/0.pshard"};
  return m;
}

// The manifest with one text changed and the digest made again, as somebody
// who means harm would.
std::string Forge(std::string text, const std::string& from,
                  const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  const auto at = text.find(",\n \"digest\"");
  const std::string body = CanonicalJson(text.substr(0, at) + "}").value();
  return text.substr(0, at) + ",\n \"digest\": \"" +
         hash::Hex(hash::Sha256Of(body)) + "\"\n}\n";
}

TEST_CASE("manifest: encode and parse is identity", "[dataset]") {
  const std::string text = EncodeManifest(Sample()).value();
  auto m = ParseManifest(text, "m");
  REQUIRE(m.status().message() == "");
  CHECK(m->files.size() == 2);
  CHECK(m->Find("captures.pidx")->bytes == 7);
  CHECK(m->Find("other") == nullptr);
  CHECK(m->schema == R"({"a":[1.5,"é"],"b":1})");
  CHECK(m->verdict == "uncertified");
  CHECK(EncodeManifest(*m).value() == text);
  CHECK(text.substr(text.size() - 80, 12) == " \"digest\": \"");
}

TEST_CASE("B-15: any flipped bit of a manifest is found", "[dataset]") {
  const std::string text = EncodeManifest(Sample()).value();
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      INFO("byte " << at << " bit " << bit);
      REQUIRE_FALSE(ParseManifest(bad, "m").ok());
    }
  }
}

TEST_CASE("B-15: any cut manifest is refused", "[dataset]") {
  const std::string text = EncodeManifest(Sample()).value();
  for (std::size_t n = 0; n < text.size(); ++n) {
    REQUIRE_FALSE(ParseManifest(text.substr(0, n), "m").ok());
  }
  CHECK_FALSE(ParseManifest(text + " ", "m").ok());
}

TEST_CASE("manifest: forged ones with a right digest are refused",
          "[dataset]") {
  const std::string text = EncodeManifest(Sample()).value();
  REQUIRE(ParseManifest(Forge(text, "uncertified", "certified"), "m").ok());
  for (const char* path : {"/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/",
                           "", "a\\\\b", "a\\u0000b"}) {
    INFO(path);
    CHECK(ParseManifest(Forge(text, "captures.pidx", path), "m")
              .status()
              .code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(ParseManifest(Forge(text, "_major\": 1", "_major\": 2"), "m")
            .status()
            .code() == absl::StatusCode::kFailedPrecondition);
  CHECK_FALSE(
      ParseManifest(Forge(text, "\"bytes\": 7", "\"bytes\": -7"), "m").ok());
  CHECK_FALSE(
      ParseManifest(Forge(text, "\"bytes\": 7", "\"bytes\": \"7\""), "m").ok());
  CHECK_FALSE(
      ParseManifest(Forge(text, "captures.pidx", "manifest.json"), "m").ok());
  CHECK_FALSE(
      ParseManifest(Forge(text, "captures.pidx", "shards/0.pshard"), "m").ok());
}

TEST_CASE("manifest: the digest's error says found and expected", "[dataset]") {
  std::string text = EncodeManifest(Sample()).value();
  text.replace(text.find("uncertified"), 11, "certified!!");
  const auto status = ParseManifest(text, "dir/manifest.json").status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  const std::string message(status.message());
  for (const char* part : {"dir/manifest.json", "found", "expected", "do "}) {
    CHECK(message.find(part) != std::string::npos);
  }
}

TEST_CASE("manifest: JSON nested without end is refused", "[dataset]") {
  CHECK_FALSE(ParseManifest(std::string(1'000'000, '['), "m").ok());
  std::string deep = "{\"a\":";
  for (int i = 0; i < 200'000; ++i) deep += "[";
  CHECK_FALSE(CanonicalJson(deep).ok());
}

TEST_CASE("manifest: values of every kind are read as they were written",
          "[dataset]") {
  Manifest m = Sample();
  m.schema = R"({"n":null,"t":true,"f":false,"i":-3,"u":18446744073709551615,)"
             R"("d":1e-7,"e":[],"o":{},"l":[[1],{"a":[{}]}],)"
             R"("s":"\" \\ \b\f\n\r\t \u0001 \u00e9 \ud83d\ude00 /"})";
  m.lineage = "[1, 2.5, \"x\"]";
  m.split_rule = "\"a\"";
  m.contract = "c \"q\" \n";
  const std::string text = EncodeManifest(m).value();
  const auto read = ParseManifest(text, "m");
  REQUIRE(read.status().message() == "");
  CHECK(read->schema == CanonicalJson(m.schema).value());
  CHECK(read->lineage == "[1,2.5,\"x\"]");
  CHECK(read->split_rule == "\"a\"");
  CHECK(read->contract == m.contract);
  CHECK(EncodeManifest(*read).value() == text);
}

TEST_CASE("manifest: what is not as it is written is refused with its place",
          "[dataset]") {
  const std::string text = EncodeManifest(Sample()).value();
  const auto message = [](const std::string& bad) {
    const auto status = ParseManifest(bad, "m").status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  // The digest is of the values: these have the right one.
  std::string spaced = text;
  spaced.insert(text.find("\n \"files\""), " ");
  CHECK(message(spaced).find("byte " + std::to_string(text.find("\n \"files\""))) !=
        std::string::npos);
  std::string escaped = text;
  escaped.replace(text.find("penstock 0.1"), 1, "\\u0070");
  CHECK(message(escaped).find("byte " + std::to_string(text.find("penstock 0.1"))) !=
        std::string::npos);
  std::string broken = text;
  broken.replace(text.find("\"id\":"), 5, "\"id\" ");
  CHECK(message(broken).find("line ") != std::string::npos);
  const std::string twice = Forge(
      text, " \"contract\": \"\",", " \"contract\": \"\",\n \"contract\": \"\",");
  message(twice);
  message(Forge(text, "\"sha256\"", "\"sha255\""));
  message(Forge(text, "\"shards\": [\n  \"shards/0.pshard\"", "\"shards\": [\n  7"));
  message(Forge(text, "\"id\"", "\"ie\""));
}

TEST_CASE("manifest: a long one is read in one pass", "[dataset]") {
  // Quadratic work would be 10^10 looks at files.
  Manifest m = Sample();
  for (int i = 0; i < 100'000; ++i) {
    m.shards.push_back("shards/n" + std::to_string(i));
    m.files.push_back({m.shards.back(), 1, std::string(64, 'c')});
  }
  const auto read = ParseManifest(EncodeManifest(m).value(), "m");
  REQUIRE(read.status().message() == "");
  CHECK(read->shards == m.shards);
}

}  // namespace
}  // namespace penstock::dataset
