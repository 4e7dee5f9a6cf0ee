#include "backend/cuda/support.h"
#include "backend_under_test.h"

namespace chimere::parity {

const BackendUnderTest& backend_under_test() {
  static const BackendUnderTest cuda{
      .compile = cuda::compile,
      .thread_counts = {1},
      .can_run = [](const Program& program) { return static_cast<bool>(cuda::check_supported(program)); },
      .fast_is_bounded = false,
      .is_emulated = true};
  return cuda;
}

}  // namespace chimere::parity
