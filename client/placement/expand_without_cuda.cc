#include "client/placement/expand.h"

namespace penstock::placement {

Message DeviceExpander::Create(int, std::size_t,
                               std::unique_ptr<DeviceExpander>*) {
  return "device placement: this build has no CUDA; use placement \"host\", or "
         "build where nvcc is installed";
}

}  // namespace penstock::placement
