#ifndef PENSTOCK_SERVER_TRANSPORT_GRPC_SERVER_H_
#define PENSTOCK_SERVER_TRANSPORT_GRPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/pipeline/job_manager.h"

namespace penstock::transport {

struct GrpcServerOptions {
  std::string unix_path;    // of the control socket
  std::string tcp_address;  // loopback only; empty: none
};

// What GetStatus tells beside the jobs.
struct DaemonFacts {
  std::string io_backend;
  std::uint64_t bytes_read = 0;
  std::uint64_t arena_bytes_max = 0;
  std::uint64_t workers = 0;
};

// gRPC of the daemon: Delivery, Admin, health, reflection.
//
// Threading: gRPC's own threads; a call that waits for a batch keeps one.
// Ownership: borrows `jobs`.
// Stopping: Shutdown() ends waiting calls; then destroy.
class GrpcServer {
 public:
  // `on_drain` runs when Admin.Drain is called.
  //
  // kUnavailable: an address cannot be bound (names it)
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const GrpcServerOptions& options, pipeline::JobManager& jobs,
      std::function<DaemonFacts()> facts, std::function<void()> on_drain);
  ~GrpcServer();

  int tcp_port() const;  // 0: none
  void SetServing(bool serving);
  void Shutdown();

 private:
  class Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::transport

#endif  // PENSTOCK_SERVER_TRANSPORT_GRPC_SERVER_H_
