# For arm64 Linux, on another machine: Debian's cross compiler, and an emulator that runs tests and the program itself.
# QEMU_CPU=cortex-a72 in the environment chooses a processor without dot products, cortex-a76 one without I8MM.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

# Headers and libraries come from there alone, programs of the build from the machine that builds.
# With CHIMERE_STATIC (scripts/static_libraries.sh FOLDER arm64) that folder has those beyond the compiler's own.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CHIMERE_STATIC)
if(CHIMERE_STATIC)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${CHIMERE_STATIC})
  foreach(place include usr/include usr/include/aarch64-linux-gnu)
    string(APPEND CMAKE_C_FLAGS_INIT " -isystem ${CHIMERE_STATIC}/${place}")
    string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${CHIMERE_STATIC}/${place}")
  endforeach()
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
