// bound_op.h  An op of a program bound to a card: the arguments of its kernels, put together once at load.
//
// ops/<op>.cpp holds all there is to an op on this backend: which kernels it takes in either class, the scratch they
// want, the launches, and the replay of a recurrence. A pass only adds its batch to arguments that are ready. A new op
// is such a file and its bind_op() below; Lowering does not compile without it.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cuda/kernels/dense/matvec.h"
#include "backend/cuda/kernels/prefill/prefill.h"
#include "backend/cuda/ops/family.h"
#include "backend/cuda/ops/working_memory.h"
#include "backend/cuda/pass_shape.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/runtime/device.h"

namespace chimere::cuda {

class ImposedChoices;

// What ops are bound to.
struct BindContext {
  const Program& program;
  const StateLayout& layout;
  const ProgramBinding& constants;
  const DeviceInfo device;
  const bool exact;
  const int max_rows;
  const int max_prefill_slices;
  int max_decode_rows;
  WorkingMemory memory;
  HostExperts* host = nullptr;  // the experts of hosted mixtures; null when there are none, or while memory is measured
  const ImposedChoices* imposed = nullptr;
  const ReplayLayout replay{layout};

  Weight weight(MatrixId id) const { return constants.weight_or_none(id); }
  const float* vector(VectorId id) const { return constants.vector(id); }
  float* buffer(BufferId id) const { return memory.buffers[id]; }
  int width(BufferId id) const { return program.buffers[id].width; }
  template <class Float>
  void bind_rows(BufferId id, Float*& rows, int64_t& stride) const {
    rows = buffer(id);
    stride = width(id);
  }

  // Rows of a buffer, under RMSNorm where there is a norm, as kernels of the two classes read them.
  InputRows decode_rows(BufferId x, VectorId norm = kNone, float eps = 0) const;
  PrefillInput prefill_rows(BufferId x, VectorId norm = kNone, float eps = 0) const;
  // Products of such rows, outputs to be added.
  MatvecArgs decode_product(const InputRows& in) const;
  PrefillProduct prefill_product(const PrefillInput& in) const;
};

// RMSNorm over each head of a row, or each group of columns, that whoever wrote the row leaves to the product that
// reads it (kernels/common/head_squares.h). The product's bits are the same either way.
struct LeftNorm {
  BufferId rows;
  const float* squares;
  int head_width;
  float eps;
};

class BoundOp {
 public:
  explicit BoundOp(Family family) : family_(family) {}
  virtual ~BoundOp() = default;
  BoundOp(const BoundOp&) = delete;

  // Rows of a decode pass that its kernels take at most.
  virtual int max_decode_rows() const { return kMatvecRows; }
  // Grows the sizes to what it needs for the largest passes.
  virtual void measure(const BindContext&, ScratchSizes& /*sizes*/) const {}

  // At load: leaves its norm in decode passes to the op behind it, where both sides can.
  virtual void leave_norm_to(BoundOp& /*next*/) {}
  virtual bool take_norm(const LeftNorm&) { return false; }

  virtual Status run(const Stream& stream, const PassShape& pass) const = 0;
  // Those of its launches that a profile counts with the family, on what earlier launches left behind.
  virtual Status run_family(const Stream& stream, const PassShape& pass, Family family) const {
    return family == family_ ? run(stream, pass) : Ok{};
  }
  // Its part in the results of logit rows [first, first + n).
  virtual Status run_head(const Stream&, const PassShape&, int /*first*/, int /*n*/) const { return Ok{}; }
  // Hidden vectors of rows [first, first + n) of the pass to `out`, whether logits of them are wanted or not.
  virtual Status run_row_hidden(const Stream&, int /*first*/, int /*n*/, float* /*out*/) const { return Ok{}; }
  // Advances its part of a recurrent state over recorded inputs, as decode passes did.
  virtual Status replay(const Stream&, float* /*recurrent*/, const float* /*recorded*/, int /*n_tokens*/) const {
    return Ok{};
  }

 private:
  const Family family_;
};

class RecurrentOp : public BoundOp {
 public:
  using BoundOp::BoundOp;
  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const override = 0;
};

using BoundOpPtr = std::unique_ptr<BoundOp>;
using RecurrentOpPtr = std::unique_ptr<RecurrentOp>;

// The op outlives what is bound.
BoundOpPtr bind_op(const BindContext& c, const op::Embed& o);
BoundOpPtr bind_op(const BindContext& c, const op::NormMatmul& o);
BoundOpPtr bind_op(const BindContext& c, const op::MatmulAdd& o);
RecurrentOpPtr bind_op(const BindContext& c, const op::GdnMix& o);
RecurrentOpPtr bind_op(const BindContext& c, const op::Mamba2Mix& o);
RecurrentOpPtr bind_op(const BindContext& c, const op::CausalConv& o);
RecurrentOpPtr bind_op(const BindContext& c, const op::SelectiveScan& o);
BoundOpPtr bind_op(const BindContext& c, const op::Attention& o);
BoundOpPtr bind_op(const BindContext& c, const op::DenseFfn& o);
BoundOpPtr bind_op(const BindContext& c, const op::MoeFfn& o);
BoundOpPtr bind_op(const BindContext& c, const op::LmHead& o);
BoundOpPtr bind_op(const BindContext& c, const op::LayerNorm& o);
BoundOpPtr bind_op(const BindContext& c, const op::Gelu& o);
BoundOpPtr bind_op(const BindContext& c, const op::HiddenOut& o);
BoundOpPtr bind_op(const BindContext& c, const op::DraftInput& o);

}  // namespace chimere::cuda
