// lowering.h  A program as launches: its ops bound to a card, one after another over the rows of a pass.
//
// Constructed, it knows what it takes and how much working memory it needs, from shapes alone. With its memory, and the
// weights in place, allocate() binds the ops (ops/bound_op.h), and it can run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/ops/bound_op.h"
#include "backend/cuda/pass.h"
#include "backend/cuda/pass_shape.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/device.h"

namespace chimere::cuda {

class Lowering {
 public:
  // Everything it is given outlives it. decode_rows: of a pass, at most; kDecodeTokens to kMatvecRows.
  Lowering(const Program& program, const StateLayout& layout, const ProgramBinding& binding, const DeviceInfo& device,
           bool exact, int max_rows, int decode_rows);

  // What the kernels take at a time.
  PassLimits limits() const { return {context_.max_decode_rows, context_.max_prefill_slices}; }
  // Logit rows that are computed at a time: their logits are large beside everything else.
  int head_rows() const { return context_.max_decode_rows; }
  uint64_t working_bytes() const { return context_.memory.bytes; }

  // `host` has the experts of hosted mixtures; null when there are none. `imposed`: in place of routers, or null.
  Status allocate(Ledger& ledger, const Stream& stream, HostExperts* host, const ImposedChoices* imposed = nullptr);

  // All ops but the head.
  Status body(const Stream& stream, const PassShape& pass) const;
  // Of those, the launches of one family, which then work on what the ones before left behind.
  Status family(const Stream& stream, const PassShape& pass, Family family) const;
  // Logits and hidden vectors of logit rows [first, first + n), n <= head_rows().
  Status head(const Stream& stream, const PassShape& pass, int first, int n) const;
  // Hidden vectors of rows [first, first + n) of the pass, whatever its logit rows are, to `out` [n, d_model].
  Status row_hidden(const Stream& stream, const PassShape& pass, int first, int n, float* out) const;
  const float* logits() const { return context_.memory.logits; }        // [head_rows(), n_vocab]
  const float* hidden() const { return context_.memory.hidden; }        // [head_rows(), d_model]
  float* draft_hidden() const { return context_.memory.draft_hidden; }  // [max_rows, d_model], what a draft pass reads

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const;

 private:
  void place(std::byte* base);
  void bind();
  // The ops of the list that the pass runs.
  std::span<const BoundOpPtr> ops_of(const PassShape& pass) const;

  ScratchSizes sizes_;
  BindContext context_;
  DeviceBuffer<std::byte> memory_;
  std::vector<BoundOpPtr> ops_;  // as in the program
};

}  // namespace chimere::cuda
