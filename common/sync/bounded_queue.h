#ifndef PENSTOCK_COMMON_SYNC_BOUNDED_QUEUE_H_
#define PENSTOCK_COMMON_SYNC_BOUNDED_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "common/sync/mutex.h"

namespace penstock::sync {

// Messages to the thread that owns a loop.
//
// Threading: any number of writers and readers.
// Bounds: `capacity` items; a full queue answers "not now", never waits.
// Stopping: Close() refuses new items; readers get what is left, then nothing.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // False, with `item` untouched, when full or closed.
  bool TryPush(T&& item) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.NotifyOne();
    return true;
  }
  // The oldest item; nothing when closed and empty.
  std::optional<T> Pop() {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) ready_.Wait(mutex_);
    return Take();
  }
  // Nothing also when the deadline passes first.
  std::optional<T> PopUntil(std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) {
      if (!ready_.WaitUntil(mutex_, deadline)) break;
    }
    return Take();
  }
  std::optional<T> TryPop() {
    MutexLock lock(mutex_);
    return Take();
  }
  void Close() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.NotifyAll();
  }
  std::size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }
  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }
  std::size_t capacity() const { return capacity_; }

 private:
  std::optional<T> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar ready_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::sync

#endif  // PENSTOCK_COMMON_SYNC_BOUNDED_QUEUE_H_
