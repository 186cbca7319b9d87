#include "server/transport/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "common/status/status.h"
#include "penstock/v1/delivery.grpc.pb.h"
#include "server/transport/delivery_proto.h"

namespace penstock::transport {
namespace {

constexpr std::uint64_t kChunkBytes = 4 << 20;
constexpr int kControlMessageMax = 8 << 20;
constexpr std::uint64_t kWaitMsMax = 60'000;
// What one answer carries at most: batches beside the one asked for, and bytes.
constexpr std::uint32_t kMoreMax = 127;
constexpr std::size_t kAnswerBytesMax = 512 << 10;

grpc::Status ToGrpc(const absl::Status& s) {
  if (s.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(s.code()), std::string(s.message())};
}

// The bytes of a slot as ReadChunk messages made by hand: the field's header,
// then a slice of the arena itself. Nothing is copied into a message; an
// ordinary client reads them all the same.
class ReadStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit ReadStream(pipeline::JobManager::SlotBytes bytes)
      : bytes_(std::move(bytes)) {
    WriteNext();
  }
  explicit ReadStream(const grpc::Status& refused) { Finish(refused); }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish({grpc::StatusCode::CANCELLED, "the client went away"});
    } else {
      WriteNext();
    }
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (at_ >= bytes_.bytes.size()) {
      Finish(grpc::Status::OK);
      return;
    }
    const auto part = bytes_.bytes.subspan(
        at_, std::min<std::uint64_t>(kChunkBytes, bytes_.bytes.size() - at_));
    at_ += part.size();
    char header[11] = {0x0A};  // field 1, length-delimited
    std::size_t n = 1;
    for (std::uint64_t v = part.size();; v >>= 7) {
      header[n++] = static_cast<char>(v < 128 ? v : (v & 127) | 128);
      if (v < 128) break;
    }
    // The slice keeps the arena for as long as gRPC may read it.
    auto* keep = new std::shared_ptr<const void>(bytes_.keep);
    grpc::Slice slices[2] = {
        grpc::Slice(header, n),
        grpc::Slice(const_cast<std::uint8_t*>(part.data()), part.size(),
                    [](void* p) {
                      delete static_cast<std::shared_ptr<const void>*>(p);
                    },
                    keep)};
    message_ = grpc::ByteBuffer(slices, 2);
    StartWrite(&message_);
  }

  pipeline::JobManager::SlotBytes bytes_;
  std::uint64_t at_ = 0;
  grpc::ByteBuffer message_;
};

class DeliveryService final
    : public v1::Delivery::WithRawCallbackMethod_Read<v1::Delivery::Service> {
 public:
  explicit DeliveryService(pipeline::JobManager& jobs) : jobs_(jobs) {}
  void Stop() { stopping_.store(true); }

  grpc::Status Attach(grpc::ServerContext*, const v1::AttachRequest* request,
                      v1::AttachReply* reply) override {
    const auto args = FromProto(*request);
    if (!args.ok()) return ToGrpc(args.status());
    auto result = jobs_.Attach(*args);
    if (!result.ok()) return ToGrpc(result.status());
    ToProto(*result, *reply);
    std::lock_guard lock(mutex_);
    if (known_.size() > 65536) known_.clear();
    known_[result->session] = {result->arena_id, result->batch_bytes};
    return grpc::Status::OK;
  }

  grpc::Status Next(grpc::ServerContext* context, const v1::NextRequest* request,
                    v1::NextReply* reply) override {
    // Waits in pieces, so that a client that went away does not keep the
    // thread.
    const auto release = FromProto(request->release());
    std::optional<std::uint64_t> acked_next;
    if (request->has_acked_next()) acked_next = request->acked_next();
    const auto deadline =
        std::chrono::steady_clock::now() +
        std::chrono::milliseconds(std::min(request->timeout_ms(), kWaitMsMax));
    bool first = true;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      const auto wait = std::clamp<std::int64_t>(left.count(), 0, 500);
      auto batch = jobs_.Next(request->session(), request->step(),
                              static_cast<std::uint64_t>(wait),
                              first ? release
                                    : std::vector<pipeline::ArenaSlot>(),
                              acked_next);
      first = false;
      if (batch.ok()) return Answer(*request, *batch, *reply);
      if (batch.status().code() != absl::StatusCode::kDeadlineExceeded ||
          left.count() <= 0 || context->IsCancelled() || stopping_.load()) {
        return ToGrpc(batch.status());
      }
    }
  }

  grpc::Status Release(grpc::ServerContext*, const v1::ReleaseRequest* request,
                       v1::ReleaseReply*) override {
    return ToGrpc(
        jobs_.Release(request->session(), FromProto(request->release())));
  }

  grpc::Status Ack(grpc::ServerContext*, const v1::AckRequest* request,
                   v1::AckReply*) override {
    return ToGrpc(jobs_.Ack(request->session(), request->step()));
  }

  grpc::Status Checkpoint(grpc::ServerContext*,
                          const v1::CheckpointRequest* request,
                          v1::CheckpointReply*) override {
    return ToGrpc(jobs_.Checkpoint(request->session(), request->name(),
                                   request->next_step()));
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Read(
      grpc::CallbackServerContext*, const grpc::ByteBuffer* raw) override {
    v1::ReadRequest request;
    grpc::ByteBuffer copy = *raw;
    if (!grpc::SerializationTraits<v1::ReadRequest>::Deserialize(&copy, &request)
             .ok()) {
      return new ReadStream(
          grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "not a ReadRequest"));
    }
    auto bytes = jobs_.Bytes(request.session(), FromProto(request.slot()));
    if (!bytes.ok()) return new ReadStream(ToGrpc(bytes.status()));
    return new ReadStream(*std::move(bytes));
  }

  grpc::Status Hold(grpc::ServerContext* context, const v1::HoldRequest* request,
                    grpc::ServerWriter<v1::HoldReply>* writer) override {
    // The stream says nothing; its end is what counts. A write now and then
    // finds out about peers that vanished without a word.
    v1::HoldReply reply;
    std::unique_lock lock(hold_mutex_);
    while (!context->IsCancelled() && !stopping_.load()) {
      hold_changed_.wait_for(lock, std::chrono::milliseconds(250));
      if (++ticks_ % 8 == 0) {
        lock.unlock();
        const bool alive = writer->Write(reply);
        lock.lock();
        if (!alive) break;
      }
    }
    lock.unlock();
    jobs_.CloseSession(request->session());
    return grpc::Status::OK;
  }

  grpc::Status Detach(grpc::ServerContext*, const v1::DetachRequest* request,
                      v1::DetachReply*) override {
    jobs_.CloseSession(request->session());
    return grpc::Status::OK;
  }

 private:
  struct Known {
    std::uint64_t arena = 0, bytes = 0;
  };

  // The batch that was waited for, and those after it that are ready.
  grpc::Status Answer(const v1::NextRequest& request,
                      const std::optional<pipeline::PublishedBatch>& batch,
                      v1::NextReply& reply) {
    if (!batch) {
      reply.set_end(true);
      return grpc::Status::OK;
    }
    Known known;
    {
      std::lock_guard lock(mutex_);
      known = known_[request.session()];
    }
    ToProto(*batch, known.arena, known.bytes, *reply.mutable_batch());
    const std::uint32_t more = std::min(request.more(), kMoreMax);
    std::size_t bytes = reply.batch().ByteSizeLong();
    for (std::uint32_t i = 1; i <= more && bytes < kAnswerBytesMax; ++i) {
      const auto next = jobs_.TakeReady(request.session(), batch->step + i);
      if (!next) break;
      ToProto(*next, known.arena, known.bytes, *reply.add_more());
      bytes += reply.more(static_cast<int>(i) - 1).ByteSizeLong();
    }
    return grpc::Status::OK;
  }

  pipeline::JobManager& jobs_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::map<std::string, Known> known_;
  std::mutex hold_mutex_;
  std::condition_variable hold_changed_;
  std::uint64_t ticks_ = 0;
};

class AdminService final : public v1::Admin::Service {
 public:
  AdminService(pipeline::JobManager& jobs, std::function<DaemonFacts()> facts,
               std::function<void()> on_drain)
      : jobs_(jobs), facts_(std::move(facts)), on_drain_(std::move(on_drain)) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override {
    const DaemonFacts facts = facts_();
    const auto workers = jobs_.worker_stats();
    reply->set_version(PENSTOCK_VERSION);
    reply->set_pid(static_cast<std::uint64_t>(::getpid()));
    reply->set_uptime_ms(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - start_)
            .count()));
    reply->set_io_backend(facts.io_backend);
    reply->set_workers(facts.workers);
    reply->set_worker_restarts(workers.worker_crashes + workers.worker_kills +
                               workers.worker_timeouts);
    reply->set_frames_decoded(workers.frames_decoded);
    reply->set_bytes_read(facts.bytes_read);
    reply->set_arena_bytes(jobs_.arena_bytes());
    reply->set_arena_bytes_max(facts.arena_bytes_max);
    reply->set_draining(jobs_.draining());
    for (const auto& job : jobs_.Jobs()) ToProto(job, *reply->add_jobs());
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest*,
                     v1::DrainReply*) override {
    on_drain_();
    return grpc::Status::OK;
  }

 private:
  pipeline::JobManager& jobs_;
  std::function<DaemonFacts()> facts_;
  std::function<void()> on_drain_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(const GrpcServerOptions& options, pipeline::JobManager& jobs,
       std::function<DaemonFacts()> facts, std::function<void()> on_drain)
      : options_(options),
        delivery_(jobs),
        admin_(jobs, std::move(facts), std::move(on_drain)) {}

  absl::Status Start() {
    grpc::EnableDefaultHealthCheckService(true);
    static std::once_flag once;
    std::call_once(once, grpc::reflection::InitProtoReflectionServerBuilderPlugin);
    // gRPC binds the name itself: under a temporary one, renamed over what a
    // killed daemon left there.
    const std::string temporary = options_.unix_path + ".new";
    ::unlink(temporary.c_str());
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kControlMessageMax);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("unix:" + temporary,
                             grpc::InsecureServerCredentials());
    if (!options_.tcp_address.empty()) {
      builder.AddListeningPort(options_.tcp_address,
                               grpc::InsecureServerCredentials(), &tcp_port_);
    }
    builder.RegisterService(&delivery_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    if (!server_ || (!options_.tcp_address.empty() && tcp_port_ == 0)) {
      // The socket's name was free: it fails for rights only.
      const std::string folder =
          options_.unix_path.substr(0, options_.unix_path.rfind('/') + 1);
      const bool writable = ::access(folder.c_str(), W_OK) == 0;
      return MakeError(
          absl::StatusCode::kUnavailable,
          {.where = writable ? options_.tcp_address : options_.unix_path,
           .what = "cannot listen",
           .found = writable ? "the address is in use"
                             : "no right to write in the folder",
           .expected = "an address and a folder free for this daemon",
           .action = writable ? "choose another port for listen, or 0"
                              : "set socket_dir to a folder that this user may "
                                "write"});
    }
    ::chmod(temporary.c_str(), 0660);
    if (::rename(temporary.c_str(), options_.unix_path.c_str()) != 0) {
      return ErrnoError(errno, options_.unix_path);
    }
    return absl::OkStatus();
  }

  ~Impl() {
    Shutdown();
    ::unlink(options_.unix_path.c_str());
  }

  int tcp_port() const { return tcp_port_; }
  void SetServing(bool serving) {
    server_->GetHealthCheckService()->SetServingStatus(serving);
  }
  void Shutdown() {
    if (!server_) return;
    delivery_.Stop();
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::seconds(2));
    server_->Wait();
    server_.reset();
  }

 private:
  const GrpcServerOptions options_;
  DeliveryService delivery_;
  AdminService admin_;
  std::unique_ptr<grpc::Server> server_;
  int tcp_port_ = 0;
};

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const GrpcServerOptions& options, pipeline::JobManager& jobs,
    std::function<DaemonFacts()> facts, std::function<void()> on_drain) {
  auto impl = std::make_unique<Impl>(options, jobs, std::move(facts),
                                     std::move(on_drain));
  PENSTOCK_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcServer::~GrpcServer() = default;
int GrpcServer::tcp_port() const { return impl_->tcp_port(); }
void GrpcServer::SetServing(bool serving) { impl_->SetServing(serving); }
void GrpcServer::Shutdown() { impl_->Shutdown(); }

}  // namespace penstock::transport
