// drawing.h  Draws tokens on the device: the requests' parameters go there, ids and requested statistics come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/kernels/rows/head_part.h"
#include "backend/cuda/kernels/sampling/sampling.h"
#include "backend/cuda/parcel.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"

namespace chimere::cuda {

// Everything that the launches of a draw depend on.
struct DrawShape {
  int n_rows = 0;  // 0: nothing is drawn
  SampleNeeds needs;

  explicit operator bool() const { return n_rows > 0; }
  bool operator==(const DrawShape&) const = default;
};

class Drawing {
 public:
  static constexpr int kMaxRows = 1024;  // of a parcel: a pass of 64 rows, or the chains of its drafts

  static Result<Drawing> create(Ledger& ledger, const Stream& stream, int n_vocab, std::span<const int32_t> suppressed);
  // What that takes of the card where there is little left: it draws from one row at a time.
  static uint64_t least_device_bytes(int n_vocab);

  // Writes the parameters of the draws into the parcel, which the caller sends. accept_into: for each draw a place on
  // the device where its token is written as well, or null; empty: for none.
  // REQUIRES: the device is done with the previous launch.
  Result<DrawShape> stage(std::span<const Draw* const> draws, std::span<int32_t* const> accept_into = {});
  const Parcel& parcel() const { return parcel_; }
  // Draws from each row of `logits` [n, n_vocab], as draws [first, first + n) of the parcel on the device say. May be
  // captured: it depends on the shape alone, as long as the parcel does not move.
  Status launch(const Stream& stream, const float* logits, const DrawShape& shape, int first, int n) const;
  // The same from rows of the logits of a part of the vocabulary, of draws that are greedy and nothing else.
  Status launch(const Stream& stream, const float* logits, const HeadPartView& part, int first, int n) const;
  // Polls so many times whether all tokens of the last launch are there, which is some microseconds before the stream
  // has finished it. Statistics may come later.
  bool looked_for(int n_looks) const;
  // What was drawn from row i of the last launch. REQUIRES: the stream has finished it, or its tokens are there and no
  // statistics were requested.
  Result<Sampled> drawn(int i) const;

 private:
  Drawing(Parcel parcel, int n_vocab) : n_vocab_(n_vocab), parcel_(std::move(parcel)) {}

  int n_vocab_;
  int n_suppressed_ = 0;
  int scratch_rows_ = 0;
  DeviceBuffer<int32_t> suppressed_;
  DeviceBuffer<uint64_t> suppressed_bits_;
  DeviceBuffer<std::byte> scratch_;
  Parcel parcel_;  // the rows of a launch, then the lists they point to
  // Pinned, written by the kernels: few bytes, which need no copy.
  PinnedBuffer<SampledRow> sampled_;
  PinnedBuffer<TokenLogprob> top_;
  uint32_t tag_ = 0;  // of what was staged last
  std::vector<uint64_t> positions_;
  std::vector<PackedSampleRow> packed_;
};

}  // namespace chimere::cuda
