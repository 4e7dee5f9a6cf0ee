#include "backend/cuda/ops/working_memory.h"

#include "backend/cuda/runtime/buffer.h"

namespace chimere::cuda {

WorkingMemory::WorkingMemory(const Program& program, const ScratchSizes& sizes, int max_rows, int head_rows,
                             std::byte* base) {
  const auto begin = reinterpret_cast<uintptr_t>(base);
  uintptr_t at = begin;
  const auto take = [&at](uint64_t n_bytes) {
    const auto piece = reinterpret_cast<std::byte*>(n_bytes > 0 ? at : 0);
    at += DeviceArena::padded(n_bytes);
    return piece;
  };
  const auto floats = [&take](uint64_t width, int n_rows) {
    return reinterpret_cast<float*>(take(sizeof(float) * width * static_cast<uint64_t>(n_rows)));
  };
  for (const Buffer& b : program.buffers) buffers.push_back(floats(static_cast<uint64_t>(b.width), max_rows));
  prefill = {take(sizes.prefill), sizes.prefill};
  records = reinterpret_cast<uint8_t*>(take(sizes.records));
  ffn_gate = reinterpret_cast<float*>(take(sizes.ffn_hidden));
  ffn_up = reinterpret_cast<float*>(take(sizes.ffn_hidden));
  moe = reinterpret_cast<uint8_t*>(take(sizes.moe));
  attention = reinterpret_cast<float*>(take(sizes.attention));
  recurrent = reinterpret_cast<float*>(take(sizes.recurrent));
  arrivals = reinterpret_cast<int32_t*>(take(sizes.arrivals));
  logits = floats(program.has_logits() ? static_cast<uint64_t>(program.n_vocab) : 0, head_rows);
  hidden = floats(static_cast<uint64_t>(program.d_model), head_rows);
  draft_hidden = floats(program.has_drafts() ? static_cast<uint64_t>(program.d_model) : 0, max_rows);
  bytes = at - begin;
}

}  // namespace chimere::cuda
