// arc4random.cpp  For the program that ./package ships (CHIMERE_STATIC): glibc has this function since 2.36, and the
// static libstdc++ and libedit's helpers of the machine that builds it call it where it is. With our own the program
// runs on glibc 2.35, too.
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {

// From the kernel; a machine that has no random bytes is one on which nothing must go on.
void arc4random_buf(void* out, size_t n) {
  auto* at = static_cast<unsigned char*>(out);
  while (n > 0) {
    const ssize_t got = getrandom(at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) std::abort();
    at += got;
    n -= static_cast<size_t>(got);
  }
}

uint32_t arc4random() {
  uint32_t value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}

}  // extern "C"
