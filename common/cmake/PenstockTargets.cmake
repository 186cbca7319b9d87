# penstock_library(NAME plan SRCS a.cc PUBLIC penstock::types PRIVATE …)
#
# PUBLIC packages appear in the module's headers, PRIVATE ones do not. Headers
# only: leave SRCS out. The target is penstock_<name>, alias penstock::<name>.
function(penstock_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;PUBLIC;PRIVATE" ${ARGN})
  if(A_SRCS)
    add_library(penstock_${A_NAME} STATIC ${A_SRCS})
    target_link_libraries(penstock_${A_NAME}
      PUBLIC penstock_build ${A_PUBLIC} PRIVATE ${A_PRIVATE})
  else()
    add_library(penstock_${A_NAME} INTERFACE)
    target_link_libraries(penstock_${A_NAME} INTERFACE penstock_build ${A_PUBLIC})
  endif()
  add_library(penstock::${A_NAME} ALIAS penstock_${A_NAME})
endfunction()

# penstock_program(NAME penstockd SRCS main.cc LINK …): lands in bin/.
function(penstock_program)
  cmake_parse_arguments(A "" "NAME" "SRCS;LINK" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_link_libraries(${A_NAME} PRIVATE penstock_build ${A_LINK})
endfunction()

# penstock_test(NAME plan_test SRCS … LINK … LABELS unit [TIMEOUT s])
#
# One Catch2 program, one ctest entry. LABELS: unit, sim, integration, gpu,
# slow. Tests read PENSTOCK_SOURCE_DIR and PENSTOCK_BIN_DIR.
function(penstock_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "SRCS;LINK;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  add_executable(${A_NAME} ${A_SRCS})
  set_target_properties(${A_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${A_NAME} PRIVATE
    penstock_build ${A_LINK} Catch2::Catch2WithMain)
  target_compile_definitions(${A_NAME} PRIVATE
    PENSTOCK_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    PENSTOCK_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  add_test(NAME ${A_NAME} COMMAND ${A_NAME} --use-colour no)
  set_tests_properties(${A_NAME} PROPERTIES
    LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# penstock_fuzz(NAME … SRCS … LINK …): only in the fuzz preset.
function(penstock_fuzz)
  if(NOT PENSTOCK_FUZZ)
    return()
  endif()
  cmake_parse_arguments(A "" "NAME" "SRCS;LINK" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_link_libraries(${A_NAME} PRIVATE penstock_build ${A_LINK})
  target_link_options(${A_NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
