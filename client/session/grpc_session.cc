// libpenstock_grpc.so: the only part of the client that knows gRPC.
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/session/session_api.h"
#include "penstock/v1/delivery.grpc.pb.h"

namespace {

namespace v1 = penstock::v1;

constexpr int kMessageBytesMax = 16 << 20;
constexpr auto kSuspendMax = std::chrono::milliseconds(500);
constexpr auto kControlTimeout = std::chrono::seconds(10);

void SetError(psg_error* error, int code, const std::string& text) {
  if (error == nullptr) return;
  error->code = code;
  std::snprintf(error->text, sizeof(error->text), "%s", text.c_str());
}

int Answer(const grpc::Status& status, psg_error* error) {
  if (status.ok()) return 0;
  SetError(error, status.error_code(), status.error_message());
  return -1;
}

std::string Lines(const google::protobuf::RepeatedPtrField<std::string>& in) {
  std::string out;
  for (const auto& line : in) {
    if (!out.empty()) out += '\n';
    out += line;
  }
  return out;
}

const char* OrEmpty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

struct psg_batch {
  v1::Batch message;
  std::vector<const char*> ids, digests;
};

namespace {

// A connection and what calls over it.
struct Line {
  explicit Line(const std::string& target);
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Delivery::Stub> stub;
};

}  // namespace

struct psg_session {
  explicit psg_session(const char* where) : target(where) {}
  std::shared_ptr<Line> Connected() {
    std::lock_guard lock(mutex);
    if (!line) line = std::make_shared<Line>(target);
    return line;
  }

  const std::string target;
  std::shared_ptr<Line> line;  // under mutex; null: connect at the next call
  v1::AttachReply attached;
  std::string notes;
  std::vector<std::vector<psg_tensor>> tensors;  // of each shape
  std::vector<psg_shape> shapes;
  std::mutex mutex;
  std::set<grpc::ClientContext*> running;  // under mutex
  std::set<grpc::ClientContext*> waiting;  // of them, those of interrupt()
  bool cancelled = false;                  // under mutex
  std::unique_ptr<grpc::ClientContext> hold_context;
  std::thread hold;

  // A call's context for as long as it runs, so that cancel() reaches it.
  class Call {
   public:
    Call(psg_session& s, std::chrono::milliseconds timeout, bool waits = false)
        : s_(s) {
      context_.set_deadline(std::chrono::system_clock::now() + timeout);
      std::lock_guard lock(s_.mutex);
      refused_ = s_.cancelled;
      s_.running.insert(&context_);
      if (waits) s_.waiting.insert(&context_);
    }
    ~Call() {
      std::lock_guard lock(s_.mutex);
      s_.running.erase(&context_);
      s_.waiting.erase(&context_);
    }
    bool refused() const { return refused_; }
    grpc::ClientContext* context() { return &context_; }

   private:
    psg_session& s_;
    grpc::ClientContext context_;
    bool refused_ = false;
  };
};

namespace {

int Cancelled(psg_error* error) {
  SetError(error, grpc::StatusCode::CANCELLED, "aborted");
  return -1;
}

Line::Line(const std::string& target) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMessageBytesMax);
  // A daemon that comes back is found at once, not after a long back-off, and
  // an old connection to a socket of the same path is never taken again.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // For remote ranks: few large reads and frames, a window of some messages.
  args.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  args.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20);
  channel = grpc::CreateCustomChannel(
      target, grpc::InsecureChannelCredentials(), args);
  stub = v1::Delivery::NewStub(channel);
}

psg_session* Open(const char* target) { return new psg_session(target); }

std::vector<psg_tensor> TensorsOf(const v1::Shape& shape) {
  std::vector<psg_tensor> all;
  for (const auto& t : shape.tensors()) {
    psg_tensor out{};
    out.name = t.name().c_str();
    out.dtype = t.dtype().c_str();
    out.dims = static_cast<std::uint32_t>(std::min({t.shape_size(),
                                                    t.strides_size(), 8}));
    for (std::uint32_t d = 0; d < out.dims; ++d) {
      out.shape[d] = t.shape(static_cast<int>(d));
      out.strides[d] = t.strides(static_cast<int>(d));
    }
    out.offset = t.offset();
    all.push_back(out);
  }
  return all;
}

void FillShapes(psg_session& s) {
  s.tensors.clear();
  s.shapes.clear();
  for (const auto& shape : s.attached.shapes()) {
    s.tensors.push_back(TensorsOf(shape));
  }
  for (std::size_t i = 0; i < s.tensors.size(); ++i) {
    s.shapes.push_back({s.attached.shapes(static_cast<int>(i)).name().c_str(),
                        s.tensors[i].data(),
                        static_cast<std::uint32_t>(s.tensors[i].size())});
  }
}

int Attach(psg_session* s, const psg_attach_in* in, psg_attach_out* out,
           psg_error* error) {
  psg_session::Call call(*s, std::chrono::milliseconds(in->timeout_ms), true);
  if (call.refused()) return Cancelled(error);
  v1::AttachRequest request;
  request.set_session(OrEmpty(in->session));
  request.set_job(OrEmpty(in->job));
  request.set_feed(OrEmpty(in->feed));
  request.set_feed_where(OrEmpty(in->feed_where));
  request.set_feed_dir(OrEmpty(in->feed_dir));
  request.set_incarnation(OrEmpty(in->incarnation));
  request.set_resume(OrEmpty(in->resume));
  request.set_peer(OrEmpty(in->peer));
  request.set_data_rank(in->data_rank);
  request.set_data_world(in->data_world);
  request.set_ranks_per_node(in->ranks_per_node);
  request.set_speeds(OrEmpty(in->speeds));
  request.set_cp_rank(in->cp_rank);
  request.set_cp_size(in->cp_size);
  request.set_cp_cut(OrEmpty(in->cp_cut));
  request.set_pp_rank(in->pp_rank);
  request.set_pp_size(in->pp_size);
  request.set_ack_leader(in->ack_leader != 0);
  request.set_ack_mode(in->explicit_ack ? v1::ACK_MODE_EXPLICIT
                                        : v1::ACK_MODE_ON_NEXT);
  request.set_takeover(in->takeover != 0);
  if (in->has_position) request.set_position(in->position);
  const grpc::Status status =
      s->Connected()->stub->Attach(call.context(), request, &s->attached);
  if (!status.ok()) return Answer(status, error);
  s->notes = Lines(s->attached.notes());
  FillShapes(*s);
  const auto& a = s->attached;
  *out = {a.session().c_str(),
          a.job().c_str(),
          a.order_digest().c_str(),
          a.content_digest().c_str(),
          a.selection_digest().c_str(),
          a.cursor_head().c_str(),
          s->notes.c_str(),
          a.generation(),
          a.start_step(),
          a.total_steps(),
          a.batch_bytes(),
          a.microbatches(),
          a.global_batch(),
          a.arena(),
          a.arena_bytes(),
          a.unit_stride(),
          a.units(),
          s->shapes.data(),
          static_cast<std::uint32_t>(s->shapes.size())};
  if (OrEmpty(in->session)[0] == '\0' && !s->hold.joinable()) {
    // A remote rank: its open stream tells the daemon that it lives.
    s->hold_context = std::make_unique<grpc::ClientContext>();
    v1::HoldRequest hold;
    hold.set_session(a.session());
    auto stream = s->Connected()->stub->Hold(s->hold_context.get(), hold);
    s->hold = std::thread([stream = std::move(stream)] {
      v1::HoldReply reply;
      while (stream->Read(&reply)) {
      }
      stream->Finish();
    });
  }
  return 0;
}

void FillSlot(const psg_slot& in, v1::SlotRef* out) {
  out->set_arena(in.arena);
  out->set_offset(in.offset);
  out->set_generation(in.generation);
}

psg_batch* NewBatch(v1::Batch* message) {
  auto* b = new psg_batch;
  b->message.Swap(message);
  for (const auto& id : b->message.sample_ids()) b->ids.push_back(id.c_str());
  for (const auto& d : b->message.item_digests()) {
    b->digests.push_back(d.c_str());
  }
  b->digests.resize(b->ids.size(), "");
  return b;
}

int Next(psg_session* s, std::uint64_t step, std::uint64_t acked_next,
         std::uint64_t timeout_ms, const psg_slot* release,
         std::size_t releases, psg_batch** batches, std::size_t room,
         std::size_t* count, psg_error* error) {
  *count = 0;
  // The daemon answers at timeout_ms and names who is waited for; the call
  // itself gets a little longer, for a daemon that does not answer at all.
  psg_session::Call call(*s, std::chrono::milliseconds(timeout_ms + 2000), true);
  if (call.refused()) return Cancelled(error);
  v1::NextRequest request;
  request.set_session(s->attached.session());
  request.set_step(step);
  request.set_acked_next(acked_next);
  request.set_timeout_ms(timeout_ms);
  request.set_more(static_cast<std::uint32_t>(room - 1));
  for (std::size_t i = 0; i < releases; ++i) {
    FillSlot(release[i], request.add_release());
  }
  v1::NextReply reply;
  const grpc::Status status =
      s->Connected()->stub->Next(call.context(), request, &reply);
  if (!status.ok()) return Answer(status, error);
  if (!reply.has_batch()) return 1;
  batches[(*count)++] = NewBatch(reply.mutable_batch());
  for (auto& more : *reply.mutable_more()) {
    if (*count == room) break;
    batches[(*count)++] = NewBatch(&more);
  }
  return 0;
}

void View(const psg_batch* b, psg_batch_view* v) {
  const auto& m = b->message;
  *v = {m.step(),
        m.bytes(),
        m.samples(),
        m.global_samples(),
        m.units(),
        m.tokens(),
        m.global_tokens(),
        m.loss_scale(),
        {m.slot().arena(), m.slot().offset(), m.slot().generation()},
        b->ids.data(),
        b->digests.data(),
        static_cast<std::uint32_t>(b->ids.size()),
        m.unit_shapes().data(),
        m.unit_samples().data(),
        static_cast<std::uint32_t>(
            std::min(m.unit_shapes_size(), m.unit_samples_size())),
        m.batch_digest().c_str(),
        m.global_digest().c_str(),
        m.times().plan(),
        m.times().fetch(),
        m.times().decode(),
        m.times().assemble(),
        m.times().total()};
}

void FreeBatch(psg_batch* b) { delete b; }

int Release(psg_session* s, const psg_slot* slots, std::size_t count,
            psg_error* error) {
  psg_session::Call call(*s, kControlTimeout);
  v1::ReleaseRequest request;
  request.set_session(s->attached.session());
  for (std::size_t i = 0; i < count; ++i) {
    FillSlot(slots[i], request.add_release());
  }
  v1::ReleaseReply reply;
  return Answer(s->Connected()->stub->Release(call.context(), request, &reply),
                error);
}

int Ack(psg_session* s, std::uint64_t step, psg_error* error) {
  psg_session::Call call(*s, kControlTimeout);
  v1::AckRequest request;
  request.set_session(s->attached.session());
  request.set_step(step);
  v1::AckReply reply;
  return Answer(s->Connected()->stub->Ack(call.context(), request, &reply), error);
}

int Checkpoint(psg_session* s, const char* name, std::uint64_t next_step,
               psg_error* error) {
  psg_session::Call call(*s, kControlTimeout);
  v1::CheckpointRequest request;
  request.set_session(s->attached.session());
  request.set_name(name);
  request.set_next_step(next_step);
  v1::CheckpointReply reply;
  return Answer(
      s->Connected()->stub->Checkpoint(call.context(), request, &reply), error);
}

// Copies the `data` of a ReadChunk from its wire form to its place; the bytes
// written, or -1 when it is no ReadChunk or does not fit.
std::int64_t TakeChunk(const grpc::ByteBuffer& message, std::uint8_t* into,
                       std::uint64_t room) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return -1;
  std::uint64_t length = 0, copied = 0;
  int shift = 0;
  enum { kTag, kLength, kData } state = kTag;
  for (const grpc::Slice& slice : slices) {
    const std::uint8_t* p = slice.begin();
    while (p != slice.end()) {
      if (state == kTag) {
        if (*p++ != 0x0A) return -1;
        state = kLength;
      } else if (state == kLength) {
        const std::uint8_t v = *p++;
        if (shift > 56) return -1;
        length |= static_cast<std::uint64_t>(v & 127) << shift;
        shift += 7;
        if ((v & 128) == 0) {
          if (length > room) return -1;
          state = kData;
        }
      } else {
        const auto n = std::min<std::uint64_t>(
            static_cast<std::uint64_t>(slice.end() - p), length - copied);
        if (n == 0) return -1;  // more than the field said
        std::memcpy(into + copied, p, n);
        copied += n;
        p += n;
      }
    }
  }
  return copied == length && (state == kData || length == 0)
             ? static_cast<std::int64_t>(copied)
             : -1;
}

int Read(psg_session* s, psg_slot slot, void* into, std::uint64_t bytes,
         std::uint64_t timeout_ms, psg_error* error) {
  psg_session::Call call(*s, std::chrono::milliseconds(timeout_ms), true);
  if (call.refused()) return Cancelled(error);
  v1::ReadRequest request;
  request.set_session(s->attached.session());
  FillSlot(slot, request.mutable_slot());
  // The stub's own call, but with messages as they come over the wire: each
  // byte is copied once, from the connection's buffers to its place.
  static const grpc::internal::RpcMethod kMethod(
      "/penstock.v1.Delivery/Read", grpc::internal::RpcMethod::SERVER_STREAMING);
  const auto line = s->Connected();
  std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> stream(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
          line->channel.get(), kMethod, call.context(), request));
  grpc::ByteBuffer message;
  std::uint64_t at = 0;
  bool bad = false;
  while (stream->Read(&message)) {
    const std::int64_t n =
        TakeChunk(message, static_cast<std::uint8_t*>(into) + at, bytes - at);
    if (n < 0) {
      bad = true;
      call.context()->TryCancel();
      break;
    }
    at += static_cast<std::uint64_t>(n);
  }
  const grpc::Status status = stream->Finish();
  if (!bad && at == bytes) return 0;
  if (!bad && !status.ok()) return Answer(status, error);
  SetError(error, grpc::StatusCode::DATA_LOSS,
           "the daemon sent another number of bytes than the batch has");
  return -1;
}

int Detach(psg_session* s, psg_error* error) {
  psg_session::Call call(*s, std::chrono::milliseconds(800));
  v1::DetachRequest request;
  request.set_session(s->attached.session());
  v1::DetachReply reply;
  return Answer(s->Connected()->stub->Detach(call.context(), request, &reply),
                error);
}

void Cancel(psg_session* s) {
  std::lock_guard lock(s->mutex);
  s->cancelled = true;
  for (auto* context : s->running) context->TryCancel();
}

void Interrupt(psg_session* s) {
  std::lock_guard lock(s->mutex);
  for (auto* context : s->waiting) context->TryCancel();
}

void EndHold(psg_session* s) {
  if (s->hold_context) s->hold_context->TryCancel();
  if (s->hold.joinable()) s->hold.join();
  s->hold_context.reset();
}

void Suspend(psg_session* const* sessions, std::size_t count) {
  // With a reference of our own the channels below are never the last one, so
  // that gRPC does not begin to end on a thread of its own meanwhile.
  grpc_init();
  for (std::size_t i = 0; i < count; ++i) {
    EndHold(sessions[i]);
    std::lock_guard lock(sessions[i]->mutex);
    sessions[i]->line.reset();
  }
  grpc_shutdown_blocking();
  // Channels end a little later than their owners. A program that uses the same
  // gRPC itself keeps it: its forks are its own affair.
  const auto until = std::chrono::steady_clock::now() + kSuspendMax;
  while (grpc_is_initialized() != 0) {
    if (std::chrono::steady_clock::now() > until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Waits for an end that is under way.
  grpc_init();
  grpc_shutdown_blocking();
}

void Close(psg_session* s) {
  EndHold(s);
  delete s;
}

// gRPC's epoll set outlives its shutdown: a forked child would share it and
// disturb its parent. With poll() nothing is left over a fork. gRPC reads its
// choice once, when it starts for the first time in a process.
void ChoosePoller() {
  constexpr char kStrategy[] = "GRPC_POLL_STRATEGY";
  if (std::getenv(kStrategy) != nullptr) return;  // the user's choice
  ::setenv(kStrategy, "poll", 0);
  grpc_init();
  grpc_shutdown_blocking();
  ::unsetenv(kStrategy);
}

constexpr psg_api kApi = {Open, Attach,     Next, View,   FreeBatch, Release,
                          Ack,  Checkpoint, Read, Detach, Cancel,    Interrupt,
                          Suspend, Close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const psg_api* psg_get_api(
    int version) {
  if (version != PSG_API_VERSION) return nullptr;
  static std::once_flag once;
  std::call_once(once, ChoosePoller);
  return &kApi;
}
