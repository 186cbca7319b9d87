#include "common/shm/fd_socket.h"

#include <catch2/catch.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace penstock::shm {
namespace {

int OpenDescriptors() {
  int n = 0;
  for ([[maybe_unused]] const auto& e :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++n;
  }
  return n;
}

struct Ping { std::uint64_t value = 0; };

TEST_CASE("socket: a struct and its descriptors arrive whole, close-on-exec",
          "[shm]") {
  auto pair = SocketPair();
  REQUIRE(pair.ok());
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {null.get(), null.get()};
  REQUIRE(SendStruct(pair->first.get(), Ping{42}, fds).ok());
  Ping ping;
  auto got = ReceiveStruct(pair->second.get(), ping, 2);
  REQUIRE(got.ok());
  CHECK(got->state == ReceiveState::kMessage);
  CHECK(ping.value == 42);
  REQUIRE(got->fds.size() == 2);
  CHECK((fcntl(got->fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("socket: more descriptors than expected are refused and closed",
          "[shm]") {
  auto pair = SocketPair();
  REQUIRE(pair.ok());
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int before = OpenDescriptors();
  Ping ping;
  SECTION("a few") {
    const int fds[] = {null.get(), null.get(), null.get()};
    REQUIRE(SendStruct(pair->first.get(), Ping{1}, fds).ok());
  }
  SECTION("as many as the kernel lets through") {
    std::vector<int> fds(253, null.get());
    alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {};
    Ping out{2};
    iovec io = {&out, sizeof(out)};
    msghdr m = {};
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
    REQUIRE(sendmsg(pair->first.get(), &m, 0) == sizeof(out));
  }
  CHECK(ReceiveStruct(pair->second.get(), ping, 1).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("socket: other sizes, silence and the end are told apart", "[shm]") {
  auto pair = SocketPair();
  REQUIRE(pair.ok());
  Ping ping;
  const int reader = pair->second.get();
  auto nothing = ReceiveStruct(reader, ping, 0, /*wait=*/false);
  REQUIRE(nothing.ok());
  CHECK(nothing->state == ReceiveState::kNothingYet);

  const std::uint8_t bytes[64] = {};
  REQUIRE(SendMessage(pair->first.get(), std::span(bytes).first(7)).ok());
  CHECK(ReceiveStruct(reader, ping).status().code() ==
        absl::StatusCode::kInvalidArgument);
  REQUIRE(SendMessage(pair->first.get(), bytes).ok());
  CHECK(ReceiveStruct(reader, ping).status().code() ==
        absl::StatusCode::kInvalidArgument);

  pair->first.Reset();
  auto end = ReceiveStruct(reader, ping);
  REQUIRE(end.ok());
  CHECK(end->state == ReceiveState::kClosed);
  CHECK(SendStruct(reader, ping).code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("socket: a full one says so instead of blocking", "[shm]") {
  auto pair = SocketPair();
  REQUIRE(pair.ok());
  absl::Status status;
  const std::vector<std::uint8_t> bytes(60000);
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = SendMessage(pair->first.get(), bytes, {}, /*wait=*/false);
  }
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("socket: listens over a stale file and knows its peer (B-34)",
          "[shm]") {
  char folder[] = "/tmp/penstock-socket-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/penstock.sock";
  CHECK(ConnectTo(path).status().code() == absl::StatusCode::kUnavailable);
  { REQUIRE(ListenAt(path).ok()); }  // leaves the file, as kill -9 does
  CHECK(ConnectTo(path).status().code() == absl::StatusCode::kUnavailable);
  auto listener = ListenAt(path);
  REQUIRE(listener.ok());
  auto client = ConnectTo(path);
  REQUIRE(client.ok());
  UniqueFd server(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(server);
  auto peer = PeerOf(server.get());
  REQUIRE(peer.ok());
  CHECK(peer->pid == getpid());
  CHECK(peer->uid == geteuid());
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  CHECK(ListenAt(std::string(200, 'x')).status().code() ==
        absl::StatusCode::kInvalidArgument);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::shm
