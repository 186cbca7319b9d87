#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  penstock::fuzz::PENSTOCK_FUZZ_TARGET({data, size});
  return 0;
}
