#ifndef PENSTOCK_CLIENT_PLACEMENT_EXPAND_H_
#define PENSTOCK_CLIENT_PLACEMENT_EXPAND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

// Puts the bytes of a batch on a device: one copy on a stream of its own, and
// a kernel that turns bytes into floats there, so that a quarter of the bytes
// cross the bus. Runs in the trainer's process; the daemon launches nothing.
namespace penstock::placement {

// Empty: it went well; else what is wrong and what to do.
using Message = std::string;

// One device's staging buffer and stream.
//
// Threading: one thread. Bounds: `bytes_max` on the device.
// Without a GPU, or in a build without nvcc, Create() says so.
class DeviceExpander {
 public:
  static Message Create(int device, std::size_t bytes_max,
                        std::unique_ptr<DeviceExpander>* out);
  virtual ~DeviceExpander() = default;

  // Copies `count` bytes from `host` and writes v * scale + bias as float32 to
  // `device_out` (device memory of 4 * count bytes): equal bits to
  // layout::ExpandUnit on the host. Asynchronous on stream().
  virtual Message Expand(const std::uint8_t* host, std::size_t count,
                         float scale, float bias, float* device_out) = 0;
  // The cudaStream_t of the copies and kernels.
  virtual void* stream() const = 0;
  // Waits for everything that was asked for.
  virtual Message Synchronize() = 0;
};

}  // namespace penstock::placement

#endif  // PENSTOCK_CLIENT_PLACEMENT_EXPAND_H_
