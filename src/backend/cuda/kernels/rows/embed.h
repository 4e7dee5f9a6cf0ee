// embed.h  Rows of the embedding: the first work on a batch.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

// out[i] = scale table[tokens[i]] as floats
struct EmbedArgs {
  Weight table;
  const int32_t* tokens;  // [n_rows], device, or pinned when `ahead`
  int n_rows;
  float* out;  // [n_rows, table.width], 16-byte aligned
  float scale = 1;
  // Neither the tokens nor whoever used `out` last depend on the kernel before, which may still run; nor may the kernel
  // after look at what that one writes before its wait.
  bool ahead = false;
};
Status embed_rows(const Stream& stream, const EmbedArgs& args);

}  // namespace chimere::cuda
