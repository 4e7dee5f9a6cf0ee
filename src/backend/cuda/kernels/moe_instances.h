// moe_instances.h  The pairs of formats, routed and shared experts, with kernels of their own.
#pragma once

#include "backend/cuda/kernels/compiled_formats.h"
#include "backend/cuda/kernels/moe_one_down.h"
#include "backend/cuda/kernels/moe_one_up.h"
#include "backend/cuda/kernels/moe_ring_up.h"

namespace chimere::cuda {

using MoeLaunch = Status (*)(const Stream&, const MoePlan&);

struct MoeKernels {
  DType routed = DType::F32;
  DType shared = DType::F32;  // F32: any other
  MoeLaunch up = nullptr;
  MoeLaunch down = nullptr;
  // Of one row, where takes_one_row() says so. Not where kernels of any type serve several rows: the bits would differ.
  MoeLaunch one_up = nullptr;
  MoeLaunch one_down = nullptr;
  bool (*up_fits)(const MoePlan&) = nullptr;
  bool (*down_fits)(const MoePlan&) = nullptr;
};

template <class F, class S>
constexpr MoeKernels moe_kernels() {
  if constexpr (has_own_kernels(F::kType) && (S::kType == DType::F32 || has_own_kernels(S::kType))) {
    return {F::kType,
            S::kType,
            launch_moe_up<F, S>,
            launch_moe_down<F, S>,
            launch_one_up<F, S>,
            launch_one_down<F, S>,
            ring_up_fits<F, S>,
            ring_down_fits<F, S>};
  } else {
    return {};
  }
}

// Each file of instances has a list; nullptr when there is none for the pair.
const MoeKernels* moe_kernels_k(DType routed, DType shared);
const MoeKernels* moe_kernels_legacy(DType routed, DType shared);
const MoeKernels* moe_kernels_iq(DType routed, DType shared);
const MoeKernels* moe_kernels_fallback(DType routed, DType shared);

// The pair itself, or the routed format with a shared expert of any kind.
template <size_t kCount>
const MoeKernels* find_moe_kernels(const MoeKernels (&list)[kCount], DType routed, DType shared) {
  const MoeKernels* found = nullptr;
  for (const MoeKernels& k : list) {
    if (!k.up) continue;  // not compiled: compiled_formats.h
    if (k.routed == routed && k.shared == shared) return &k;
    if (k.routed == routed && k.shared == DType::F32) found = &k;
  }
  return found;
}

}  // namespace chimere::cuda
