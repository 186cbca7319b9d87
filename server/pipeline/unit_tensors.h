#ifndef PENSTOCK_SERVER_PIPELINE_UNIT_TENSORS_H_
#define PENSTOCK_SERVER_PIPELINE_UNIT_TENSORS_H_

#include <cstdint>
#include <span>

#include "server/pipeline/batch_layout.h"
#include "server/pipeline/step_work.h"

namespace penstock::pipeline {

// Zeros what no sample of the step writes: masked units, frames that pad a sample
// to its bucket or a pack to its size. A slot was another step's before.
void ClearPadding(const FeedPlan& plan, const BatchLayout& layout,
                  std::span<std::uint8_t> arena, const StepWork& work);

// Fills the tensors that the plan makes (README.md), with zeros where nothing
// is, and counts the tokens of each slice of a rank's sequences.
void FillPlanTensors(const FeedPlan& plan, const BatchLayout& layout,
                     std::span<std::uint8_t> arena, StepWork& work);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_UNIT_TENSORS_H_
