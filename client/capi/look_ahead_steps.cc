// Batches of the daemon as steps of the trainer.
#include "client/capi/look_ahead.h"

namespace penstock::capi {

std::unique_ptr<std::uint8_t[]> LookAhead::Buffer(std::uint64_t bytes) {
  std::lock_guard lock(returns_->mutex);
  if (returns_->buffers.empty()) {
    return std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  }
  auto buffer = std::move(returns_->buffers.back());  // all of one job: one size
  returns_->buffers.pop_back();
  return buffer;
}

namespace {

// Whether the units of a batch are of the shapes that were agreed.
bool UnitsAgree(const Attached& attached, const psg_batch_view& v) {
  if (v.units > attached.units || v.unit_count > v.units) return false;
  std::uint64_t samples = 0;
  for (std::uint32_t i = 0; i < v.unit_count; ++i) {
    if (v.unit_shapes[i] >= attached.shapes.size()) return false;
    samples += v.unit_samples[i];
  }
  return samples == v.samples && v.samples == v.sample_count;
}

}  // namespace

Result LookAhead::MakeStep(const Connection& connection,
                           const psg_batch_view& v,
                           std::unique_ptr<ps_step>* out) {
  const auto& attached = connection.attached();
  if (v.bytes != first_attached_->batch_bytes) {
    return Fail(PS_FAILED, "step " + std::to_string(v.step) +
                               ": the batch has another size than was agreed");
  }
  const std::uint64_t of_one = attached->UnitsOf(v.units);
  if (!UnitsAgree(*attached, v) || of_one == 0 || v.units % of_one != 0) {
    return Fail(PS_FAILED, "step " + std::to_string(v.step) +
                               ": the batch has another shape than was agreed");
  }
  auto step = std::make_unique<ps_step>();
  step->attached = attached;
  step->returns = returns_;
  step->slot = v.slot;
  if (remote_) {
    step->copy = Buffer(v.bytes);
    psg_error error{};
    if (api_.read(connection.session(), v.slot, step->copy.get(), v.bytes,
                  options_.deadline_ms, &error) != 0) {
      const ps_code code = FromGrpc(error.code);
      return Fail(code == PS_REFUSED || code == PS_ABORTED ? PS_UNAVAILABLE
                                                           : code,
                  error.text);
    }
    step->data = step->copy.get();
    std::lock_guard lock(returns_->mutex);
    returns_->slots.push_back(v.slot);  // ours is a copy
    step->slot = {};
  } else {
    const auto& arena = connection.arena();
    if (v.slot.arena != connection.arena_id() ||
        v.slot.offset > arena->bytes() ||
        v.bytes > arena->bytes() - v.slot.offset) {
      return Fail(PS_FAILED, "step " + std::to_string(v.step) +
                                 ": the slot lies outside the arena");
    }
    step->arena = arena;
    step->link = connection.link();
    step->data = arena->data() + v.slot.offset;
  }
  step->batch_digest = v.batch_digest;
  step->global_digest = v.global_digest;
  for (std::uint32_t i = 0; i < v.sample_count; ++i) {
    step->sample_ids.emplace_back(v.sample_ids[i]);
    step->item_digests.emplace_back(v.item_digests[i]);
  }
  step->unit_shapes.assign(v.unit_shapes, v.unit_shapes + v.unit_count);
  step->first_samples = {0};
  for (std::uint32_t i = 0; i < v.unit_count; ++i) {
    step->first_samples.push_back(step->first_samples.back() +
                                  v.unit_samples[i]);
  }
  step->info = {sizeof(ps_step_info),
                v.step,
                v.bytes,
                v.samples,
                v.global_samples,
                v.tokens,
                v.global_tokens,
                v.units,
                v.units / of_one,
                v.loss_scale,
                0,
                v.plan_ns,
                v.fetch_ns,
                v.decode_ns,
                v.assemble_ns,
                v.total_ns,
                step->batch_digest.c_str(),
                step->global_digest.c_str()};
  *out = std::move(step);
  return {};
}

}  // namespace penstock::capi
