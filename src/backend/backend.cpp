#include "backend/backend.h"

#include <algorithm>

namespace chimere {

int default_max_rows(const Program& program) {
  constexpr int kFewest = 128, kMost = 512;
  int slice = 256;
  for (const Op& op : program.ops) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) {
      slice = (16 * moe->n_experts / moe->n_used + kChunkTokens - 1) / kChunkTokens * kChunkTokens;
    }
  }
  return std::clamp(slice, kFewest, kMost) + kDecodeTokens;
}

}  // namespace chimere
