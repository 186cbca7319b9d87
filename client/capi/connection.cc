#include "client/capi/connection.h"

#include <algorithm>
#include <cstring>

namespace penstock::capi {
namespace {

ps_dtype DtypeOf(const char* name) {
  if (std::strcmp(name, "i32") == 0) return PS_I32;
  if (std::strcmp(name, "i64") == 0) return PS_I64;
  if (std::strcmp(name, "f32") == 0) return PS_F32;
  return PS_U8;
}

std::uint64_t BytesOf(ps_dtype dtype) {
  return dtype == PS_I64 ? 8 : dtype == PS_U8 ? 1 : 4;
}

// Checks that a described tensor stays inside the slab: nothing that comes over
// a socket is trusted as an offset.
bool Fits(const TensorSpec& t, std::uint64_t bytes) {
  if (t.dims == 0 || t.offset > bytes) return false;
  std::uint64_t end = BytesOf(t.dtype);
  for (std::uint32_t d = 0; d < t.dims; ++d) {
    std::uint64_t extent;
    if (t.shape[d] == 0 ||
        __builtin_mul_overflow(t.shape[d] - 1, t.strides[d], &extent) ||
        __builtin_add_overflow(end, extent, &end)) {
      return false;
    }
  }
  return end <= bytes - t.offset;
}

TensorSpec Keep(const psg_tensor& in) {
  TensorSpec t;
  t.name = in.name;
  t.dtype = DtypeOf(in.dtype);
  t.dims = in.dims;
  std::copy(in.shape, in.shape + in.dims, t.shape);
  std::copy(in.strides, in.strides + in.dims, t.strides);
  t.offset = in.offset;
  return t;
}

// Null when a tensor does not fit.
std::shared_ptr<const Attached> Keep(const psg_attach_out& out) {
  auto a = std::make_shared<Attached>();
  a->session = out.session;
  a->job = out.job;
  a->order_digest = out.order_digest;
  a->content_digest = out.content_digest;
  a->notes = out.notes;
  a->generation = out.generation;
  a->start_step = out.start_step;
  a->total_steps = out.total_steps;
  a->batch_bytes = out.batch_bytes;
  a->microbatches = std::max<std::uint64_t>(out.microbatches, 1);
  a->global_batch = out.global_batch;
  a->cursor_head = out.cursor_head;
  a->unit_stride = out.unit_stride;
  a->units = out.units;
  const std::uint64_t room =
      out.unit_stride != 0 ? out.unit_stride : out.batch_bytes;
  if (out.shape_count == 0 || room > out.batch_bytes) return nullptr;
  if (out.units % a->microbatches != 0) return nullptr;
  if (out.unit_stride != 0 && out.units > out.batch_bytes / out.unit_stride) {
    return nullptr;
  }
  for (std::uint32_t i = 0; i < out.shape_count; ++i) {
    ShapeSpec& shape = a->shapes.emplace_back();
    shape.name = out.shapes[i].name;
    const std::uint32_t count = out.shapes[i].tensor_count;
    if (count != out.shapes[0].tensor_count) return nullptr;
    for (std::uint32_t k = 0; k < count; ++k) {
      TensorSpec t = Keep(out.shapes[i].tensors[k]);
      if (!Fits(t, room)) return nullptr;
      if (a->unit_stride == 0 && t.shape[0] != a->units) return nullptr;
      shape.tensors.push_back(std::move(t));
    }
  }
  return a;
}

psg_attach_in Request(const Options& options, const std::string& session,
                      const std::string& peer,
                      std::optional<std::uint64_t> position, int timeout_ms) {
  psg_attach_in in{};
  in.session = session.c_str();
  in.job = options.job.c_str();
  in.feed = options.feed_text.c_str();
  in.feed_where = options.feed_path.c_str();
  in.feed_dir = options.feed_dir.c_str();
  in.incarnation = options.incarnation.c_str();
  in.resume = options.resume.c_str();
  in.peer = peer.c_str();
  in.data_rank = options.data_rank;
  in.data_world = options.data_world;
  in.ack_leader = options.ack_leader;
  in.explicit_ack = options.explicit_ack;
  in.ranks_per_node = options.ranks_per_node;
  in.speeds = options.speeds.c_str();
  in.cp_cut = options.cp_cut.c_str();
  in.cp_rank = options.cp_rank;
  in.cp_size = options.cp_size;
  in.pp_rank = options.pp_rank;
  in.pp_size = options.pp_size;
  in.takeover = options.takeover;
  in.has_position = position.has_value();
  in.position = position.value_or(0);
  in.timeout_ms = static_cast<std::uint64_t>(timeout_ms);
  return in;
}

}  // namespace

Connection::~Connection() {
  // In a fork the session is the parent's: its threads are not here.
  if (session_ != nullptr && ::getpid() == pid_) api_.close(session_);
}

void Connection::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (session_ != nullptr) api_.cancel(session_);
}

void Connection::Interrupt() {
  std::lock_guard lock(mutex_);
  if (session_ != nullptr) api_.interrupt(session_);
}

Result Connection::Attach(const Options& options,
                          std::optional<std::uint64_t> position,
                          int timeout_ms) {
  std::string target, token;
  if (remote_) {
    target = "dns:///" + options.address.substr(4);
  } else {
    std::unique_ptr<LocalLink> link;
    if (Result r = LocalLink::Connect(options.address + "/penstock.sock",
                                      timeout_ms, &link);
        !r.ok()) {
      return r;
    }
    link_ = std::move(link);
    target = link_->grpc_target();
    token = link_->session();
  }
  {
    std::lock_guard lock(mutex_);
    if (cancelled_) return Fail(PS_ABORTED, "aborted");
    session_ = api_.open(target.c_str());
  }
  const std::string peer = "pid " + std::to_string(pid_);
  const psg_attach_in in = Request(options, token, peer, position, timeout_ms);
  psg_attach_out out{};
  psg_error error{};
  if (api_.attach(session_, &in, &out, &error) != 0) {
    return Fail(FromGrpc(error.code), error.text);
  }
  attached_ = Keep(out);
  if (!attached_) {
    return Fail(PS_FAILED, "the daemon describes tensors that do not fit "
                           "their batch; client and daemon differ in version");
  }
  if (remote_) return {};
  if (Result r = link_->ReceiveArena(out.arena, timeout_ms, &arena_); !r.ok()) {
    return r;
  }
  arena_id_ = out.arena;
  if (arena_->bytes() != out.arena_bytes) {
    return Fail(PS_FAILED, "the arena has another size than the daemon says");
  }
  return {};
}

}  // namespace penstock::capi
