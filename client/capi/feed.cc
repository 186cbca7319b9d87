#include "client/capi/feed.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace penstock::capi {
namespace {

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
std::int64_t NowMs() { return NowNs() / 1'000'000; }

constexpr int kGrpcCancelled = 1;
constexpr int kGrpcDeadline = 4;
constexpr int kGrpcNotFound = 5;
constexpr int kGrpcUnavailable = 14;
constexpr std::int64_t kRetryMs = 50;
constexpr std::int64_t kCallMsMax = 10'000;

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

std::shared_ptr<const Attached> Keep(const psg_attach_out& out, bool* good) {
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
  *good = true;
  for (std::uint32_t i = 0; i < out.tensor_count; ++i) {
    const psg_tensor& in = out.tensors[i];
    TensorSpec t;
    t.name = in.name;
    t.dtype = DtypeOf(in.dtype);
    t.dims = in.dims;
    std::copy(in.shape, in.shape + in.dims, t.shape);
    std::copy(in.strides, in.strides + in.dims, t.strides);
    t.offset = in.offset;
    *good = *good && Fits(t, a->batch_bytes) &&
            t.shape[0] % a->microbatches == 0;
    a->tensors.push_back(std::move(t));
  }
  return a;
}

}  // namespace

Result Feed::Attach(const Options& options, std::unique_ptr<Feed>* out) {
  std::unique_ptr<Feed> feed(new Feed(options));
  feed->remote_ = options.address.starts_with("tcp:");
  if (Result r = GrpcApi(&feed->api_); !r.ok()) return r;
  const std::int64_t deadline =
      NowMs() + static_cast<std::int64_t>(options.first_deadline_ms);
  if (Result r = feed->ConnectUntil(deadline); !r.ok()) return r;
  feed->position_ = feed->attached_->start_step;
  *out = std::move(feed);
  return {};
}

Feed::~Feed() {
  if (forked()) return;  // the parent's: only memory and descriptors go
  if (session_ != nullptr) {
    psg_error error{};
    std::vector<psg_slot> slots;
    {
      std::lock_guard lock(releases_->mutex);
      slots.swap(releases_->slots);
    }
    if (!slots.empty() && !aborted_.load()) {
      api_->release(session_, slots.data(), slots.size(), &error);
    }
    // Steps that outlive their feed keep the session: it ends when the last
    // of them closes the handshake socket.
    if (link_ == nullptr || link_.use_count() == 1) {
      api_->detach(session_, &error);
    }
  }
  Disconnect();
}

void Feed::Disconnect() {
  psg_session* old = nullptr;
  {
    std::lock_guard lock(session_mutex_);
    std::swap(old, session_);
  }
  if (old != nullptr) api_->close(old);
  link_.reset();
}

void Feed::Abort() {
  aborted_.store(true);
  std::lock_guard lock(session_mutex_);
  if (session_ != nullptr) api_->cancel(session_);
}

Result Feed::Connect(std::int64_t deadline) {
  Disconnect();
  const int left = static_cast<int>(
      std::clamp<std::int64_t>(deadline - NowMs(), 1, 600'000));
  std::string target, session;
  if (remote_) {
    target = "ipv4:" + options_.address.substr(4);
  } else {
    const std::string path = options_.address + "/penstock.sock";
    std::unique_ptr<LocalLink> link;
    if (Result r = LocalLink::Connect(path, left, &link); !r.ok()) return r;
    link_ = std::move(link);
    target = link_->grpc_target();
    session = link_->session();
  }
  {
    std::lock_guard lock(session_mutex_);
    session_ = api_->open(target.c_str());
  }
  if (aborted_.load()) return Fail(PS_ABORTED, "aborted");
  const std::string peer = "pid " + std::to_string(pid_);
  psg_attach_in in{};
  in.session = session.c_str();
  in.job = options_.job.c_str();
  in.feed = options_.feed_text.c_str();
  in.feed_where = options_.feed_path.c_str();
  in.feed_dir = options_.feed_dir.c_str();
  in.incarnation = options_.incarnation.c_str();
  in.resume = options_.resume.c_str();
  in.peer = peer.c_str();
  in.data_rank = options_.data_rank;
  in.data_world = options_.data_world;
  in.ack_leader = options_.ack_leader;
  in.explicit_ack = options_.explicit_ack;
  in.takeover = options_.takeover;
  in.has_position = position_.has_value() && delivered_any_;
  in.position = position_.value_or(0);
  in.timeout_ms = static_cast<std::uint64_t>(left);
  psg_attach_out attached{};
  psg_error error{};
  if (api_->attach(session_, &in, &attached, &error) != 0) {
    return Fail(FromGrpc(error.code), error.text);
  }
  bool good = false;
  attached_ = Keep(attached, &good);
  if (!good) {
    return Fail(PS_FAILED, "the daemon describes tensors that do not fit "
                           "their batch; client and daemon differ in version");
  }
  if (!remote_) {
    if (Result r = link_->ReceiveArena(attached.arena, left, &arena_); !r.ok()) {
      return r;
    }
    arena_id_ = attached.arena;
    if (arena_->bytes() != attached.arena_bytes) {
      return Fail(PS_FAILED, "the arena has another size than the daemon says");
    }
  }
  return {};
}

Result Feed::ConnectUntil(std::int64_t deadline) {
  for (;;) {
    Result r = Connect(deadline);
    if (r.code != PS_UNAVAILABLE) return r;
    if (aborted_.load()) return Fail(PS_ABORTED, "aborted");
    if (NowMs() + kRetryMs >= deadline) return r;
    ::poll(nullptr, 0, static_cast<int>(kRetryMs));
  }
}

Result Feed::Next(std::int64_t slice_ms, std::unique_ptr<ps_step>* out) {
  if (wait_started_ns_ == 0) {
    wait_started_ns_ = NowNs();
    waiting_because_.clear();
  }
  Result r = NextWithin(slice_ms, out);
  if (r.code != PS_AGAIN) wait_started_ns_ = 0;
  return r;
}

Result Feed::NextWithin(std::int64_t slice_ms, std::unique_ptr<ps_step>* out) {
  const std::uint64_t limit_ms =
      delivered_any_ ? options_.deadline_ms : options_.first_deadline_ms;
  const std::int64_t deadline =
      wait_started_ns_ / 1'000'000 + static_cast<std::int64_t>(limit_ms);
  const std::int64_t slice_end = NowMs() + slice_ms;
  for (bool first = true;; first = false) {
    if (aborted_.load()) return Fail(PS_ABORTED, "aborted");
    if (deadline <= NowMs()) {
      return Fail(PS_TIMEOUT,
                  "rank " + std::to_string(options_.data_rank) + ", step " +
                      std::to_string(*position_) + ": no batch for " +
                      std::to_string(limit_ms) + " ms\n  found     " +
                      (waiting_because_.empty() ? "the daemon does not answer"
                                                : waiting_because_) +
                      "\n  do        look at the daemon's status and log; the "
                      "step was not acknowledged, restarting loses nothing");
    }
    if (!first && slice_end <= NowMs()) return Fail(PS_AGAIN, waiting_because_);
    const std::int64_t until = std::max(std::min(deadline, slice_end), NowMs() + 1);
    if (session_ == nullptr) {
      if (Result r = ConnectUntil(until); !r.ok()) {
        if (r.code != PS_UNAVAILABLE) return r;
        waiting_because_ = r.message;
        continue;
      }
    }
    std::vector<psg_slot> slots;
    {
      std::lock_guard lock(releases_->mutex);
      slots.swap(releases_->slots);
    }
    psg_batch* batch = nullptr;
    psg_error error{};
    const int rc = api_->next(
        session_, *position_,
        static_cast<std::uint64_t>(std::clamp<std::int64_t>(
            until - NowMs(), 1, kCallMsMax)),
        slots.data(), slots.size(), &batch, &error);
    if (rc == 1) return Fail(PS_END, "the data has ended");
    if (rc == 0) {
      Result r = TakeBatch(batch, NowNs() - wait_started_ns_, out);
      api_->free_batch(batch);
      if (r.code != PS_UNAVAILABLE) return r;
      waiting_because_ = r.message;
      Disconnect();
      continue;
    }
    waiting_because_ = error.text;
    if (error.code == kGrpcCancelled && aborted_.load()) {
      return Fail(PS_ABORTED, "aborted");
    }
    if (error.code == kGrpcDeadline) continue;  // it told who is waited for
    if (error.code != kGrpcUnavailable && error.code != kGrpcNotFound &&
        error.code != kGrpcCancelled) {
      return Fail(FromGrpc(error.code), error.text);
    }
    Disconnect();  // the daemon or our session is gone: attach again
  }
}

Result Feed::TakeBatch(psg_batch* batch, std::int64_t waited_ns,
                       std::unique_ptr<ps_step>* out) {
  psg_batch_view v{};
  api_->view(batch, &v);
  auto step = std::make_unique<ps_step>();
  step->attached = attached_;
  step->releases = releases_;
  step->slot = v.slot;
  if (v.bytes != attached_->batch_bytes) {
    return Fail(PS_FAILED, "step " + std::to_string(v.step) +
                               ": the batch has another size than was agreed");
  }
  if (remote_) {
    step->copy = std::make_unique_for_overwrite<std::uint8_t[]>(v.bytes);
    psg_error error{};
    if (api_->read(session_, v.slot, step->copy.get(), v.bytes,
                   options_.deadline_ms, &error) != 0) {
      const ps_code code = FromGrpc(error.code);
      return Fail(code == PS_REFUSED ? PS_UNAVAILABLE : code, error.text);
    }
    step->data = step->copy.get();
    std::lock_guard lock(releases_->mutex);
    releases_->slots.push_back(v.slot);  // ours is a copy
    step->slot = {};
  } else {
    if (v.slot.arena != arena_id_ || v.slot.offset > arena_->bytes() ||
        v.bytes > arena_->bytes() - v.slot.offset) {
      return Fail(PS_FAILED, "step " + std::to_string(v.step) +
                                 ": the slot lies outside the arena");
    }
    step->arena = arena_;
    step->link = link_;
    step->data = arena_->data() + v.slot.offset;
  }
  step->batch_digest = v.batch_digest;
  step->global_digest = v.global_digest;
  for (std::uint32_t i = 0; i < v.sample_count; ++i) {
    step->sample_ids.emplace_back(v.sample_ids[i]);
    step->item_digests.emplace_back(v.item_digests[i]);
  }
  step->info = {sizeof(ps_step_info),
                v.step,
                v.bytes,
                v.samples,
                v.global_samples,
                static_cast<std::uint64_t>(waited_ns),
                v.plan_ns,
                v.fetch_ns,
                v.decode_ns,
                v.assemble_ns,
                v.total_ns,
                step->batch_digest.c_str(),
                step->global_digest.c_str()};
  position_ = v.step + 1;
  delivered_any_ = true;
  *out = std::move(step);
  return {};
}

Result Feed::Ack(std::uint64_t step) {
  psg_error error{};
  if (session_ == nullptr) return {};  // told again by position at the next call
  if (api_->ack(session_, step, &error) == 0) return {};
  // The daemon is away: the position at the next attach says the same.
  if (error.code == kGrpcUnavailable || error.code == kGrpcNotFound) return {};
  return Fail(FromGrpc(error.code), error.text);
}

Result Feed::Checkpoint(const std::string& name) {
  const std::int64_t deadline =
      NowMs() + static_cast<std::int64_t>(options_.deadline_ms);
  for (;;) {
    if (session_ == nullptr) {
      if (Result r = ConnectUntil(deadline); !r.ok()) return r;
    }
    psg_error error{};
    if (api_->checkpoint(session_, name.c_str(), *position_, &error) == 0) {
      return {};
    }
    if ((error.code != kGrpcUnavailable && error.code != kGrpcNotFound) ||
        NowMs() >= deadline) {
      return Fail(FromGrpc(error.code), error.text);
    }
    Disconnect();
  }
}

std::string Feed::StateDict() const {
  return attached_->cursor_head + std::to_string(*position_) +
         ",\"version\":1}";
}

}  // namespace penstock::capi
