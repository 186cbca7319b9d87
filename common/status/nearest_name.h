#ifndef PENSTOCK_COMMON_STATUS_NEAREST_NAME_H_
#define PENSTOCK_COMMON_STATUS_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// The candidate that a person most likely meant: the smallest edit distance
// (insert, delete, replace, swap of neighbours), at most a third of the length
// and at least 1; empty when none is near.
std::string NearestName(std::string_view name,
                        const std::vector<std::string>& candidates);

}  // namespace penstock

#endif  // PENSTOCK_COMMON_STATUS_NEAREST_NAME_H_
