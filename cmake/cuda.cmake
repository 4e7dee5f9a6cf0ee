# The CUDA backend, twice from the same sources:
#   chimere_backend_cuda           with nvcc, for cards; where there is no card or no nvcc the rest is built without it
#   chimere_backend_cuda_emulator  with the C++ compiler alone: kernels run in the emulator of simt/, which is what
#                                  backend_cuda_test tests on every machine
set(CHIMERE_CUDA AUTO CACHE STRING "The CUDA backend: AUTO (when a card and nvcc are there), ON or OFF")
set_property(CACHE CHIMERE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CHIMERE_CUDA_ARCHITECTURES "" CACHE STRING
    "What to build for. Empty: this machine's card (AUTO), or every card we know (ON)")

option(CHIMERE_FEW_FORMATS "By nvcc, kernels for some formats only, hardly optimised: do they compile and link?")

set(cuda_folder ${CMAKE_SOURCE_DIR}/src/backend/cuda)
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${cuda_folder}/*.cu)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${cuda_folder}/*.cpp)
set(cuda_tests ${cuda_sources})
list(FILTER cuda_tests INCLUDE REGEX "_test\\.cpp$")
list(FILTER cuda_sources EXCLUDE REGEX "_test\\.cpp$")
set(cuda_deps chimere_backend_cpu chimere_backend_reference chimere_backend chimere_sampling chimere_tensor chimere_base)

# A *_instances.cu has the kernels of a family for many formats. It is compiled once a part, side by side, through
# sources that say which part they are.
file(STRINGS ${cuda_folder}/weights/format_table.h instance_parts REGEX "kInstanceParts = [0-9]+")
string(REGEX REPLACE ".*kInstanceParts = ([0-9]+).*" "\\1" instance_parts "${instance_parts}")
math(EXPR last_part "${instance_parts} - 1")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_folder}/weights/format_table.h)
set(cuda_instances ${cuda_kernels})
list(FILTER cuda_instances INCLUDE REGEX "_instances\\.cu$")
list(FILTER cuda_kernels EXCLUDE REGEX "_instances\\.cu$")
set(emulated_kernels "")
foreach(instances ${cuda_instances})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${instances})
  string(REGEX REPLACE "\\.cu$" "" stem ${name})
  foreach(part RANGE ${last_part})
    set(content "#define CHIMERE_PART ${part}\n#include \"${name}\"\n")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/parts/${stem}_${part}.cu CONTENT "${content}")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/emulated/${stem}_${part}.cu.cpp CONTENT "${content}")
    list(APPEND cuda_parts ${CMAKE_BINARY_DIR}/parts/${stem}_${part}.cu)
    list(APPEND emulated_kernels ${CMAKE_BINARY_DIR}/emulated/${stem}_${part}.cu.cpp)
  endforeach()
endforeach()

# The C++ compiler gets each kernel file through a source of one line, so that its language stays CUDA for nvcc.
foreach(kernel ${cuda_kernels})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${kernel})
  set(wrapper ${CMAKE_BINARY_DIR}/emulated/${name}.cpp)
  file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${name}\"\n")
  list(APPEND emulated_kernels ${wrapper})
endforeach()
# Kernels and their tests are templates that take long to compile: several of them in one unit would only take memory.
# They also name things alike (kThreads, Shape), as each is a small world of its own.
file(GLOB_RECURSE kernel_tests CONFIGURE_DEPENDS ${cuda_folder}/kernels/*_test.cpp)
list(APPEND cuda_kernels ${cuda_parts})
set_source_files_properties(${cuda_kernels} ${emulated_kernels} ${kernel_tests} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
add_library(chimere_backend_cuda_emulator STATIC EXCLUDE_FROM_ALL ${cuda_sources} ${emulated_kernels})
target_include_directories(chimere_backend_cuda_emulator PUBLIC ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(chimere_backend_cuda_emulator PUBLIC CHIMERE_SIMT_EMULATOR)
chimere_optimise_sanitized(chimere_backend_cuda_emulator)
chimere_test_program(chimere_backend_cuda_emulator)
# #pragma unroll is advice to nvcc: g++ does not know it, clang tells where it did not follow it.
# Following it, clang takes ten times as long for some kernels under sanitizers and gains nothing.
target_compile_options(chimere_backend_cuda_emulator
                       PUBLIC -Wno-unknown-pragmas
                              "$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed;SHELL:-mllvm -pragma-unroll-threshold=1>")
target_link_libraries(chimere_backend_cuda_emulator PUBLIC ${cuda_deps} Threads::Threads)
if(CHIMERE_TESTS)
  add_executable(backend_cuda_test ${cuda_tests})
  chimere_test_program(backend_cuda_test)
  chimere_optimise_sanitized(backend_cuda_test)
  target_link_libraries(backend_cuda_test PRIVATE chimere_backend_cuda_emulator GTest::gtest_main)
  target_compile_definitions(backend_cuda_test PRIVATE CHIMERE_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
  # The emulator comes first: models/ may bring the backend for cards, which has the same names.
  set(models_tests adapter drafter executable host_experts mapped_experts ram_layers recurrence rollback sleep speculation
                   tiers weight_form)
  list(TRANSFORM models_tests REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/tests/cuda/\\1_test.cpp")
  add_executable(cuda_models_test ${models_tests})
  target_link_libraries(cuda_models_test PRIVATE chimere_backend_cuda_emulator chimere_engine chimere_models
                                                 chimere_cache GTest::gtest_main)
  target_compile_definitions(cuda_models_test PRIVATE CHIMERE_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
  chimere_test_program(cuda_models_test)
  set_target_properties(cuda_models_test PROPERTIES UNITY_BUILD OFF)
  chimere_suite(backend_cuda PARTS 4)
  chimere_suite(cuda_models PARTS 4)
endif()

if(NOT CHIMERE_CUDA)
  return()
endif()
set(architectures ${CHIMERE_CUDA_ARCHITECTURES})
if(CHIMERE_CUDA STREQUAL "AUTO")
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_card OUTPUT_QUIET ERROR_QUIET)
  if(no_card)
    message(STATUS "There is no NVIDIA card: kernels are not compiled (-DCHIMERE_CUDA=ON compiles them for every card)")
    return()
  endif()
  if(NOT architectures)
    set(architectures native)
  endif()
elseif(NOT architectures)
  # Cubins for the cards we know, and PTX for what comes after them.
  set(architectures 80-real 86-real 89-real 90-real 120-real 90-virtual)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${architectures})
if(CHIMERE_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "There is a card but no nvcc: kernels are not compiled")
    return()
  endif()
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25.1 does not know it
endif()
find_package(CUDAToolkit REQUIRED)

list(FILTER cuda_sources EXCLUDE REGEX "/simt/(emulator|fiber)\\.cpp$")
add_library(chimere_backend_cuda STATIC ${cuda_sources} ${cuda_kernels})
target_include_directories(chimere_backend_cuda PUBLIC ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(chimere_backend_cuda INTERFACE CHIMERE_HAS_CUDA)
if(CHIMERE_FEW_FORMATS)
  target_compile_definitions(chimere_backend_cuda PUBLIC CHIMERE_FEW_FORMATS)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(hardly_optimised -Ofc=max)
  else()
    set(hardly_optimised -Xptxas=-O1)
  endif()
  target_compile_options(chimere_backend_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${hardly_optimised}>)
endif()
# constexpr functions of tensor/ serve kernels too. -Wextra would blame the code that nvcc writes between ours, and
# functions of host and device alike bring #pragma unroll to the host compiler.
target_compile_options(chimere_backend_cuda PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Werror=all-warnings
  -Xcompiler=-Wall,-Werror,-Wno-unknown-pragmas,-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
target_link_libraries(chimere_backend_cuda PUBLIC ${cuda_deps} CUDA::cudart_static Threads::Threads)
message(STATUS "CUDA backend: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${architectures}")
