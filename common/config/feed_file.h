#ifndef PENSTOCK_COMMON_CONFIG_FEED_FILE_H_
#define PENSTOCK_COMMON_CONFIG_FEED_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"

namespace penstock::config {

// A feed from its YAML: checked, defaults resolved, sources sorted by name.
// `file` names the document in messages.
//
// kInvalidArgument: as ParseYaml, and every fault of the values
//                   (plan::CheckFeed), each with "file:line:column"
absl::StatusOr<plan::FeedSpec> ParseFeed(std::string_view text,
                                         const std::string& file);

// The same from a file. kNotFound and others: from errno
absl::StatusOr<plan::FeedSpec> LoadFeed(const std::string& path);

}  // namespace penstock::config

#endif  // PENSTOCK_COMMON_CONFIG_FEED_FILE_H_
