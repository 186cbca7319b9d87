#include "common/plan/decimal.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::uint64_t kBillion = 1'000'000'000;

absl::Status Refuse(std::string_view text, std::string_view expected) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.what = text.starts_with('-') ? "negative number"
                                     : "not a number of this form",
       .found = absl::StrCat("\"", std::string(text.substr(0, 60)), "\""),
       .expected = std::string(expected)});
}

// Up to nine digits as a number; false otherwise. Empty is zero.
bool Digits(std::string_view text, std::uint64_t& out) {
  out = 0;
  if (text.size() > 9) return false;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

}  // namespace

absl::StatusOr<Decimal> ParseDecimal(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string part(point < text.size() ? text.substr(point + 1) : "");
  std::uint64_t high = 0, low = 0;
  const bool good = !whole.empty() && part.size() <= 9;
  part.resize(9, '0');
  if (!good || !Digits(whole, high) || !Digits(part, low)) {
    return Refuse(text,
                  "a decimal number such as 0.3, at most nine digits before "
                  "and after the point");
  }
  return Decimal{high * kBillion + low};
}

std::string FormatDecimal(Decimal d) {
  std::string part = absl::StrCat(kBillion + d.nanos % kBillion).substr(1);
  while (!part.empty() && part.back() == '0') part.pop_back();
  return absl::StrCat(d.nanos / kBillion, part.empty() ? "" : ".", part);
}

absl::StatusOr<Fraction> ParseFraction(std::string_view text) {
  constexpr char kForm[] = "a positive number such as 20, 29.97 or 30000/1001";
  Fraction f;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    const auto num = text.substr(0, slash), den = text.substr(slash + 1);
    if (num.empty() || den.empty() || !Digits(num, f.num) ||
        !Digits(den, f.den)) {
      return Refuse(text, kForm);
    }
  } else {
    auto d = ParseDecimal(text);
    if (!d.ok()) return Refuse(text, kForm);
    f = {d->nanos, kBillion};
  }
  if (f.num == 0 || f.den == 0) return Refuse(text, kForm);
  const std::uint64_t g = std::gcd(f.num, f.den);
  return Fraction{f.num / g, f.den / g};
}

std::string FormatFraction(const Fraction& f) {
  return absl::StrCat(f.num, "/", f.den);
}

}  // namespace penstock::plan
