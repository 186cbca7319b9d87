#include <cuda_runtime.h>

#include "client/placement/expand.h"
#include "common/layout/expand.h"

namespace penstock::placement {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksMax = 65535;

__global__ void ExpandKernel(const std::uint8_t* in, std::size_t count,
                             float scale, float bias, float* out) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x +
                       threadIdx.x;
       i < count; i += step) {
    out[i] = layout::ExpandUnit(in[i], scale, bias);
  }
}

Message Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return "";
  return std::string(what) + ": " + cudaGetErrorString(error);
}

class CudaExpander final : public DeviceExpander {
 public:
  ~CudaExpander() override {
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    if (staging_ != nullptr) cudaFree(staging_);
  }

  Message Init(int device, std::size_t bytes_max) {
    device_ = device;
    bytes_max_ = bytes_max;
    if (Message m = Check(cudaSetDevice(device), "cudaSetDevice"); !m.empty()) {
      return m;
    }
    if (Message m = Check(
            cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
            "cudaStreamCreate");
        !m.empty()) {
      return m;
    }
    return Check(cudaMalloc(&staging_, bytes_max), "cudaMalloc");
  }

  Message Expand(const std::uint8_t* host, std::size_t count, float scale,
                 float bias, float* device_out) override {
    if (count > bytes_max_) {
      return "expand of " + std::to_string(count) + " bytes: at most " +
             std::to_string(bytes_max_) + " were asked for at Create";
    }
    if (count == 0) return "";
    if (Message m = Check(cudaMemcpyAsync(staging_, host, count,
                                          cudaMemcpyHostToDevice, stream_),
                          "cudaMemcpyAsync");
        !m.empty()) {
      return m;
    }
    const std::size_t blocks = (count + kThreads - 1) / kThreads;
    ExpandKernel<<<static_cast<int>(blocks < kBlocksMax ? blocks : kBlocksMax),
                   kThreads, 0, stream_>>>(
        static_cast<const std::uint8_t*>(staging_), count, scale, bias,
        device_out);
    return Check(cudaGetLastError(), "expand kernel");
  }

  void* stream() const override { return stream_; }
  Message Synchronize() override {
    return Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  int device_ = 0;
  std::size_t bytes_max_ = 0;
  cudaStream_t stream_ = nullptr;
  void* staging_ = nullptr;
};

}  // namespace

Message DeviceExpander::Create(int device, std::size_t bytes_max,
                               std::unique_ptr<DeviceExpander>* out) {
  int count = 0;  // the call leaves it untouched when there is no driver
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    return std::string("device placement: no GPU is usable here (") +
           (error != cudaSuccess ? cudaGetErrorString(error) : "none found") +
           "); use placement \"host\", or install a driver for this CUDA "
           "runtime";
  }
  if (device < 0 || device >= count) {
    return "device placement: no device " + std::to_string(device) +
           "; expected 0 to " + std::to_string(count - 1);
  }
  auto expander = std::make_unique<CudaExpander>();
  if (Message m = expander->Init(device, bytes_max); !m.empty()) return m;
  *out = std::move(expander);
  return "";
}

}  // namespace penstock::placement
