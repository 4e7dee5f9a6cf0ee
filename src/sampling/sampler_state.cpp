// sampler_state.cpp  The one operation of SamplerState that can be misused.
#include "sampling/sampler_state.h"

#include "base/check.h"

namespace chimere {

void SamplerState::rollback(std::size_t n) {
  CHECK(n <= n_generated());
  tokens_.resize(tokens_.size() - n);
}

}  // namespace chimere
