#ifndef PENSTOCK_COMMON_CONFIG_NEAREST_NAME_H_
#define PENSTOCK_COMMON_CONFIG_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace penstock::config {

// The candidate that `name` was probably meant to be: the smallest number of
// inserted, deleted, changed or swapped neighbouring characters, at most a
// third of the longer length; the first of equals. Empty when none is near.
std::string NearestName(std::string_view name,
                        const std::vector<std::string>& candidates);

}  // namespace penstock::config

#endif  // PENSTOCK_COMMON_CONFIG_NEAREST_NAME_H_
