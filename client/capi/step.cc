#include "client/capi/step.h"

namespace penstock::capi {
namespace {
constexpr std::size_t kBuffersMax = 2;  // one in hand, one on its way
}

void Release(std::unique_ptr<ps_step> step) {
  const std::shared_ptr<Returns> returns = step->returns;
  if (returns->pid != ::getpid()) return;
  bool awaited;
  {
    std::lock_guard lock(returns->mutex);
    awaited = returns->awaited;
    if (step->arena) {  // a copy's slot was given back when it was made
      returns->slots.push_back(step->slot);
    } else if (returns->buffers.size() < kBuffersMax) {
      returns->buffers.push_back(std::move(step->copy));
    }
  }
  if (awaited) returns->changed.notify_all();
}

}  // namespace penstock::capi
