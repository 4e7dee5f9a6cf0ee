// near_duplicates.h  Texts that say the same in nearly the same words count once.
//
// A text is the set of its runs of three words, without case and punctuation; 128 smallest hashes stand for it (MinHash).
// Two texts are near when at least 0.7 of their runs are the same, by that estimate.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chimere::improve {

inline constexpr size_t kMinHashes = 128;
inline constexpr double kNearEnough = 0.7;
using TextSketch = std::array<uint32_t, kMinHashes>;

TextSketch sketch_of(std::string_view text);
// The part of the runs of words that two texts share, estimated.
double likeness(const TextSketch& a, const TextSketch& b);

class NearDuplicates {
 public:
  // False where a text near this one was added before; then it is not added.
  bool add(std::string_view text);

 private:
  std::vector<TextSketch> kept_;
};

}  // namespace chimere::improve
