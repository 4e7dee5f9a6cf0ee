// hidden.h  The activation between up- and down-projection of a feed-forward (op::Activation), on the device.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/ops.h"

namespace chimere::cuda {

// relu2 has no gate: `gate` is not looked at.
__device__ __forceinline__ float activated(op::Activation activation, float gate, float up) {
  if (activation == op::Activation::swiglu) return gate / (1.0f + expf(-gate)) * up;
  if (activation == op::Activation::relu2) {
    const float positive = fmaxf(up, 0.0f);
    return positive * positive;
  }
  const float g = fminf(gate, 7.0f), u = fminf(fmaxf(up, -7.0f), 7.0f);
  return g / (1.0f + expf(-1.702f * g)) * (u + 1.0f);
}

}  // namespace chimere::cuda
