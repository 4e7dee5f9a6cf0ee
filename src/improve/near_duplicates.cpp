#include "improve/near_duplicates.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "base/hash.h"

namespace chimere::improve {
namespace {

constexpr size_t kRunWords = 3;

std::vector<uint64_t> words_of(std::string_view text) {
  std::vector<uint64_t> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(hash64(word));
    word.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte)) {
      word += static_cast<char>(std::tolower(byte));
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

}  // namespace

TextSketch sketch_of(std::string_view text) {
  TextSketch sketch;
  sketch.fill(std::numeric_limits<uint32_t>::max());
  const std::vector<uint64_t> words = words_of(text);
  const size_t n_runs = words.size() < kRunWords ? 1 : words.size() - kRunWords + 1;
  for (size_t i = 0; i < n_runs; ++i) {
    uint64_t run = words.size();
    if (words.size() >= kRunWords) run = 0;
    for (size_t j = i; j < std::min(i + kRunWords, words.size()); ++j) run = hash_mix(run * 31 + words[j]);
    for (size_t h = 0; h < kMinHashes; ++h) {
      sketch[h] = std::min(sketch[h], static_cast<uint32_t>(hash_mix(run + h * 0x9e3779b97f4a7c15ULL) >> 32));
    }
  }
  return sketch;
}

double likeness(const TextSketch& a, const TextSketch& b) {
  size_t same = 0;
  for (size_t h = 0; h < kMinHashes; ++h) same += a[h] == b[h];
  return static_cast<double>(same) / kMinHashes;
}

bool NearDuplicates::add(std::string_view text) {
  const TextSketch sketch = sketch_of(text);
  for (const TextSketch& other : kept_) {
    if (likeness(sketch, other) >= kNearEnough) return false;
  }
  kept_.push_back(sketch);
  return true;
}

}  // namespace chimere::improve
