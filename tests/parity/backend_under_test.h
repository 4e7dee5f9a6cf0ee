// backend_under_test.h  The backend that a test program runs the table and the contracts on.
//
// The sources of this folder are compiled once. models_test adds cpu_backend.cpp to them, cuda_models_test
// cuda_backend.cpp; the reference backend is the oracle of both.
#pragma once

#include <vector>

#include "models/runs_for_test.h"

namespace chimere::parity {

struct BackendUnderTest {
  CompileFunction compile;
  std::vector<int> thread_counts;   // none of which may change a bit
  bool (*can_run)(const Program&);  // false: it must be refused at load
  // Fast mode rounds nothing but the inputs of quantised products, to 8 bits, so that the bounds of approx.h hold.
  bool fast_is_bounded;
  // Kernels run in an emulator, a thousand times slower than they are: texts are short then.
  bool is_emulated;
};

const BackendUnderTest& backend_under_test();

// The oracle too, for what is known without it: once, beside the backend that is quick.
inline std::vector<CompileFunction> backend_and_oracle() {
  const BackendUnderTest& backend = backend_under_test();
  if (backend.is_emulated) return {backend.compile};
  return {backend.compile, reference::compile};
}

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace chimere::parity
