// pass.h  A batch cut into passes of one class each, and a pass staged on the device.
//
// Decode-class and prefill-class rows go through different kernels, so that a decode row's bits do not depend on its
// company; weights are read once for each class anyway. Slices are independent of one another, so a batch is run as
// passes: its decode slices, at most kMatvecRows rows at a time, then its prefill slices, as many as kernels take. A
// pass of decode slices beside a prompt is then the same work as a pass alone, and the same graph. Prompts with
// adapters take other kernels than those without (ops/dense_ffn.cpp), and passes of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/batch_view.h"
#include "backend/cuda/parcel.h"
#include "backend/cuda/runtime/ledger.h"
#include "base/result.h"

namespace chimere::cuda {

struct Pass {
  bool is_decode = true;
  bool is_adapted = false;       // some row has adapters
  std::vector<int32_t> slices;   // into Batch::slices
  std::vector<int32_t> outputs;  // into Batch::logit_rows
  int n_rows = 0;
  int max_tokens = 0;  // of a slice
  int max_kv = 0;      // positions that a row sees, one of a chain of drafts included
};

struct PassLimits {
  int decode_rows;  // at least kDecodeTokens
  int prefill_slices;
};

std::vector<Pass> split_batch(const Batch& batch, const PassLimits& limits);

// A pass's arrays in pinned memory and on the device, and those of the passes that a chain of drafts adds to it. Where
// they lie is a function of the numbers of rows, slices and logit rows alone, as long as the parcel does not move.
class BatchStaging {
 public:
  // kv_pages: whether the model has pages at all.
  static Result<BatchStaging> create(Ledger& ledger, int max_rows, bool kv_pages);
  // What that takes of the card.
  static uint64_t device_bytes(int max_rows);

  // Writes the arrays into the parcel, which is the caller's to send. REQUIRES: the device is done with the pass
  // before.
  Result<BatchView> stage(const Batch& batch, const Pass& pass);
  // Of what was staged last, the passes behind the first one, if drafts are chained: one row for each slice whose chain
  // is as long. Their tokens are what was drawn in the pass before, and are written on the device.
  std::span<const BatchView> chain() const { return chain_; }
  const Parcel& parcel() const { return parcel_; }

 private:
  BatchStaging(Parcel parcel, bool kv_pages) : parcel_(std::move(parcel)), kv_pages_(kv_pages) {}

  Parcel parcel_;
  bool kv_pages_;
  std::vector<BatchView> chain_;
};

}  // namespace chimere::cuda
