#include "common/sync/bounded_queue.h"

#include <catch2/catch.hpp>

#include <memory>
#include <thread>

namespace penstock::sync {
namespace {

TEST_CASE("queue: full answers not now and leaves the item alone", "[sync]") {
  BoundedQueue<std::unique_ptr<int>> q(2);
  CHECK(q.TryPush(std::make_unique<int>(1)));
  CHECK(q.TryPush(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  CHECK_FALSE(q.TryPush(std::move(third)));
  REQUIRE(third != nullptr);
  CHECK(*third == 3);
  CHECK(**q.Pop() == 1);
  CHECK(q.TryPush(std::move(third)));
}

TEST_CASE("queue: close refuses new items and gives out the rest", "[sync]") {
  BoundedQueue<int> q(4);
  CHECK(q.TryPush(1));
  CHECK(q.TryPush(2));
  q.Close();
  CHECK_FALSE(q.TryPush(3));
  CHECK(q.Pop() == 1);
  CHECK(q.Pop() == 2);
  CHECK(q.Pop() == std::nullopt);
}

TEST_CASE("queue: a deadline ends an empty wait", "[sync]") {
  BoundedQueue<int> q(1);
  CHECK(q.PopUntil(std::chrono::steady_clock::now()) == std::nullopt);
}

TEST_CASE("queue: nothing lost, nothing twice, over threads", "[sync]") {
  BoundedQueue<int> q(3);
  constexpr int kCount = 2000;
  std::thread writer([&] {
    for (int i = 0; i < kCount;) {
      int item = i;
      if (q.TryPush(std::move(item))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
    q.Close();
  });
  int expected = 0;
  while (auto item = q.Pop()) {
    REQUIRE(*item == expected);
    ++expected;
  }
  writer.join();
  CHECK(expected == kCount);
}

}  // namespace
}  // namespace penstock::sync
