// The main job on real processes: import, daemon, ranks, kill -9 of everything.
#include <algorithm>
#include <set>

#include "tests/support/site.h"

namespace penstock {
namespace {

using namespace test;

std::set<std::string> Listing(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& e : fs::directory_iterator(folder, error)) {
    names.insert(e.path().filename());
  }
  return names;
}

TEST_CASE("kill -9 of the daemon: the ranks go on with the same bytes (B-1, B-2)",
          "[integration]") {
  Site site;
  const auto shm_before = Listing("/dev/shm");
  site.StartDaemon();
  auto r0 = site.Rank(0, 2, 14, "a");
  auto r1 = site.Rank(1, 2, 14, "a");
  for (int step : {0, 5, 6}) {  // at the first step, in the middle, and again
    REQUIRE(r0->WaitFor(LineOf(step)));
    site.KillDaemon();
    site.StartDaemon();
  }
  const int c0 = r0->Wait(), c1 = r1->Wait();
  INFO(r0->output() << r1->output() << site.daemon().output());
  REQUIRE(c0 == 0);
  REQUIRE(c1 == 0);
  CHECK(Digests(r0->output()) == Reference(site, 0, 2, 14));
  CHECK(Digests(r1->output()) == Reference(site, 1, 2, 14));
  site.daemon().Kill(SIGTERM);
  CHECK(site.daemon().Wait() == 0);
  CHECK(Listing("/dev/shm") == shm_before);  // B-34
  CHECK(Listing(site.run()) == std::set<std::string>{"penstockd.lock"});
}

TEST_CASE("kill -9 of a rank: the next one finds the unacknowledged batch",
          "[integration]") {
  Site site;
  site.StartDaemon();
  auto other = site.Rank(1, 2, 8, "a");
  auto killed = site.Rank(0, 2, 8, "a");
  REQUIRE(killed->WaitFor(LineOf(3)));
  killed->Kill(SIGKILL);
  killed->Wait();
  auto again = site.Rank(0, 2, 8, "a");
  const auto expected = Reference(site, 0, 2, 16);
  REQUIRE(other->Wait() == 0);
  // The other rank ends after 8 steps; the new one takes what is made.
  REQUIRE(again->WaitFor("\"digest\""));
  again->WaitFor(LineOf(7));
  const auto got = Digests(again->output());
  REQUIRE_FALSE(got.empty());
  const std::uint64_t first = got.begin()->first;
  // What it did not acknowledge is given again. What it did may be too: that is told
  // up to 64 ms late, and its last words are lost with it.
  CHECK(first <= 4);
  for (const auto& [step, digest] : got) CHECK(expected.at(step) == digest);
}

using ItemsByStep = std::map<std::uint64_t, std::multiset<std::string>>;

// What all ranks of a world were given.
ItemsByStep ItemsOf(const std::vector<std::string>& outputs) {
  ItemsByStep all;
  for (const auto& output : outputs) {
    for (const auto& [step, line] : Steps(output)) {
      for (std::size_t i = 0; i < line["samples"].size(); ++i) {
        all[step].insert(line["samples"][i].get<std::string>() + " " +
                         line["item_digests"][i].get<std::string>());
      }
    }
  }
  return all;
}

std::vector<std::string> RunWorld(Site& site, int world, int steps,
                                  const std::string& cursor) {
  std::vector<std::unique_ptr<Child>> ranks;
  std::vector<std::string> outputs;
  for (int r = 0; r < world; ++r) {
    ranks.push_back(site.Rank(r, world, steps, "run-" + std::to_string(world),
                              {"--resume", cursor}));
  }
  for (auto& r : ranks) {
    const int code = r->Wait();
    INFO(r->output());
    REQUIRE(code == 0);
    outputs.push_back(r->output());
  }
  return outputs;
}

// Worlds one after the other, three steps each, against one local consumer.
void CheckAnyWorld(Site& site, const std::vector<int>& worlds) {
  ItemsByStep seen;
  std::string cursor = "new";
  for (int world : worlds) {
    const auto outputs = RunWorld(site, world, 3, cursor);
    for (auto& output : outputs) {  // one cursor for all ranks (B-7)
      CHECK(StateDict(output) == StateDict(outputs[0]));
    }
    cursor = StateDict(outputs[0]);
    for (const auto& [step, set] : ItemsOf(outputs)) seen[step] = set;
  }
  REQUIRE(seen.size() == 3 * worlds.size());
  auto whole = site.Feed({"--local", "--steps", std::to_string(seen.size())});
  REQUIRE(whole->Wait() == 0);
  CHECK(seen == ItemsOf({whole->output()}));
}

TEST_CASE("any number of ranks gets the same global batches (B-6)",
          "[integration]") {
  Site site;
  site.StartDaemon();
  CheckAnyWorld(site, {1, 4, 2});
}

TEST_CASE("stages, skipped steps and masked units, for worlds that do not divide "
          "the batch (B-6, B-10)",
          "[integration]") {
  Site site;
  site.WriteFeed("feed.yaml", "main", 8,
                 "uneven: mask\nmicrobatch: 2\ncut: megatron\n"
                 "skip:\n  - {from: 1, to: 3}\n"
                 "stages:\n  - step: 4\n    global_batch: 11\n"
                 "    sources:\n      - {name: wolf, weight: 2}\n"
                 "  - step: 9\n    global_batch: 6\n    sources:\n"
                 "      - {name: doom, view: {frames: 4, stride: 1, hop: 3}}\n");
  site.StartDaemon();
  CheckAnyWorld(site, {3, 1, 4});
}

TEST_CASE("a balanced cut changes who gets what, never the global batch (B-29)",
          "[integration]") {
  Site site;
  site.WriteFeed("feed.yaml", "main", 12,
                 "cut: balanced\ncost: decode + 2*events\nuneven: mask\n");
  site.StartDaemon();
  CheckAnyWorld(site, {3, 5});
}

TEST_CASE("evaluation gives every sample once, whatever the world (B-28)",
          "[integration]") {
  Site site;
  site.StartDaemon();
  std::ofstream(site.home() + "/feed.yaml")
      << "name: eval\nseed: 3\nglobal_batch: 24\nmode: evaluation\nsources:\n"
         "  - name: doom\n    dataset: "
      << Dataset()
      << "\n    view: {frames: 4, hop: 150}\noutputs:\n"
         "  - name: video\n    video: {width: 64, height: 48}\n";
  auto whole = site.Feed({"--local", "--steps", "0"});
  REQUIRE(whole->Wait() == 0);
  const ItemsByStep expected = ItemsOf({whole->output()});
  REQUIRE(expected.size() > 0);
  std::set<std::string> once;
  std::size_t samples = 0;
  for (const auto& [step, set] : expected) {
    once.insert(set.begin(), set.end());
    samples += set.size();
  }
  CHECK(once.size() == samples);
  CHECK(samples % 24 != 0);  // the last batch has masked units
  const auto outputs = RunWorld(site, 5, 0, "new");
  CHECK(ItemsOf(outputs) == expected);
  for (const auto& output : outputs) {  // all as many steps and units (B-10)
    const auto steps = Steps(output);
    CHECK(steps.size() == expected.size());
    for (const auto& [step, line] : steps) CHECK(line["units"] == 5);
  }
}

TEST_CASE("kill -9 of decoder workers changes no byte (B-9)", "[integration]") {
  Site site;
  site.StartDaemon();
  auto rank = site.Rank(0, 1, 10, "a");
  for (int step : {1, 3, 5}) {
    REQUIRE(rank->WaitFor(LineOf(step)));
    KillBelow(site.daemon().pid(), 2);
  }
  const int code = rank->Wait();
  INFO(rank->output() << site.daemon().output());
  REQUIRE(code == 0);
  CHECK(Digests(rank->output()) == Reference(site, 0, 1, 10));
}

TEST_CASE("kill -9 of the zygote: a new arena, the same bytes", "[integration]") {
  Site site;
  site.StartDaemon();
  auto rank = site.Rank(0, 1, 10, "a");
  REQUIRE(rank->WaitFor(LineOf(3)));
  KillBelow(site.daemon().pid(), 1);
  const int code = rank->Wait();
  INFO(rank->output() << site.daemon().output());
  REQUIRE(code == 0);
  CHECK(Digests(rank->output()) == Reference(site, 0, 1, 10));
}

TEST_CASE("a second process with a rank's coordinates is refused",
          "[integration]") {
  Site site;
  site.StartDaemon();
  auto first = site.Rank(0, 2, 8, "a");
  auto other = site.Rank(1, 2, 8, "a");
  REQUIRE(first->WaitFor(LineOf(1)));
  first->Kill(SIGSTOP);
  auto second = site.Rank(0, 2, 8, "a");
  CHECK(second->Wait() == 2);
  INFO(second->output());
  CHECK(second->output().find("pid " + std::to_string(first->pid())) !=
        std::string::npos);
  first->Kill(SIGCONT);
  CHECK(first->Wait() == 0);
  CHECK(other->Wait() == 0);
  CHECK(Digests(first->output()) == Reference(site, 0, 2, 8));
}

TEST_CASE("of two processes that come at once with a rank's coordinates one is refused",
          "[integration]") {
  Site site;
  site.StartDaemon();
  auto left = site.Rank(0, 2, 8, "a");
  auto right = site.Rank(0, 2, 8, "a");
  const bool left_refused = left->WaitFor("acknowledges", 15'000);
  const bool right_refused = right->WaitFor("acknowledges", 2'000);
  INFO(left->output() << right->output());
  CHECK(left_refused != right_refused);
}

TEST_CASE("kill -9 of the zygote under three jobs", "[integration]") {
  Site site;
  site.StartDaemon();
  const std::map<std::uint64_t, std::string> expected[2] = {
      Reference(site, 0, 2, 24), Reference(site, 1, 2, 24)};
  std::vector<std::unique_ptr<Child>> ranks;
  for (const std::string job : {"one", "two", "three"}) {
    for (int r = 0; r < 2; ++r) {
      ranks.push_back(site.Rank(r, 2, 24, "a", {"--job", job}));
    }
  }
  for (int kill = 1; kill <= 4; ++kill) {
    REQUIRE(ranks[0]->WaitFor(LineOf(3 * kill)));
    KillBelow(site.daemon().pid(), 1);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int code = ranks[i]->Wait();
    INFO("process " << i << "\n" << ranks[i]->output() << site.daemon().output());
    REQUIRE(code == 0);
    CHECK(Digests(ranks[i]->output()) == expected[i % 2]);
  }
  site.daemon().Kill(SIGTERM);
  CHECK(site.daemon().Wait() == 0);
}

TEST_CASE("a dataset that was replaced is seen by the next job", "[integration]") {
  Site site;
  site.StartDaemon();
  const std::string set = site.path("set");
  fs::copy(Dataset(), set, fs::copy_options::recursive);
  std::string feed = test::ReadAll(site.path("feed.yaml"));
  for (std::size_t at; (at = feed.find(Dataset())) != std::string::npos;) {
    feed.replace(at, Dataset().size(), set);
  }
  std::ofstream(site.path("feed.yaml")) << feed;
  auto first = site.Rank(0, 1, 2, "a", {"--job", "one"});
  REQUIRE(first->Wait() == 0);
  fs::remove_all(set);
  Child import({kBin + "/penstock", "import", kCaptures + "/freedoom2-map01",
                kCaptures + "/solarwolf-l9", "--out", set});
  REQUIRE(import.Wait() == 0);
  auto second = site.Rank(0, 1, 2, "a", {"--job", "two"});
  REQUIRE(second->Wait() == 0);
  CHECK(Digests(second->output()) == Reference(site, 0, 1, 2));
  CHECK(Digests(second->output()) != Digests(first->output()));
  // The job that was begun with the other version cannot be joined.
  auto joins = site.Rank(0, 1, 2, "a", {"--job", "one"});
  CHECK(joins->Wait() == 2);
  INFO(joins->output());
  CHECK(joins->output().find("dataset") != std::string::npos);
  fs::remove_all(set);
  auto gone = site.Rank(0, 1, 2, "a", {"--job", "three"});
  CHECK(gone->Wait() == 2);
}

TEST_CASE("remote ranks get the same bytes", "[integration]") {
  Site site;
  site.StartDaemon();
  auto remote = site.Feed({"--connect", site.Tcp(), "--steps", "4",
                           "--incarnation", "a", "--job", "remote"});
  const int code = remote->Wait();
  INFO(remote->output());
  REQUIRE(code == 0);
  CHECK(Digests(remote->output()) == Reference(site, 0, 1, 4));
}

TEST_CASE("refusals name where, what, found, expected, what to do (B-4)",
          "[integration]") {
  Site site;
  site.StartDaemon();
  auto first = site.Rank(0, 1, 2, "a");
  REQUIRE(first->Wait() == 0);
  const std::string cursor = StateDict(first->output());
  auto refused = [&](std::vector<std::string> more, int expected_code,
                     const std::vector<std::string>& words,
                     const std::string& feed = "feed.yaml") {
    std::vector<std::string> args = {"--connect", site.run(), "--steps", "1"};
    args.insert(args.end(), more.begin(), more.end());
    auto c = site.Feed(args, feed);
    const int code = c->Wait();
    INFO(c->output());
    CHECK(code == expected_code);
    for (const auto& w : words) {
      INFO("word " << w);
      CHECK(c->output().find(w) != std::string::npos);
    }
  };
  SECTION("an existing job with resume new") {
    refused({"--incarnation", "b"}, 2, {"job main", "exists", "do  "});
  }
  SECTION("a cursor of another job") {
    refused({"--incarnation", "b", "--job", "other", "--resume", cursor}, 2,
            {"the cursor's job differs", "main", "other"});
  }
  SECTION("no cursor at all") {
    refused({"--incarnation", "b", "--resume", "whatever"}, 2, {"resume"});
  }
  SECTION("another feed under the same job") {
    site.WriteFeed("other.yaml", "main", 16);
    refused({"--incarnation", "b", "--resume", "step:1"}, 2,
            {"feed (order digest) differs", "found", "expected"}, "other.yaml");
  }
  SECTION("a world that does not divide the batch") {
    refused({"--incarnation", "b", "--job", "w", "--world", "3"}, 2,
            {"global batch 8", "6 or 9", "world 2 or 4"});
  }
  SECTION("ranks of one run that disagree") {
    refused({"--incarnation", "a", "--world", "2"}, 2,
            {"data ranks differs", "2", "1"});
  }
  SECTION("a key that no capture has") {
    site.WriteFeed("keys.yaml", "keys", 8,
                   "  - name: more\n    keys: {track: input, keys: [KeyWW]}\n");
    refused({"--incarnation", "b"}, 2, {"KeyWW", "\"KeyW\"?"}, "keys.yaml");
  }
  SECTION("a step that does not fit the arena") {
    site.WriteFeed("big.yaml", "big", 8,
                   "  - name: big\n    video: {width: 4096, height: 4096}\n");
    refused({"--incarnation", "b"}, 2, {"do not fit", "at least", "arena_bytes"},
            "big.yaml");
  }
  SECTION("no daemon there") {
    site.KillDaemon();
    refused({"--incarnation", "b", "--timeout-ms", "300"}, 3,
            {"no daemon answers", "start penstockd"});
  }
}

TEST_CASE("a new run while ranks are connected needs takeover, then fences them",
          "[integration]") {
  Site site;
  site.StartDaemon();
  auto old = site.Rank(0, 1, 100000, "a");
  REQUIRE(old->WaitFor(LineOf(2)));
  auto refused = site.Rank(0, 1, 1, "b", {"--resume", "step:1"});
  CHECK(refused->Wait() == 2);
  CHECK(refused->output().find("still connected") != std::string::npos);
  auto taken = site.Rank(0, 1, 2, "b", {"--resume", "step:1", "--takeover"});
  CHECK(taken->Wait() == 0);
  CHECK(old->Wait() == 2);
  INFO(old->output());
  CHECK(old->output().find("fenced") != std::string::npos);
  CHECK(Digests(taken->output()) == Reference(site, 0, 1, 2, 1));
}

TEST_CASE("a flipped bit stops the job with its place named (B-15)",
          "[integration]") {
  Site site;
  const std::string copy = site.path("copy");
  fs::copy(Dataset(), copy, fs::copy_options::recursive);
  const std::string shard = copy + "/shards/00000.pshard";
  std::fstream f(shard, std::ios::in | std::ios::out | std::ios::binary);
  for (std::uint64_t at = 100'000; at + 100'000 < fs::file_size(shard);
       at += 50'000) {
    f.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(f.get() ^ 1);
    f.seekp(static_cast<std::streamoff>(at));
    f.put(byte);
  }
  f.close();
  std::ifstream in(site.path("feed.yaml"));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at; (at = text.find(Dataset())) != std::string::npos;) {
    text.replace(at, Dataset().size(), copy);
  }
  std::ofstream(site.path("flipped.yaml")) << text;
  auto local = site.Feed({"--local", "--steps", "20"}, "flipped.yaml");
  CHECK(local->Wait() == 1);
  INFO(local->output());
  for (const char* word : {"step ", "source ", "capture ", " at byte ",
                           "checksum differs", "00000.pshard"}) {
    CHECK(local->output().find(word) != std::string::npos);
  }
  Child verify({kBin + "/penstock", "verify", copy});
  CHECK(verify.Wait() == 1);
  CHECK(verify.output().find("video GOP") != std::string::npos);
}

TEST_CASE("the second daemon is told who owns the folder", "[integration]") {
  Site site;
  site.StartDaemon();
  Child second({kBin + "/penstockd", "--config", site.path("penstockd.yaml")});
  CHECK(second.Wait() == 2);
  CHECK(second.output().find("pid " + std::to_string(site.daemon().pid())) !=
        std::string::npos);
}

TEST_CASE("penstockd: a wrong configuration has line, column, nearest name",
          "[integration]") {
  test::TempDir dir;
  auto run = [&](const std::string& text) {
    std::ofstream(dir.path() + "/c.yaml") << text;
    Child d({kBin + "/penstockd", "--config", dir.path() + "/c.yaml"});
    const int code = d.Wait(20'000);
    return std::pair(code, d.output());
  };
  const std::string dirs = "socket_dir: " + dir.path() + "/r\nstate_dir: " +
                           dir.path() + "/s\n";
  auto [code, text] = run(dirs + "arena_byte: 5\n");
  CHECK(code == 2);
  CHECK(text.find("c.yaml:3:1") != std::string::npos);
  CHECK(text.find("\"arena_bytes\"?") != std::string::npos);
  std::tie(code, text) = run(dirs + "io: fast\n");
  CHECK(code == 2);
  CHECK(text.find("c.yaml:3") != std::string::npos);
  std::tie(code, text) = run(dirs + "listen: 0.0.0.0:1\n");
  CHECK(code == 2);
  CHECK(text.find("plain TCP stays") != std::string::npos);
  std::tie(code, text) = run("socket_dir: " + dir.path() + "/" +
                             std::string(120, 'x') + "\nstate_dir: " +
                             dir.path() + "/s\n");
  CHECK(code == 2);
  CHECK(text.find("too long") != std::string::npos);
  std::tie(code, text) =
      run("socket_dir: " + dir.path() + "/c.yaml/r\nstate_dir: " + dir.path() +
          "/s\n");
  CHECK(code == 2);
  CHECK(text.find("socket_dir") != std::string::npos);
}

}  // namespace
}  // namespace penstock
