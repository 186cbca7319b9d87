#include "common/plan/strata.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/plan/weights.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kBits = 48;  // behind the point of logarithms and roots
constexpr std::uint64_t kOneFixed = std::uint64_t{1} << kBits;
constexpr int kShareBits = 59;

// floor(2^48 · log2(value)), bit by bit: the mantissa is squared, and what it
// grows past 2 is the next bit.
std::uint64_t Log2(std::uint64_t value) {
  const int whole = std::bit_width(value) - 1;
  Wide mantissa = (Wide{value} << 62) >> whole;  // [1, 2) with 62 bits
  std::uint64_t bits = 0;
  for (int i = 0; i < kBits; ++i) {
    mantissa = mantissa * mantissa >> 62;
    bits <<= 1;
    if (mantissa >= Wide{2} << 62) {
      mantissa >>= 1;
      bits |= 1;
    }
  }
  return (static_cast<std::uint64_t>(whole) << kBits) | bits;
}

std::uint64_t Root(Wide value) {  // floor of the square root
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1) {
    const std::uint64_t next = root | bit;
    if (Wide{next} * next <= value) root = next;
  }
  return root;
}

// 2^(-1/2), 2^(-1/4), … with 62 bits.
const std::array<std::uint64_t, kBits>& HalfPowers() {
  static const std::array<std::uint64_t, kBits> powers = [] {
    std::array<std::uint64_t, kBits> out;
    std::uint64_t last = std::uint64_t{1} << 61;  // 2^-1
    for (std::uint64_t& p : out) p = last = Root(Wide{last} << 62);
    return out;
  }();
  return powers;
}

absl::Status BadLabels(std::string_view where, std::string what,
                       const std::string& found,
                       std::span<const StratumSize> strata) {
  std::vector<std::string> labels;
  for (const StratumSize& s : strata.subspan(0, std::min<std::size_t>(20, strata.size()))) {
    labels.push_back("\"" + s.label + "\"");
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = absl::StrCat(std::string(where), ", strata"),
                    .what = std::move(what),
                    .found = found,
                    .expected = absl::StrCat(
                        "a weight for each of ", absl::StrJoin(labels, ", "),
                        labels.size() < strata.size() ? ", …" : ""),
                    .action = "list every group once; 0 leaves one out"});
}

absl::StatusOr<std::vector<std::uint64_t>> ExplicitShares(
    const StrataSpec& spec, std::span<const StratumSize> strata,
    std::string_view where) {
  std::vector<std::uint64_t> shares;
  for (const StratumSize& s : strata) {
    const auto it = std::find_if(spec.weights.begin(), spec.weights.end(),
                                 [&](const auto& w) { return w.first == s.label; });
    if (it == spec.weights.end()) {
      return BadLabels(where, "a group has no weight", "\"" + s.label + "\"", strata);
    }
    shares.push_back(it->second.nanos);
  }
  for (const auto& weight : spec.weights) {
    const std::string& label = weight.first;
    const bool known = std::any_of(strata.begin(), strata.end(),
                                   [&](const auto& s) { return s.label == label; });
    if (!known) {
      return BadLabels(where, "a weight for a group that is not there",
                       "\"" + label + "\"", strata);
    }
  }
  return shares;
}

absl::StatusOr<std::vector<std::uint64_t>> SharesOf(
    const StrataSpec& spec, std::span<const StratumSize> strata,
    std::string_view where) {
  if (spec.mode == StrataMode::kExplicit) return ExplicitShares(spec, strata, where);
  std::uint64_t largest = 0;
  for (const StratumSize& s : strata) largest = std::max(largest, s.samples);
  std::vector<std::uint64_t> shares;
  for (const StratumSize& s : strata) {
    switch (spec.mode) {
      case StrataMode::kUniform:
        shares.push_back(1);
        break;
      case StrataMode::kTemperature:
        shares.push_back(TemperedShare(s.samples, largest, spec.temperature));
        break;
      default:
        shares.push_back(s.samples);
    }
  }
  return shares;
}

}  // namespace

std::uint64_t TemperedShare(std::uint64_t value, std::uint64_t largest,
                            Decimal temperature) {
  const std::uint64_t below = Log2(largest) - Log2(value);
  const Wide exponent = Wide{below} * kOne.nanos / temperature.nanos;
  const Wide whole = exponent >> kBits;
  if (whole > kShareBits) return 0;
  Wide share = Wide{1} << (kShareBits + 62);
  for (int i = 0; i < kBits; ++i) {
    if ((exponent >> (kBits - 1 - i) & 1) == 0) continue;
    share = (share >> 62) * HalfPowers()[static_cast<std::size_t>(i)];
  }
  return static_cast<std::uint64_t>(share >> 62 >> whole);
}

absl::StatusOr<std::vector<std::uint32_t>> StrataQuotas(
    const StrataSpec& spec, std::span<const StratumSize> strata,
    std::string_view where) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto shares, SharesOf(spec, strata, where));
  WeightRounding rounding = RoundShares(shares);
  if (rounding.ok()) return std::move(rounding.quotas);
  Problem problem = std::move(rounding.fault.problem);
  const int s = rounding.fault.source;
  problem.where = absl::StrCat(
      std::string(where), ", strata",
      s < 0 ? "" : ", \"" + strata[static_cast<std::size_t>(s)].label + "\"");
  if (s >= 0) {
    problem.what = "a group is so small that it would never be drawn";
    problem.found = absl::StrCat(strata[static_cast<std::size_t>(s)].samples, " samples");
    problem.action = "use another mode or fewer columns, or leave it out by a filter";
  }
  return MakeError(absl::StatusCode::kInvalidArgument, problem);
}

}  // namespace penstock::plan
