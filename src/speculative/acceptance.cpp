#include "speculative/acceptance.h"

#include <algorithm>
#include <cmath>

namespace chimere::speculative {
namespace {

// Before anything was tried.
constexpr std::array<float, kKinds> kUsual{
    0.98f,                                                       // forced
    0.25f, 0.4f,  0.5f, 0.55f, 0.65f, 0.75f, 0.8f, 0.85f, 0.9f,  // repeats by length
    0.4f,  0.5f,  0.6f, 0.8f,                                    // a request's own source
    0.7f,  0.65f, 0.6f, 0.55f, 0.5f,  0.45f, 0.4f, 0.4f,         // the draft pass by depth
    0.2f,  0.3f,  0.4f, 0.5f,  0.55f, 0.6f,  0.7f,               // Engram tables by length
    0.7f,  0.7f,  0.7f, 0.65f, 0.65f, 0.65f, 0.6f, 0.6f,         // a draft model by depth
    0.7f,  0.65f, 0.6f, 0.55f, 0.5f,  0.5f,  0.5f, 0.5f,  0.5f,  // DFlash by slot
    0.5f,  0.5f,  0.5f, 0.5f,  0.5f,  0.5f};
// So many tries of one's own weigh as much as what is known beyond them.
constexpr float kOthersTries = 4;

}  // namespace

void Acceptance::learn(Kind kind, bool was_taken) {
  Count& count = counts_[kind];
  count.tried += 1;
  count.taken += was_taken ? 1.0f : 0.0f;
  if (count.tried <= static_cast<float>(memory_)) return;
  count.tried /= 2;
  count.taken /= 2;
}

float Acceptance::chance(Kind kind) const {
  const Count& own = counts_[kind];
  const float others = wider_ ? wider_->chance(kind) : kUsual[kind];
  return (own.taken + kOthersTries * others) / (own.tried + kOthersTries);
}

float Acceptance::cautious_chance(Kind kind) const {
  const float mean = chance(kind);
  if (kind == kForced) return mean;  // a few that were not prove nothing
  float tried = kOthersTries;
  for (const Acceptance* a = this; a; a = a->wider_) tried += a->counts_[kind].tried;
  return std::max(0.0f, mean - std::sqrt(mean * (1 - mean) / tried));
}

}  // namespace chimere::speculative
