#ifndef PENSTOCK_COMMON_PLAN_TENSOR_ROLE_H_
#define PENSTOCK_COMMON_PLAN_TENSOR_ROLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::plan {

// What a tensor is for, which decides the pipeline stages that are given it.
enum class TensorRole : std::uint8_t { kInput, kTarget, kMetadata };

const char* RoleText(TensorRole role);  // "input", "target", "metadata"

// Roles that one pipeline stage is given. First: inputs, metadata. Last:
// targets, metadata. Between: metadata. The only stage: all. (Trainers with
// multi-token prediction ask for every role on the last stage by themselves.)
//
// kOutOfRange: pp_index >= pp_size
absl::StatusOr<std::vector<TensorRole>> RolesOf(std::uint32_t pp_index,
                                                std::uint32_t pp_size);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_TENSOR_ROLE_H_
