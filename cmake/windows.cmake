# For Windows, on another machine: Debian's mingw-w64 with POSIX threads, and Wine, which runs tests and the program itself.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR env WINEDEBUG=-all /usr/lib/wine/wine64)

# Headers and libraries come from there alone, programs of the build from the machine that builds.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Windows aligns the stack to 16 bytes, and g++ moves vectors of 32 and 64 bytes there as if it were aligned to their size,
# which ends the program where it is not. Debian's g++ writes moves that do not ask for it; here the assembler makes them of
# all others. Where the address is aligned after all they are as fast on every processor with AVX2.
set(CMAKE_C_FLAGS_INIT -Wa,-muse-unaligned-vector-move)
set(CMAKE_CXX_FLAGS_INIT -Wa,-muse-unaligned-vector-move)
# Windows 10, whose processes can have UTF-8 as their code page.
add_compile_definitions(_WIN32_WINNT=0x0A00)
# One file that needs no library beside it; base/platform/windows/utf8.cpp in every program.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--undefined=mbrtowc")
