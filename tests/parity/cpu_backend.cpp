#include "backend_under_test.h"

namespace chimere::parity {

const BackendUnderTest& backend_under_test() {
  static const BackendUnderTest cpu{.compile = cpu::compile,
                                    .thread_counts = {1, 3},
                                    .can_run = [](const Program&) { return true; },
                                    .fast_is_bounded = true,
                                    .is_emulated = false};
  return cpu;
}

}  // namespace chimere::parity
