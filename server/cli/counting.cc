#include "server/cli/counting.h"

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace penstock::cli {

void ShowCounting(const dataset::OpenedFeed& feed) {
  if (feed.packs == nullptr) return;
  using Clock = std::chrono::steady_clock;
  feed.packs->SetProgress([shown = Clock::now()](std::uint64_t known,
                                                 std::uint64_t wanted) mutable {
    const auto now = Clock::now();
    if (now - shown < std::chrono::seconds(1)) return;
    shown = now;
    std::fprintf(stderr,
                 "penstock: building the pack index, once: %llu of %llu packs\n",
                 (unsigned long long)known, (unsigned long long)wanted);
  });
}

}  // namespace penstock::cli
