// Import, verify and inspect on real captures, with the real program.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::Child;

const std::string kPenstock = std::string(PENSTOCK_BIN_DIR) + "/penstock";
const std::string kCaptures =
    std::string(PENSTOCK_SOURCE_DIR) + "/tests/data/captures";
const std::string kShared =
    std::string(PENSTOCK_SOURCE_DIR) + "/../shared/captures";

struct Run {
  int code;
  std::string output;
};
Run Penstock(std::vector<std::string> args) {
  args.insert(args.begin(), kPenstock);
  Child c(args);
  const int code = c.Wait(120'000);
  return {code, c.output()};
}

// The line of `schema` in JSON lines.
std::vector<Json> Lines(const std::string& output, const std::string& schema) {
  std::vector<Json> out;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    Json j = Json::parse(line, nullptr, false);
    if (j.is_object() && j.value("schema", "") == schema) out.push_back(j);
  }
  return out;
}

std::string IdOf(const std::string& output) {
  const auto lines = Lines(output, "penstock.import.v1");
  return lines.empty() ? "" : lines[0]["id"].get<std::string>();
}

void CheckWords(const Run& run, int code,
                const std::vector<std::string>& words) {
  INFO(run.output);
  CHECK(run.code == code);
  for (const auto& word : words) {
    INFO("word " << word);
    CHECK(run.output.find(word) != std::string::npos);
  }
}

TEST_CASE("import: the same sources give the same id, whatever the order and jobs",
          "[integration]") {
  test::TempDir dir;
  const Run one = Penstock({"import", kCaptures, "--out", dir / "a", "--jobs",
                            "1", "--json"});
  REQUIRE(one.code == 0);
  std::vector<std::string> args = {"import"};
  for (const char* name : {"solarwolf-l9", "freedoom2-map02", "freedoom1-e1m1",
                           "freedoom2-map01"}) {
    args.push_back(kCaptures + "/" + name);
  }
  args.insert(args.end(), {"--out", dir / "b", "--jobs", "2", "--json"});
  const Run two = Penstock(args);
  REQUIRE(two.code == 0);
  CHECK(IdOf(one.output).size() == 64);
  CHECK(IdOf(one.output) == IdOf(two.output));
  CHECK(Penstock({"verify", dir / "a"}).code == 0);
  // Versions never change.
  CheckWords(Penstock({"import", kCaptures, "--out", dir / "a"}), 2,
             {"there already", "another --out"});
}

TEST_CASE("import: killed in the middle it leaves no half dataset",
          "[integration]") {
  test::TempDir dir;
  {
    Child import({kPenstock, "import", kCaptures, "--out", dir / "d", "--jobs",
                  "1"});
    REQUIRE(import.WaitFor("[1/4]"));
    import.Kill(SIGKILL);
    import.Wait();
  }
  CHECK_FALSE(fs::exists(dir / "d"));
  const Run again = Penstock({"import", kCaptures, "--out", dir / "d", "--json"});
  CHECK(again.code == 0);
  CHECK(Penstock({"verify", dir / "d"}).code == 0);
  CHECK_FALSE(fs::exists(dir / "d.importing"));
}

TEST_CASE("inspect --raw: every frame is the one that ffmpeg decodes (B-37)",
          "[integration]") {
  test::TempDir dir;
  REQUIRE(Penstock({"import", kCaptures, "--out", dir / "d"}).code == 0);
  const Run list = Penstock({"inspect", dir / "d", "--json"});
  int videos = 0;
  for (const Json& track : Lines(list.output, "penstock.inspect.v1")) {
    if (track["kind"] != "video") continue;
    ++videos;
    const std::string capture = track["capture"];
    const std::string source = track["source"];
    REQUIRE(Penstock({"inspect", dir / "d:" + capture, "--raw", dir / "ours"})
                .code == 0);
    Child ffmpeg({"/usr/bin/ffmpeg", "-nostdin", "-v", "error", "-y",
                  "-noautorotate", "-i", source, "-map", "0:v:0", "-fps_mode",
                  "passthrough", "-f", "rawvideo", dir / "theirs"});
    INFO(source);
    REQUIRE(ffmpeg.Wait(120'000) == 0);
    Child compare({"/usr/bin/cmp", dir / "ours", dir / "theirs"});
    CHECK(compare.Wait() == 0);
    // One frame alone, from the middle of a GOP, equals its place in the whole.
    const std::uint64_t frame = track["frames"].get<std::uint64_t>() / 2 + 7;
    REQUIRE(Penstock({"inspect",
                      dir / "d:" + capture + ":" + std::to_string(frame) + "+1",
                      "--raw", dir / "one"})
                .code == 0);
    const std::uint64_t bytes = fs::file_size(dir / "one");
    std::ifstream whole(dir / "ours", std::ios::binary);
    std::string expected(bytes, '\0');
    whole.seekg(static_cast<std::streamoff>(bytes * frame));
    whole.read(expected.data(), static_cast<std::streamsize>(bytes));
    CHECK(test::ReadAll(dir / "one") == expected);
  }
  CHECK(videos == 4);
  const Run sheet =
      Penstock({"inspect", dir / "d:0:0+64", "--png", dir / "sheet.png"});
  CHECK(sheet.code == 0);
  CHECK(test::ReadAll(dir / "sheet.png").substr(1, 3) == "PNG");
}

// What shared/captures/INDEX.md says of each file.
struct Answer {
  std::uint64_t frames, keyframes;
  double first_s, last_s;  // last < 0: the index does not say
  bool damaged = false;
};
const std::map<std::string, Answer> kAnswers = {
    {"dali_extra__cfr.mpeg", {180, 1, 0.533333, -1}},
    {"decord__corrupted.mp4", {49, 1, 0, 4.9, true}},
    {"decord__unordered.mov", {4, 1, 0, 0.09375}},
    {"decord__video_90.mov", {3, 1, 0, 0.066667}},
    {"energon__sync_test.mp4", {1891, 8, 0, 63.0}},
    {"media3__edit_list_positive_shift.mp4", {270, 2, 1.0, 9.966667}},
    {"media3__sample_android_slow_motion.mp4", {7, 1, 0, 0.492011}},
    {"media3__sample_partially_fragmented.mp4", {30, 1, 0.066733, 1.034367}},
    {"media3__sample_with_increasing_timestamps_320w_240h_5s.mp4",
     {300, 2, 0, 4.983333}},
    {"media3__silent-black-10s.mp4", {300, 2, 0, 9.966667}},
    {"minestudio__build_pillar_0.mp4", {600, 9, 0, 19.966667}},
    {"owa__0.4.2.mkv", {34, 2, 0.02, 7.78}},
    {"torchcodec__bt601_limited_range.mp4", {60, 1, 0, 1.966667}},
    {"torchcodec__discard_first_keyframe.mp4", {25, 2, 0, 0.96}},
    {"torchcodec__test_non_zero_start.mp4", {12, 1, 8.333008, 8.699674}},
    {"torchcodec__testsrc2_12bit_hdr.mp4", {60, 1, 0, 1.966667}},
    {"torchcodec__testsrc2_odd_height_and_width_444_10bit.mp4", {25, 1, 0, 0.96}},
};

TEST_CASE("import: the public captures give the answers of their index (B-37, B-38)",
          "[integration]") {
  if (!fs::exists(kShared)) {
    WARN("skipped: " << kShared << " is not there");
    return;
  }
  test::TempDir dir;
  const Run import = Penstock({"import", kShared, "--out", dir / "d", "--json"});
  CHECK(import.code == 4);  // one file is damaged
  std::size_t seen = 0;
  const Run list = Penstock({"inspect", dir / "d", "--json"});
  for (const Json& track : Lines(list.output, "penstock.inspect.v1")) {
    const std::string name = fs::path(track["source"].get<std::string>()).filename();
    const auto answer = kAnswers.find(name);
    if (answer == kAnswers.end() || track["kind"] != "video") continue;
    ++seen;
    INFO(name);
    CHECK(track["frames"] == answer->second.frames);
    CHECK(track["keyframes"] == answer->second.keyframes);
    CHECK(track["first_pts_ns"].get<double>() / 1e9 ==
          Approx(answer->second.first_s).margin(2e-6));
    if (answer->second.last_s >= 0) {
      CHECK(track["last_pts_ns"].get<double>() / 1e9 ==
            Approx(answer->second.last_s).margin(2e-6));
    }
    CHECK((track["damaged"].get<int>() > 0) == answer->second.damaged);
  }
  CHECK(seen == kAnswers.size());
}

TEST_CASE("import: bad sources are refused with what to do", "[integration]") {
  test::TempDir dir;
  const std::string out = dir / "out";
  auto copy = [&](const std::string& name) {
    const std::string to = dir / name;
    fs::copy(kCaptures + "/freedoom2-map01", to, fs::copy_options::recursive);
    return to;
  };
  auto edit = [](const std::string& path, const std::string& from,
                 const std::string& to) {
    std::string text = test::ReadAll(path);
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::ofstream(path, std::ios::binary) << text;
  };
  SECTION("an empty folder") {
    fs::create_directory(dir / "empty");
    CheckWords(Penstock({"import", dir / "empty", "--out", out}), 2,
               {"empty", "no capture", "found", "expected", "do  "});
  }
  SECTION("a folder that is not there") {
    CheckWords(Penstock({"import", dir / "none", "--out", out}), 2,
               {"none", "no such file", "do  "});
  }
  SECTION("a text named .mp4") {
    std::ofstream(dir / "x.mp4") << "hello\n";
    CheckWords(Penstock({"import", dir / "x.mp4", "--out", out}), 2,
               {"x.mp4", "cannot be opened", "expected", "do  "});
  }
  SECTION("a playlist named .mp4") {
    std::ofstream(dir / "x.mp4") << "#EXTM3U\n#EXTINF:1,\n/etc/passwd\n";
    CheckWords(Penstock({"import", dir / "x.mp4", "--out", out}), 2,
               {"cannot be opened"});
  }
  SECTION("a cut off mp4 without its index") {
    std::string bytes = test::ReadAll(kCaptures + "/freedoom2-map02/video.mp4");
    // The index first would leave a readable start; this cut takes it away.
    std::ofstream(dir / "x.mp4", std::ios::binary)
        << bytes.substr(0, 40) << bytes.substr(bytes.size() / 2, 1000);
    CheckWords(Penstock({"import", dir / "x.mp4", "--out", out}), 2, {"x.mp4"});
  }
  SECTION("a cut off mp4 with its index: done with loss, and said") {
    std::string bytes = test::ReadAll(kCaptures + "/freedoom2-map01/video.mp4");
    std::ofstream(dir / "x.mp4", std::ios::binary)
        << bytes.substr(0, bytes.size() / 3);
    CheckWords(Penstock({"import", dir / "x.mp4", "--out", out}), 4,
               {"frames lost", "cut off"});
  }
  SECTION("a video without frames") {
    Child audio({"/usr/bin/ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi",
                 "-i", "sine=d=1", "-c:a", "aac", dir / "a.mp4"});
    REQUIRE(audio.Wait() == 0);
    CheckWords(Penstock({"import", dir / "a.mp4", "--out", out}), 2,
               {"needs a video track", "none is video"});
  }
  SECTION("fewer rows than frames") {
    const std::string c = copy("few");
    std::string rows = test::ReadAll(c + "/actions.jsonl");
    rows.erase(rows.rfind('\n', rows.size() - 2) + 1);
    std::ofstream(c + "/actions.jsonl", std::ios::binary) << rows;
    CheckWords(Penstock({"import", c, "--out", out}), 2,
               {"fewer rows", "734 rows", "735", "tail_max"});
  }
  SECTION("a misspelt field of capture.json") {
    const std::string c = copy("field");
    edit(c + "/capture.json", "\"title\"", "\"titel\"");
    CheckWords(Penstock({"import", c, "--out", out}), 2,
               {"capture.json.titel", "\"title\"?"});
  }
  SECTION("a sidecar that leaves the folder") {
    const std::string c = copy("escape");
    edit(c + "/capture.json", "\"events.jsonl\"", "\"../events.jsonl\"");
    CheckWords(Penstock({"import", c, "--out", out}), 2, {"leaves"});
  }
  SECTION("one of two is bad: nothing is imported, or it is left out") {
    std::ofstream(dir / "x.mp4") << "hello\n";
    const std::string good = kCaptures + "/freedoom2-map02";
    CheckWords(Penstock({"import", good, dir / "x.mp4", "--out", out}), 2,
               {"nothing was imported", "--skip-bad"});
    CHECK_FALSE(fs::exists(out));
    CheckWords(
        Penstock({"import", good, dir / "x.mp4", "--out", out, "--skip-bad"}), 4,
        {"left out"});
  }
  SECTION("a full disk") {
    Child full({"/bin/sh", "-c",
                "ulimit -f 1500; exec " + kPenstock + " import " + kCaptures +
                    " --out " + out});
    CHECK(full.Wait() == 3);
    INFO(full.output());
    CHECK(full.output().find("the disk is full") != std::string::npos);
    CHECK_FALSE(fs::exists(out));
    CHECK(Penstock({"import", kCaptures + "/freedoom2-map02", "--out", out})
              .code == 0);
  }
  if (fs::exists(out)) CHECK(Penstock({"verify", out}).code == 0);
}

TEST_CASE("verify: names file, block and capture of a flipped bit (B-15)",
          "[integration]") {
  test::TempDir dir;
  REQUIRE(Penstock({"import", kCaptures + "/freedoom2-map02", "--out", dir / "d"})
              .code == 0);
  for (const auto& e : fs::recursive_directory_iterator(dir / "d")) {
    if (!e.is_regular_file()) continue;
    const std::string path = e.path();
    const std::string good = test::ReadAll(path);
    for (std::size_t part = 1; part <= 5; ++part) {
      std::string bad = good;
      const std::size_t at = (good.size() - 1) * part / 5;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      std::ofstream(path, std::ios::binary) << bad;
      const Run run = Penstock({"verify", dir / "d", "--json"});
      INFO(path << " byte " << at << "\n" << run.output);
      CHECK(run.code == 1);
      const auto faults = Lines(run.output, "penstock.verify.fault.v1");
      REQUIRE_FALSE(faults.empty());
      CHECK(path.ends_with(faults[0]["file"].get<std::string>()));
      CHECK_FALSE(faults[0]["block"].get<std::string>().empty());
    }
    std::ofstream(path, std::ios::binary) << good;
  }
  CHECK(Penstock({"verify", dir / "d"}).code == 0);
}

}  // namespace
}  // namespace penstock
