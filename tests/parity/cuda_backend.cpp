#include <malloc.h>

#include <climits>

#include "backend/cuda/support.h"
#include "backend_under_test.h"

namespace chimere::parity {
namespace {

// The emulator fills the memory of a card with NaNs when it is taken, for each executable slabs of 32 MiB. Kept by the
// process, it need not come from the system page by page every time.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

}  // namespace

const BackendUnderTest& backend_under_test() {
  static const BackendUnderTest cuda = [] {
    keep_freed_memory();
    return BackendUnderTest{
        .compile = cuda::compile,
        .thread_counts = {1},
        .can_run = [](const Program& program) { return static_cast<bool>(cuda::check_supported(program)); },
        .fast_is_bounded = false,
        .is_emulated = true};
  }();
  return cuda;
}

}  // namespace chimere::parity
