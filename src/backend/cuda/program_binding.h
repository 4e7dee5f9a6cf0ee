// program_binding.h  The constants of a program on the device: matrices in the kernels' format, vectors, frequencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/weights/pack.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

class ProgramBinding {
 public:
  // Lays everything out at a made-up base address: enough to measure working memory with. The first n_hosted MoE layers
  // keep their routed experts elsewhere: those matrices have a shape and no data.
  explicit ProgramBinding(const Program& program, int n_hosted = 0, PackForm form = PackForm::compact);

  // Allocates the memory and fills it.
  Status upload(const Program& program, Ledger& ledger, const LoadOptions& options);

  const Weight& weight(MatrixId id) const { return weights_[id]; }
  // An empty one for kNone.
  Weight weight_or_none(MatrixId id) const { return id == kNone ? Weight{} : weights_[id]; }
  // The index of the layer among those kept elsewhere, or kNone.
  int hosted(const op::MoeFfn& mixture) const { return hosted_[mixture.up]; }
  const float* vector(VectorId id) const { return id == kNone ? nullptr : vectors_[id]; }
  const float* frequencies(RopeId id) const { return id == kNone ? nullptr : frequencies_[id]; }

  uint64_t size_bytes() const { return bytes_; }
  PackForm form() const { return form_; }

 private:
  void place(const Program& program, std::byte* base);

  PackForm form_;
  uint64_t bytes_ = 0;
  std::vector<int> hosted_;  // by MatrixId
  std::byte* grids_ = nullptr;
  std::vector<Weight> weights_;
  std::vector<const float*> vectors_, frequencies_;
  DeviceBuffer<std::byte> memory_;
};

}  // namespace chimere::cuda
