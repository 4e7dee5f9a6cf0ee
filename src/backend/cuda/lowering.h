// lowering.h  The ops of a program as launches over one pass, and the working memory they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/adapters.h"
#include "backend/cuda/batch_view.h"
#include "backend/cuda/host_experts.h"
#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/gdn.h"
#include "backend/cuda/kernels/mamba1.h"
#include "backend/cuda/kernels/mamba2.h"
#include "backend/cuda/kernels/matvec.h"
#include "backend/cuda/kernels/moe.h"
#include "backend/cuda/kernels/prefill.h"
#include "backend/cuda/pass.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/device.h"

namespace chimere::cuda {

// All that the launches of a pass depend on. Positions, pages and tokens are read on the device.
struct PassShape {
  bool is_decode = true;
  bool logits = false;  // what is wanted of the logit rows
  bool hidden = false;
  int max_tokens = 0;    // of a slice
  int kv_bound = 0;      // of the positions that a row sees
  BatchView batch = {};  // its pointers and numbers
  // Its tokens where the host wrote them: body() then begins beside the kernel that fetches the batch, and needs
  // nothing of what the stream was given before that one. Null when they are to be read on the device.
  const int32_t* pinned_tokens = nullptr;
  PassAdapters adapters;

  bool operator==(const PassShape& other) const;
};

// Launches that a profile counts together.
enum class Family {
  embed,
  projections,
  delta_rule,
  state_space,
  attention,
  residual_products,
  layer_norms,
  ffn,
  router,
  experts_up,
  experts_down
};
inline constexpr Family kFamilies[] = {Family::embed,       Family::projections, Family::delta_rule,
                                       Family::state_space, Family::attention,   Family::residual_products,
                                       Family::layer_norms, Family::ffn,         Family::router,
                                       Family::experts_up,  Family::experts_down};
const char* family_name(Family family);

class Lowering {
 public:
  // Everything it is given outlives it. decode_rows: of a pass, at most; kDecodeTokens to kMatvecRows.
  Lowering(const Program& program, const StateLayout& layout, const ProgramBinding& binding, const DeviceInfo& device,
           bool exact, int max_rows, int decode_rows);

  // What the kernels take at a time.
  PassLimits limits() const { return {max_decode_rows_, max_prefill_slices_}; }
  // Logit rows that are computed at a time: their logits are large beside everything else.
  int head_rows() const { return max_decode_rows_; }
  uint64_t working_bytes() const;

  // `host` has the experts of hosted mixtures; null when there are none.
  Status allocate(Ledger& ledger, const Stream& stream, HostExperts* host);

  // All ops but the head.
  Status body(const Stream& stream, const PassShape& pass) const;
  // Of those, the launches of one family, which then work on what the ones before left behind.
  Status family(const Stream& stream, const PassShape& pass, Family family) const;
  // Logits and hidden vectors of logit rows [first, first + n), n <= head_rows().
  Status head(const Stream& stream, const PassShape& pass, int first, int n) const;
  const float* logits() const { return logits_; }  // [head_rows(), n_vocab]
  const float* hidden() const { return hidden_; }  // [head_rows(), d_model]

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const;

 private:
  // What the ops share of working memory, in bytes. They run one after another.
  struct Sizes {
    uint64_t prefill = 0;     // of the prefill class
    uint64_t records = 0;     // rows quantised for matvec
    uint64_t ffn_hidden = 0;  // gate and up of decode rows, each
    uint64_t moe = 0;         // keeps counters that are zero between launches
    uint64_t attention = 0;
    uint64_t recurrent = 0;
    uint64_t arrivals = 0;  // zero between launches
  };

  Sizes measure() const;
  // Of a row of logits; an encoder has none.
  uint64_t n_logits() const { return program_.has_logits() ? static_cast<uint64_t>(program_.n_vocab) : 0; }
  const Buffer& shape_of(BufferId id) const { return program_.buffers[id]; }

  PrefillInput prefill_input(BufferId x, VectorId norm, float eps, int n_rows) const;
  InputRows decode_input(BufferId x, VectorId norm, float eps) const;
  MatvecArgs matvec_args(const InputRows& in, int n_rows, bool dependent) const;
  MoeArgs moe_args(const op::MoeFfn& o, int n_rows) const;
  PrefillMoe prefill_moe_args(const op::MoeFfn& o, int n_rows) const;
  PrefillFfn prefill_ffn_args(const op::DenseFfn& o, int n_rows) const;
  AttentionArgs attention_args(const op::Attention& o) const;
  GdnArgs gdn_args(const op::GdnMix& o) const;
  // A recurrence whose output the op after it multiplies, and whose kernels can leave 1 / rms of each head, or each
  // group of columns, to that product (head_squares.h).
  struct MixedProduct {
    int recurrent_layer;
    const op::MatmulAdd* product;
    int head_width;
    float eps;
  };
  // Whether they do. The product's bits are the same either way.
  bool leaves_norm(const PassShape& pass, const MixedProduct& p) const;
  bool leaves_norm(const PassShape& pass, int recurrent_layer) const;
  Mamba2Args mamba2_args(const op::Mamba2Mix& o) const;
  CausalConvArgs conv_args(const op::CausalConv& o) const;
  SelectiveScanArgs scan_args(const op::SelectiveScan& o) const;
  RouterStyle router_style(const op::MoeFfn& o) const;
  bool decode_kernels_take(const op::MoeFfn& o) const;
  bool is_hosted(const op::MoeFfn& o) const { return binding_.hosted(o) != kNone; }
  Status hosted_moe(const Stream& stream, const PassShape& pass, const op::MoeFfn& o) const;

  Status run(const Stream& stream, const PassShape& pass, const op::Embed& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::NormMatmul& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::MatmulAdd& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::GdnMix& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::Mamba2Mix& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::CausalConv& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::SelectiveScan& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::Attention& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::DenseFfn& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::MoeFfn& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::LayerNorm& o) const;
  Status run(const Stream& stream, const PassShape& pass, const op::Gelu& o) const;
  Status run(const Stream&, const PassShape&, const op::LmHead&) const { return Ok{}; }     // head()
  Status run(const Stream&, const PassShape&, const op::HiddenOut&) const { return Ok{}; }  // head()

  // What adapters add to products of the same rows, those that they change.
  struct Adapted {
    MatrixId matrix;
    float* out;
    int pitch;
    float factor = 1;
  };
  Status add_adapters_of(const Stream& stream, const PassShape& pass, const InputRows& in, int first_row, int n_rows,
                         const std::vector<Adapted>& products) const;
  Status adapted_prefill_ffn(const Stream& stream, const PassShape& pass, const op::DenseFfn& o) const;

  // Kernels may start under the end of the one before where the card can do it.
  bool dependent(const PassShape& pass) const { return pass.is_decode && device_.dependent_launch(); }

  const Program& program_;
  const StateLayout& layout_;
  const ProgramBinding& binding_;
  const ReplayLayout replay_;
  const DeviceInfo device_;
  const bool exact_;
  const int max_rows_;
  const int max_prefill_slices_;
  int max_decode_rows_;

  std::vector<MixedProduct> mixed_products_;

  HostExperts* host_ = nullptr;
  DeviceArena arena_;
  std::vector<float*> buffers_;
  PrefillScratch prefill_;
  uint8_t* records_ = nullptr;
  float *ffn_gate_ = nullptr, *ffn_up_ = nullptr;
  uint8_t* moe_ = nullptr;
  float* attention_ = nullptr;
  float* recurrent_ = nullptr;
  int32_t* arrivals_ = nullptr;
  float *logits_ = nullptr, *hidden_ = nullptr;
};

}  // namespace chimere::cuda
