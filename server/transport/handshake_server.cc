#include "server/transport/handshake_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common/shm/fd_socket.h"
#include "common/shm/handshake.h"
#include "common/shm/unique_fd.h"
#include "common/status/status.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kConnectionsMax = 1024;

struct Connection {
  shm::UniqueFd socket;
  std::string session;  // empty before its hello
};

void CopyText(const std::string& text, std::span<char> out) {
  const std::size_t n = std::min(text.size(), out.size() - 1);
  std::memcpy(out.data(), text.data(), n);
  out[n] = '\0';
}

void Refuse(int socket, const std::string& why) {
  shm::Refused refused;
  CopyText(why, refused.text);
  shm::SendStruct(socket, refused, {}, /*wait=*/false).IgnoreError();
}

}  // namespace

class HandshakeServer::Impl {
 public:
  Impl(std::string path, std::string grpc_target, pipeline::JobManager& jobs,
       shm::UniqueFd listener, shm::UniqueFd wake)
      : path_(std::move(path)),
        grpc_target_(std::move(grpc_target)),
        jobs_(jobs),
        listener_(std::move(listener)),
        wake_(std::move(wake)) {
    jobs_.OnArena([this](const std::string& session,
                         const pipeline::JobManager::ArenaHandle& arena) {
      SendArena(session, arena);
    });
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    const std::uint64_t one = 1;
    while (::write(wake_.get(), &one, 8) < 0 && errno == EINTR) {
    }
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  void Run() {
    for (;;) {
      std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0},
                                 {listener_.get(), POLLIN, 0}};
      {
        std::lock_guard lock(mutex_);
        for (const auto& [fd, c] : connections_) fds.push_back({fd, POLLIN, 0});
      }
      if (::poll(fds.data(), fds.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (fds[0].revents != 0) return;
      for (std::size_t i = 2; i < fds.size(); ++i) {
        if (fds[i].revents != 0) Serve(fds[i].fd);
      }
      if (fds[1].revents != 0) Accept();
    }
  }

  void Accept() {
    shm::UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    auto peer = shm::PeerOf(socket.get());
    if (!peer.ok()) return Refuse(socket.get(), std::string(peer.status().message()));
    std::lock_guard lock(mutex_);
    if (connections_.size() >= kConnectionsMax) {
      return Refuse(socket.get(), "too many connections to the daemon");
    }
    const int fd = socket.get();
    connections_[fd] = {std::move(socket), ""};
  }

  void Serve(int fd) {
    shm::Hello hello;
    auto got = shm::ReceiveStruct(fd, hello, 0, /*wait=*/false);
    if (got.ok() && got->state == shm::ReceiveState::kNothingYet) return;
    const bool good = got.ok() && got->state == shm::ReceiveState::kMessage &&
                      hello.header.magic == shm::kHandshakeMagic &&
                      hello.header.kind == shm::HandshakeKind::kHello;
    std::unique_lock lock(mutex_);
    auto it = connections_.find(fd);
    if (it == connections_.end()) return;
    if (good && it->second.session.empty()) {
      if (hello.header.version != shm::kHandshakeVersion) {
        Refuse(fd, "the client speaks another version of the handshake; install "
                   "client and daemon of one release");
      } else {
        Welcome(it->second);
        return;
      }
    }
    // The end of the stream, or words that do not belong there.
    const std::string session = it->second.session;
    connections_.erase(it);
    lock.unlock();
    if (!session.empty()) jobs_.CloseSession(session);
  }

  void Welcome(Connection& c) {
    c.session = jobs_.OpenSession(/*remote=*/false);
    shm::Welcome welcome;
    CopyText(c.session, welcome.session);
    CopyText(grpc_target_, welcome.grpc_address);
    welcome.daemon_pid = static_cast<std::uint64_t>(::getpid());
    shm::SendStruct(c.socket.get(), welcome, {}, /*wait=*/false).IgnoreError();
  }

  void SendArena(const std::string& session,
                 const pipeline::JobManager::ArenaHandle& arena) {
    std::lock_guard lock(mutex_);
    for (const auto& [fd, c] : connections_) {
      if (c.session != session) continue;
      shm::ArenaMessage message;
      message.arena = arena.id;
      message.bytes = arena.bytes;
      const int fds[1] = {arena.fd};
      shm::SendStruct(fd, message, fds, /*wait=*/false).IgnoreError();
    }
  }

  const std::string path_, grpc_target_;
  pipeline::JobManager& jobs_;
  shm::UniqueFd listener_, wake_;
  std::mutex mutex_;
  std::map<int, Connection> connections_;  // under mutex_
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HandshakeServer>> HandshakeServer::Start(
    const std::string& path, std::string grpc_target,
    pipeline::JobManager& jobs) {
  PENSTOCK_ASSIGN_OR_RETURN(auto listener, shm::ListenAt(path));
  shm::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (wake.get() < 0) return ErrnoError(errno, "eventfd");
  return std::unique_ptr<HandshakeServer>(new HandshakeServer(
      std::make_unique<Impl>(path, std::move(grpc_target), jobs,
                             std::move(listener), std::move(wake))));
}

HandshakeServer::HandshakeServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
HandshakeServer::~HandshakeServer() = default;

}  // namespace penstock::transport
