#include "common/plan/tensor_role.h"

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::plan {

const char* RoleText(TensorRole role) {
  switch (role) {
    case TensorRole::kInput:
      return "input";
    case TensorRole::kTarget:
      return "target";
    case TensorRole::kMetadata:
      break;
  }
  return "metadata";
}

absl::StatusOr<std::vector<TensorRole>> RolesOf(std::uint32_t pp_index,
                                                std::uint32_t pp_size) {
  if (pp_index >= pp_size) {
    return MakeError(
        absl::StatusCode::kOutOfRange,
        {.where = "pipeline stages",
         .what = "no such stage",
         .found = absl::StrCat("stage ", pp_index, " of ", pp_size),
         .expected = pp_size == 0 ? "1 stage or more"
                                  : absl::StrCat("0 to ", pp_size - 1),
         .action = "correct the pp index or the pp size"});
  }
  std::vector<TensorRole> roles;
  if (pp_index == 0) roles.push_back(TensorRole::kInput);
  if (pp_index == pp_size - 1) roles.push_back(TensorRole::kTarget);
  roles.push_back(TensorRole::kMetadata);
  return roles;
}

}  // namespace penstock::plan
