#include "server/transport/delivery_proto.h"

#include <algorithm>

#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::transport {

absl::StatusOr<pipeline::AttachArgs> FromProto(const v1::AttachRequest& in) {
  pipeline::AttachArgs a;
  a.session = in.session();
  a.job = in.job();
  a.feed = in.feed();
  a.feed_where = in.feed_where();
  a.feed_dir = in.feed_dir();
  a.incarnation = in.incarnation();
  a.resume = in.resume();
  a.peer = in.peer();
  a.data_rank = in.data_rank();
  a.ranks.world = std::max(1u, in.data_world());
  a.ranks.ranks_per_node = in.ranks_per_node();
  PENSTOCK_ASSIGN_OR_RETURN(a.ranks.speeds,
                            plan::ParseSpeeds(in.speeds(), a.ranks.world));
  a.cp.size = std::max(1u, in.cp_size());
  if (!in.cp_cut().empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(a.cp.mode, plan::ParseCpMode(in.cp_cut()));
  }
  a.place = {in.cp_rank(), in.pp_rank(), std::max(1u, in.pp_size())};
  a.ack_leader = in.ack_leader();
  a.explicit_ack = in.ack_mode() == v1::ACK_MODE_EXPLICIT;
  a.takeover = in.takeover();
  if (in.has_position()) a.position = in.position();
  return a;
}

namespace {

void ToProto(const pipeline::ShapeLayout& in, v1::Shape& out) {
  out.set_name(in.name);
  for (const auto& t : in.slab.tensors) {
    auto* tensor = out.add_tensors();
    tensor->set_name(t.name);
    tensor->set_dtype(std::string(layout::DTypeName(t.dtype)));
    for (auto s : t.shape) tensor->add_shape(s);
    for (auto s : t.strides) tensor->add_strides(s);
    tensor->set_offset(t.offset);
  }
}

}  // namespace

void ToProto(const pipeline::AttachResult& in, v1::AttachReply& out) {
  out.set_session(in.session);
  out.set_job(in.job);
  out.set_cursor_head(in.cursor_head);
  out.set_generation(in.generation);
  out.set_start_step(in.start_step);
  out.set_total_steps(in.total_steps);
  out.set_batch_bytes(in.batch_bytes);
  out.set_unit_stride(in.unit_stride);
  out.set_units(in.units);
  out.set_microbatches(in.microbatches);
  out.set_global_batch(in.global_batch);
  for (const auto& s : in.shapes) ToProto(s, *out.add_shapes());
  out.set_order_digest(in.order_digest);
  out.set_content_digest(in.content_digest);
  out.set_selection_digest(in.selection_digest);
  for (const auto& id : in.dataset_ids) out.add_dataset_ids(id);
  out.set_arena(in.arena_id);
  out.set_arena_bytes(in.arena_bytes);
  for (const auto& note : in.notes) out.add_notes(note);
}

pipeline::ArenaSlot FromProto(const v1::SlotRef& in) {
  return {in.arena(), {in.offset(), in.generation()}};
}

std::vector<pipeline::ArenaSlot> FromProto(
    const google::protobuf::RepeatedPtrField<v1::SlotRef>& in) {
  std::vector<pipeline::ArenaSlot> out;
  for (const auto& s : in) out.push_back(FromProto(s));
  return out;
}

void ToProto(const pipeline::PublishedBatch& in, std::uint64_t arena,
             std::uint64_t bytes, v1::Batch& out) {
  out.set_step(in.step);
  out.mutable_slot()->set_arena(arena);
  out.mutable_slot()->set_offset(in.slot.offset);
  out.mutable_slot()->set_generation(in.slot.generation);
  out.set_bytes(bytes);
  for (const auto& id : in.sample_ids) out.add_sample_ids(id);
  for (const auto& d : in.item_digests) out.add_item_digests(hash::Hex(d));
  out.set_batch_digest(hash::Hex(in.batch_digest));
  if (in.global_digest) out.set_global_digest(hash::Hex(*in.global_digest));
  out.set_samples(in.sample_ids.size());
  out.set_global_samples(in.global_samples);
  out.set_units(in.units);
  out.set_loss_scale(in.loss_scale);
  out.set_tokens(in.tokens);
  out.set_global_tokens(in.global_tokens);
  for (const auto shape : in.unit_shapes) out.add_unit_shapes(shape);
  for (const auto samples : in.unit_samples) out.add_unit_samples(samples);
  auto* t = out.mutable_times();
  t->set_plan(in.times.plan_ns);
  t->set_fetch(in.times.fetch_ns);
  t->set_decode(in.times.decode_ns);
  t->set_assemble(in.times.assemble_ns);
  t->set_total(in.times.total_ns);
}

void ToProto(const pipeline::JobView& in, v1::JobStatus& out) {
  out.set_job(in.job);
  out.set_generation(in.generation);
  out.set_data_world(in.data_world);
  out.set_next_step(in.pipeline.next_step);
  std::uint64_t acked = UINT64_MAX;
  for (const auto& r : in.pipeline.ranks) acked = std::min(acked, r.acked_next);
  out.set_acked_next(in.pipeline.ranks.empty() ? 0 : acked);
  out.set_arena_bytes(in.pipeline.arena_bytes);
  out.set_free_slots(in.pipeline.free_slots);
  out.set_waiting_for(in.pipeline.waiting_for);
  out.set_published_next(in.pipeline.published_next);
  for (const auto& s : in.sessions) {
    auto* r = out.add_ranks();
    r->set_data_rank(s.data_rank);
    r->set_peer(s.peer);
    r->set_position(s.position);
    r->set_held_slots(s.held_slots);
    r->set_remote(s.remote);
  }
}

}  // namespace penstock::transport
