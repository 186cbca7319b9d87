#include "common/plan/data_ranks.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

__extension__ using Wide = __int128;

absl::Status Refused(std::string what, std::string found, std::string expected) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = "speeds",
                    .what = std::move(what),
                    .found = std::move(found),
                    .expected = std::move(expected),
                    .action = "declare one speed for each data rank, as 1,1,0.5"});
}

}  // namespace

absl::StatusOr<std::vector<Decimal>> ParseSpeeds(std::string_view text,
                                                 std::uint32_t world) {
  std::vector<Decimal> out;
  if (text.empty()) return out;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (std::string number : parts) {
    absl::StripAsciiWhitespace(&number);
    const auto speed = ParseDecimal(number);
    if (!speed.ok() || speed->nanos == 0) {
      return Refused(absl::StrCat("the speed of data rank ", out.size()),
                     absl::StrCat("\"", absl::CEscape(number.substr(0, 40)), "\""),
                     "a decimal number above 0, as 1 or 0.5");
    }
    out.push_back(*speed);
  }
  if (out.size() != world) {
    return Refused("another number of speeds than of data ranks",
                   absl::StrCat(out.size(), " speeds"),
                   absl::StrCat(world));
  }
  if (std::adjacent_find(out.begin(), out.end(), std::not_equal_to<>()) == out.end()) {
    out.clear();
  }
  return out;
}

std::string FormatSpeeds(std::span<const Decimal> speeds) {
  return absl::StrJoin(speeds, ",", [](std::string* out, const Decimal& d) {
    out->append(FormatDecimal(d));
  });
}

std::vector<std::uint64_t> MicrobatchesBySpeed(std::uint64_t microbatches,
                                               std::span<const Decimal> speeds) {
  Wide all = 0;
  for (const Decimal& s : speeds) all += s.nanos;
  const std::uint64_t least = microbatches >= speeds.size() ? 1 : 0;
  std::vector<std::uint64_t> out;
  std::uint64_t given = 0;
  for (const Decimal& s : speeds) {
    const auto floor = static_cast<std::uint64_t>(Wide{microbatches} * s.nanos / all);
    out.push_back(std::max(floor, least));
    given += out.back();
  }
  // What a rank is due less what it has, times `all`.
  const auto due = [&](std::size_t r) {
    return Wide{microbatches} * speeds[r].nanos - Wide{out[r]} * all;
  };
  using Entry = std::pair<Wide, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> first;
  if (given < microbatches) {
    for (std::size_t r = 0; r < out.size(); ++r) first.emplace(-due(r), r);
    for (; given < microbatches; ++given) {
      const std::size_t r = first.top().second;
      first.pop();
      ++out[r];
      first.emplace(-due(r), r);
    }
    return out;
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (out[r] > least) first.emplace(due(r), r);
  }
  for (; given > microbatches; --given) {
    const std::size_t r = first.top().second;
    first.pop();
    if (--out[r] > least) first.emplace(due(r), r);
  }
  return out;
}

}  // namespace penstock::plan
