#include "common/shm/arena.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "common/hash/hash.h"
#include "common/shm/fd_socket.h"

namespace penstock::shm {
namespace {

constexpr std::uint64_t kBytes = 64 * 4096;

// Everything a holder of the descriptor can try; returns what succeeded.
std::string Attack(int fd) {
  std::string succeeded;
  auto note = [&](bool worked, const char* name) {
    if (worked) succeeded += std::string(name) + " ";
  };
  void* shared =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  note(shared != MAP_FAILED, "mmap");
  note(pwrite(fd, "x", 1, 0) == 1, "pwrite");
  note(ftruncate(fd, 0) == 0, "shrink");
  note(ftruncate(fd, 2 * kBytes) == 0, "grow");
  note(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0,
       "punch");
  note(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0, "seal");
  void* read = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  if (read != MAP_FAILED) {
    note(mprotect(read, kBytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
    note(madvise(read, kBytes, MADV_REMOVE) == 0, "remove");
    munmap(read, kBytes);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(path.c_str(), O_RDWR);
  if (again >= 0) {
    note(pwrite(again, "x", 1, 0) == 1, "reopen+pwrite");
    void* p =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
    note(p != MAP_FAILED, "reopen+mmap");
    close(again);
  }
  return succeeded;
}

// Runs `body` in a child; true when it returned true there.
template <typename F>
bool InChild(F body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("arena: sealed, it refuses every way to write it anew", "[shm]") {
  auto arena = Arena::Create(kBytes);
  REQUIRE(arena.ok());
  std::memset((*arena)->bytes().data(), 0x5A, kBytes);
  REQUIRE((*arena)->Seal().ok());
  REQUIRE((*arena)->Seal().ok());  // idempotent
  const auto before = hash::Xxh3_128((*arena)->bytes());

  SECTION("in this process") { CHECK(Attack((*arena)->fd()) == ""); }
  SECTION("in another process") {
    CHECK(InChild([&] { return Attack((*arena)->fd()).empty(); }));
  }
  SECTION("as another user, with a read-only descriptor") {
    if (geteuid() != 0) {
      WARN("skipped: needs root to change the user");
      return;
    }
    const std::string path =
        "/proc/self/fd/" + std::to_string((*arena)->fd());
    UniqueFd read_only(open(path.c_str(), O_RDONLY));
    REQUIRE(read_only);
    CHECK(InChild([&] {
      return setgid(12345) == 0 && setuid(12345) == 0 &&
             Attack(read_only.get()).empty();
    }));
  }
  CHECK(hash::Xxh3_128((*arena)->bytes()) == before);
  (*arena)->bytes()[0] = 1;  // the owner's mapping goes on writing
  CHECK((*arena)->bytes()[0] == 1);
}

TEST_CASE("arena: the test's attacks work before the seal", "[shm]") {
  auto arena = Arena::Create(kBytes);
  REQUIRE(arena.ok());
  CHECK(Attack((*arena)->fd()).find("mmap pwrite shrink grow") == 0);
}

TEST_CASE("arena: a worker forked after sealing still writes (B-34)", "[shm]") {
  auto arena = Arena::Create(kBytes);
  REQUIRE(arena.ok());
  REQUIRE((*arena)->Seal().ok());
  for (std::uint8_t round = 1; round <= 3; ++round) {
    auto pair = SocketPair();
    REQUIRE(pair.ok());
    const pid_t pid = fork();
    if (pid == 0) {
      (*arena)->bytes()[round] = round;
      (void)SendMessage(pair->second.get(), {&round, 1});
      pause();  // until it is killed
      _exit(0);
    }
    std::uint8_t said = 0;
    auto got = ReceiveMessage(pair->first.get(), {&said, 1});
    REQUIRE(got.ok());
    CHECK(said == round);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    CHECK((*arena)->bytes()[round] == round);
  }
}

TEST_CASE("arena: populating in the background changes nothing", "[shm]") {
  auto arena = Arena::Create(16u << 20);
  REQUIRE(arena.ok());
  (*arena)->bytes()[5000] = 7;
  (*arena)->PopulateInBackground();
  REQUIRE((*arena)->Seal().ok());
  (*arena)->WaitPopulated();
  CHECK((*arena)->bytes()[5000] == 7);
  std::vector<unsigned char> resident((16u << 20) / 4096);
  REQUIRE(mincore((*arena)->bytes().data(), 16u << 20, resident.data()) == 0);
  CHECK(std::count_if(resident.begin(), resident.end(),
                      [](unsigned char c) { return (c & 1) != 0; }) ==
        static_cast<long>(resident.size()));
  SECTION("and ends early with its owner") {
    auto large = Arena::Create(std::uint64_t{1} << 30);
    REQUIRE(large.ok());
    (*large)->PopulateInBackground();
  }
}

TEST_CASE("client map: checks size and seals before it trusts", "[shm]") {
  auto arena = Arena::Create(kBytes);
  REQUIRE(arena.ok());
  (*arena)->bytes()[9] = 9;
  CHECK(ReadOnlyMapping::Map((*arena)->fd(), kBytes).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  REQUIRE((*arena)->Seal().ok());
  CHECK(ReadOnlyMapping::Map((*arena)->fd(), kBytes + 4096).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(ReadOnlyMapping::Map((*arena)->fd(), 0).status().code() ==
        absl::StatusCode::kInvalidArgument);
  auto map = ReadOnlyMapping::Map((*arena)->fd(), kBytes, /*populate=*/true);
  REQUIRE(map.ok());
  CHECK((*map)->bytes()[9] == 9);
  (*arena)->bytes()[9] = 10;
  CHECK((*map)->bytes()[9] == 10);
  CHECK((*map)->Slice(0, kBytes).ok());
  CHECK_FALSE((*map)->Slice(1, kBytes).ok());
  CHECK_FALSE((*map)->Slice(UINT64_MAX, 2).ok());

  char name[] = "/tmp/penstock-map-XXXXXX";
  UniqueFd file(mkstemp(name));
  unlink(name);
  REQUIRE(ftruncate(file.get(), kBytes) == 0);
  CHECK(ReadOnlyMapping::Map(file.get(), kBytes).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock::shm
