// drawing.h  Tokens drawn on the device: what requests ask for goes up, ids and asked-for figures come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/kernels/sampling.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"

namespace chimere::cuda {

class Drawing {
 public:
  static constexpr int kMaxRows = 64;  // of a launch()

  static Result<Drawing> create(Ledger& ledger, const Stream& stream, int n_vocab, std::span<const int32_t> suppressed);

  // Draws from each row of `logits` [draws.size(), n_vocab] and starts the copy of the results.
  // REQUIRES: the stream is done with the launch before.
  Status launch(const Stream& stream, const float* logits, std::span<const Draw* const> draws);
  // What was drawn from row i of the launch before. REQUIRES: the stream is done with it.
  Result<Sampled> drawn(int i) const;

 private:
  Drawing(Ledger& ledger, int n_vocab) : ledger_(&ledger), n_vocab_(n_vocab) {}
  Status reserve(size_t bytes);

  Ledger* ledger_;
  int n_vocab_;
  int n_suppressed_ = 0;
  int scratch_rows_ = 0;
  DeviceBuffer<int32_t> suppressed_;
  DeviceBuffer<uint64_t> suppressed_bits_;
  DeviceBuffer<std::byte> scratch_;
  // The rows of a launch, then the lists they point to.
  PinnedBuffer<std::byte> host_rows_;
  DeviceBuffer<std::byte> device_rows_;
  PinnedBuffer<SampledRow> host_sampled_;
  DeviceBuffer<SampledRow> device_sampled_;
  PinnedBuffer<TokenLogprob> host_top_;
  DeviceBuffer<TokenLogprob> device_top_;
  std::vector<uint64_t> positions_;
  std::vector<PackedSampleRow> packed_;
};

}  // namespace chimere::cuda
