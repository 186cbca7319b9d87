#ifndef PENSTOCK_COMMON_FORMAT_TIMING_H_
#define PENSTOCK_COMMON_FORMAT_TIMING_H_

#include <cstdint>

namespace penstock::format {

// floor(value · num · 10^9 / den) in ns, saturated; num and den positive. One
// rule for every track, so that equal instants give equal ns.
inline std::int64_t PtsToNs(std::int64_t value, std::uint64_t num,
                            std::uint64_t den) {
  __extension__ using Wide = __int128;
  const Wide scale = static_cast<Wide>(num) * 1'000'000'000;
  // |value| ≤ 2^63 and scale < 2^64·2^30 could pass 2^127: take the quotient
  // and remainder of the time base first. part < 2^64 fits; a quotient of 2^63
  // or more saturates for every value but zero.
  const Wide d = static_cast<Wide>(den);
  const Wide whole = scale / d, part = scale % d;
  if (whole > INT64_MAX) {
    return value > 0 ? INT64_MAX : value < 0 ? INT64_MIN : 0;
  }
  Wide ns = static_cast<Wide>(value) * whole;
  Wide rest = static_cast<Wide>(value) * part;
  Wide q = rest / d;
  if (rest % d < 0) --q;
  ns += q;
  if (ns > INT64_MAX) return INT64_MAX;
  if (ns < INT64_MIN) return INT64_MIN;
  return static_cast<std::int64_t>(ns);
}

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_TIMING_H_
