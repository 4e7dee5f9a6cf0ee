#include "sampling/memory_source.h"

#include <cmath>

namespace chimere {

double mixed_logprob(double logprob, int32_t token, std::span<const MemoryEntry> entries) {
  double total = 0, own = 0;
  for (const MemoryEntry& entry : entries) {
    const double share = static_cast<double>(entry.probability) * static_cast<double>(entry.weight);
    total += share;
    if (entry.id == token) own += share;
  }
  if (total <= 0) return logprob;
  const double shrink = total > kMaxMemoryShare ? kMaxMemoryShare / total : 1.0;
  return std::log((1 - total * shrink) * std::exp(logprob) + own * shrink);
}

}  // namespace chimere
