#ifndef PENSTOCK_COMMON_PLAN_DECIMAL_H_
#define PENSTOCK_COMMON_PLAN_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Numbers that people write and that must never be rounded by a parser.
namespace penstock::plan {

// A decimal number >= 0 with at most nine digits before and after the point.
struct Decimal {
  std::uint64_t nanos = 0;  // the number times 10^9; below 10^18
  friend auto operator<=>(const Decimal&, const Decimal&) = default;
};

inline constexpr Decimal kOne{1'000'000'000};

// "12", "0.30", "3.": digits, a point, digits. No sign, no exponent.
//
// kInvalidArgument: anything else; a minus sign is named
absl::StatusOr<Decimal> ParseDecimal(std::string_view text);

// Shortest text that parses to the same number: "0.3".
std::string FormatDecimal(Decimal d);

// A positive fraction in lowest terms; 0/1 stands for "none".
struct Fraction {
  std::uint64_t num = 0, den = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// "20", "29.97" or "30000/1001".
//
// kInvalidArgument: anything else, zero
absl::StatusOr<Fraction> ParseFraction(std::string_view text);
std::string FormatFraction(const Fraction& f);  // "num/den"

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_DECIMAL_H_
