// context.h  What an op of the CPU backend sees: the program, the batch, and the activation buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"

namespace chimere::cpu {

struct Context {
  const Program& program;
  const StateLayout& layout;
  const Batch& batch;
  const std::vector<float*>& buffers;  // [buffer][n_rows * width]

  float* buffer(BufferId id) const { return buffers[id]; }
  int64_t width(BufferId id) const { return program.buffers[id].width; }
  float* row(BufferId id, int64_t row) const { return buffers[id] + row * width(id); }
  const float* vector(VectorId id) const { return id == kNone ? nullptr : program.vectors[id].data(); }
};

}  // namespace chimere::cpu
