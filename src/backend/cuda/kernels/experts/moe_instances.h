// moe_instances.h  The expert kernels for the pairs of formats, of routed experts and the shared one, that have them.
#pragma once

#include "backend/cuda/kernels/experts/experts_choice.h"
#include "backend/cuda/runtime/stream.h"

namespace chimere::cuda {

struct MoeKernels {
  Status (*ring_up)(const Stream&, const MoePlan&, int elements, bool near) = nullptr;
  Status (*ring_down)(const Stream&, const MoePlan&) = nullptr;
  Status (*one_up)(const Stream&, const MoePlan&) = nullptr;
  Status (*one_down)(const Stream&, const MoePlan&) = nullptr;
  Status (*few_up)(const Stream&, const MoePlan&) = nullptr;
  Status (*few_down)(const Stream&, const MoePlan&) = nullptr;
};

// Of the routed formats of one part of moe_instances.cu; null for all others. `shared` is one of the table's row, or
// F32.
template <int kPart>
const MoeKernels* find_experts(DType routed, DType shared);

}  // namespace chimere::cuda
