// head_part.h  The rows of the output head that guesses are made of (Batch::head_blocks), copied side by side.
//
// The draft pass reads the head once a guess, and which part of it changes every few hundred tokens. The copy lies at
// one place and has one size while that is so: launches, and the graphs of them, stay valid when others are chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/kernels/rows/head_part.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/weights/weight.h"

namespace chimere::cuda {

class HeadPart {
 public:
  // Room for so many blocks of the matrix.
  static Result<HeadPart> create(Ledger& ledger, const Weight& matrix, int max_blocks);
  int max_blocks() const { return max_blocks_; }

  // What the launches behind this one read. Copies where others were chosen than last time.
  // REQUIRES: 1 <= blocks.size() <= max_blocks(), ascending and of the matrix; the stream is done with what it had been
  // given before.
  Result<HeadPartView> choose(const Stream& stream, std::span<const int32_t> blocks);
  // Of what was chosen last.
  std::span<const int32_t> blocks() const { return {host_blocks_.data(), static_cast<size_t>(view_.n_blocks)}; }

 private:
  HeadPart() = default;

  Weight matrix_;
  int max_blocks_ = 0;
  DeviceBuffer<uint8_t> rows_;
  DeviceBuffer<int32_t> device_blocks_;
  PinnedBuffer<int32_t> host_blocks_;
  HeadPartView view_;
};

}  // namespace chimere::cuda
