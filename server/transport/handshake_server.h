#ifndef PENSTOCK_SERVER_TRANSPORT_HANDSHAKE_SERVER_H_
#define PENSTOCK_SERVER_TRANSPORT_HANDSHAKE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/pipeline/job_manager.h"

namespace penstock::transport {

// The handshake socket: who connects is asked for its credentials, gets a
// session, and the arena's descriptor when it attaches; when its end closes,
// the session's slots are given back.
//
// Threading: one thread of its own; SendArena() from any.
// Bounds: at most 1024 connections.
// Stopping: the destructor closes every connection and removes the socket.
class HandshakeServer {
 public:
  // Listens at `path`; `grpc_target` is told to clients.
  //
  // kInvalidArgument: the path is too long; others: from errno
  static absl::StatusOr<std::unique_ptr<HandshakeServer>> Start(
      const std::string& path, std::string grpc_target,
      pipeline::JobManager& jobs);
  ~HandshakeServer();

 private:
  class Impl;
  explicit HandshakeServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::transport

#endif  // PENSTOCK_SERVER_TRANSPORT_HANDSHAKE_SERVER_H_
