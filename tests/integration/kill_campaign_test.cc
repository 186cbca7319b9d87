// Thirty kills -9 at seeded moments, of everything that can be killed, in one
// run: every batch that any rank ever got is the one of an undisturbed run, and
// the run reaches its end (B-1, B-2, B-9, B-34).
#include <cstdlib>
#include <random>

#include "tests/support/site.h"

namespace penstock {
namespace {

using namespace test;

constexpr int kKills = 30;
constexpr int kAll = 1'000'000;  // steps: until the data ends

TEST_CASE("thirty kills change no byte", "[slow]") {
  const char* given = std::getenv("PENSTOCK_TEST_SEED");
  const unsigned seed = given == nullptr ? 1 : std::atoi(given);
  INFO("PENSTOCK_TEST_SEED=" << seed);
  std::mt19937 rng(seed);
  Site site;
  site.WriteFeed("feed.yaml", "main", 8, "epochs: 4\n");
  site.StartDaemon();
  std::map<std::uint64_t, std::string> expected[2] = {
      Reference(site, 0, 2, kAll), Reference(site, 1, 2, kAll)};
  REQUIRE(expected[0].size() > 100);
  std::unique_ptr<Child> ranks[2];
  std::map<std::uint64_t, std::string> got[2];
  auto start = [&](int r) { ranks[r] = site.Rank(r, 2, kAll, "a"); };
  auto take = [&](int r) {
    for (const auto& [step, digest] : Digests(ranks[r]->output())) {
      INFO("rank " << r << ", step " << step);
      CHECK(digest == expected[r].at(step));
      got[r][step] = digest;
    }
  };
  start(0);
  start(1);
  for (int i = 0; i < kKills; ++i) {
    // Some steps between kills; a rank that is done has nothing to wait for.
    const int watched = static_cast<int>(rng() % 2);
    std::uint64_t last = 0;
    const auto before = Digests(ranks[watched]->output());
    if (!before.empty()) last = before.rbegin()->first;
    ranks[watched]->WaitFor(LineOf(static_cast<int>(last + 1 + rng() % 4)),
                            20'000);
    switch (rng() % 5) {
      case 0:
        site.KillDaemon();
        site.StartDaemon();
        break;
      case 1:
      case 2: {
        const int r = static_cast<int>(rng() % 2);
        ranks[r]->Kill(SIGKILL);
        ranks[r]->Wait();
        take(r);
        start(r);
        break;
      }
      case 3: KillBelow(site.daemon().pid(), 1, rng()); break;
      default: KillBelow(site.daemon().pid(), 2, rng()); break;
    }
  }
  for (int r = 0; r < 2; ++r) {
    const int code = ranks[r]->Wait();
    take(r);
    INFO("rank " << r << "\n"
                 << ranks[r]->output().substr(0, 2000) << site.daemon().output());
    CHECK(code == 0);
    CHECK(got[r].size() == expected[r].size());
  }
}

}  // namespace
}  // namespace penstock
