#include "common/plan/sample.h"

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"

namespace penstock::plan {

std::string SampleId(const Sample& s, std::string_view source_name,
                     std::string_view stratum, const Digest256& capture_id) {
  return absl::StrCat(std::string(source_name), stratum.empty() ? "" : "/",
                      std::string(stratum), ":", s.epoch.value, ":",
                      s.index, "@", hash::Hex(capture_id).substr(0, 16), "[",
                      s.start_frame, "+", s.frames, "*", s.stride, "]");
}

}  // namespace penstock::plan
