// reference.h  The oracle: every op as its formula says, scalar, sums in double. Never optimised.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace chimere::reference {

struct Context {
  const Program& program;
  const StateLayout& layout;
  const Batch& batch;
  std::vector<std::vector<float>>& buffers;
  Outputs outputs;

  float* row(BufferId id, int64_t row) const { return buffers[id].data() + row * program.buffers[id].width; }
  const float* vector(VectorId id) const { return id == kNone ? nullptr : program.vectors[id].data(); }
  const TensorView& matrix(MatrixId id) const { return program.matrices[id]; }
};

// y[n, out] = W x[n, in] + bias for expert `expert` of a stack; rows of x and y are `in` and `out` apart.
void matmul(const TensorView& w, uint64_t expert, const float* x, int64_t n, const float* bias, float* y);
void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y);
// y[t] += scale B (A x[t]) for `n` tokens from row `first` of the batch, by what their slices name for this matrix.
void add_adapters(const Context& c, MatrixId matrix, int first, int64_t n, const float* x, float* y);
double sigmoid(double x);
double silu(double x);

void run(const Context& c, const op::Embed& op);
void run(const Context& c, const op::NormMatmul& op);
void run(const Context& c, const op::MatmulAdd& op);
void run(const Context& c, const op::GdnMix& op);
void run(const Context& c, const op::Mamba2Mix& op);
void run(const Context& c, const op::CausalConv& op);
void run(const Context& c, const op::SelectiveScan& op);
void run(const Context& c, const op::Attention& op);
void run(const Context& c, const op::DenseFfn& op);
void run(const Context& c, const op::MoeFfn& op);
void run(const Context& c, const op::LmHead& op);
void run(const Context& c, const op::LayerNorm& op);
void run(const Context& c, const op::Gelu& op);
void run(const Context& c, const op::HiddenOut& op);
void run(const Context& c, const op::DraftInput& op);

// One token of a recurrent op from its record: advances the conv window and the state as run() did.
void replay(const Context& c, const op::GdnMix& op, float* recurrent, const float* record);
void replay(const Context& c, const op::Mamba2Mix& op, float* recurrent, const float* record);
void replay(const Context& c, const op::CausalConv& op, float* recurrent, const float* record);
void replay(const Context& c, const op::SelectiveScan& op, float* recurrent, const float* record);

}  // namespace chimere::reference
