# Warnings, sanitizers and the compiler cache, the same for every target.

# Debian has GoogleTest's sources beside its archives: for another machine they are compiled, before our warnings count.
if(CHIMERE_TESTS AND CMAKE_CROSSCOMPILING AND EXISTS /usr/src/googletest/CMakeLists.txt)
  set(INSTALL_GTEST OFF)
  set(BUILD_GMOCK OFF)
  add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # The base directory makes two checkouts of the same sources share their cache entries.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# nvcc has options of its own: cuda.cmake.
set(cxx_options -Wall -Wextra -Werror -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cxx_options -Wno-restrict)  # g++ 12 warns falsely on "x" + std::string(...)
endif()
# Contracting a*b+c behind our back would make a row's bits depend on how the compiler vectorised the loop around it.
list(APPEND cxx_options -ffp-contract=off)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${cxx_options}>")

if(CHIMERE_SANITIZE)
  add_compile_options(-fsanitize=${CHIMERE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CHIMERE_SANITIZE})
  if(CHIMERE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      add_compile_options(-fno-sanitize=function)  # clang 14 can not emit it for coroutines
    endif()
  endif()
endif()

# Sanitized builds are not optimised: a clang that optimises what it instruments takes two to three times as long, and
# most suites do not notice. Those that do (arithmetic, and what reads long texts) ask for it here.
function(chimere_optimise_sanitized target)
  if(CHIMERE_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
# Tests run their own code once; what they test is in libraries, which are built as users get them.
function(chimere_test_program target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

find_package(Threads REQUIRED)
if(CHIMERE_TESTS)
  if(NOT TARGET GTest::gtest)
    find_package(GTest)
  endif()
  if(TARGET GTest::gtest)
    enable_testing()
  else()
    message(STATUS "GoogleTest is not there: the program is built, its tests are not")
    set(CHIMERE_TESTS OFF)
  endif()
endif()
