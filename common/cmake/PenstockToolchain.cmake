# One interface target carries what every translation unit is built with.
find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
endif()

find_program(PENSTOCK_MOLD mold)
if(PENSTOCK_MOLD AND NOT PENSTOCK_SANITIZE AND NOT PENSTOCK_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()

add_library(penstock_build INTERFACE)
target_include_directories(penstock_build INTERFACE ${CMAKE_SOURCE_DIR})
# No contraction anywhere: equal bits on every host (DESIGN §6).
target_compile_options(penstock_build INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow=local
    -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers
    -ffp-contract=off -fno-strict-aliasing>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>)
target_compile_definitions(penstock_build INTERFACE _FILE_OFFSET_BITS=64)

if(PENSTOCK_SANITIZE)
  target_compile_options(penstock_build INTERFACE
    -fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(penstock_build INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()
if(PENSTOCK_FUZZ)
  target_compile_options(penstock_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

# CUDA sources are compiled wherever nvcc is found. The runtime is linked
# statically and the driver is opened at run time, so no binary needs a driver
# to start.
include(CheckLanguage)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120)
endif()
if(NOT PENSTOCK_SANITIZE AND NOT PENSTOCK_FUZZ)
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no CUDA20
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(PENSTOCK_HAVE_CUDA ON)
elseif(PENSTOCK_REQUIRE_CUDA)
  message(FATAL_ERROR "PENSTOCK_REQUIRE_CUDA is ON and no nvcc was found; "
    "install the CUDA toolkit or use another preset")
else()
  set(PENSTOCK_HAVE_CUDA OFF)
endif()
message(STATUS "CUDA sources compiled: ${PENSTOCK_HAVE_CUDA}")
