// text_ngrams.h  The n-grams of texts that grow: what a user taught, in memory.
//
// The texts themselves are the index. For each place the one before it whose last two tokens fall into the same bucket
// is known, so a lookup walks from the newest such place to older ones and compares tokens. A text more costs a step a
// token and nothing is written anew; 16 bytes a token hold all orders, where a table takes some hundred.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engram/ngram_source.h"

namespace chimere::engram {

class TextNgrams : public NgramSource {
 public:
  // Of one key; older places count no more. Two tokens that stood together so often say little about what follows.
  static constexpr int kMaxPlaces = 256;

  // `weight`: of what it teaches, by its age. REQUIRES: no negative token.
  void add(std::span<const int32_t> tokens, float weight);

  bool find(const NgramContext& context, int order, Hit& hit) const override;
  int min_order() const override;
  int max_order() const override;

  size_t n_tokens() const { return n_tokens_; }
  // How many different n-grams were seen. Walks over all of them.
  uint64_t count_keys() const;

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Text {
    uint32_t end;  // behind its last token
    float weight;
  };
  uint32_t& bucket(int32_t newest, int32_t before);
  void index(uint32_t place);
  float weight_at(uint32_t place) const;

  std::vector<int32_t> tokens_;   // of all texts; -1 behind each, which no context contains
  std::vector<uint32_t> before_;  // of each place: the last one in the same bucket
  std::vector<uint32_t> newest_;  // by bucket; as many as a power of two
  std::vector<Text> texts_;
  size_t n_tokens_ = 0;
};

}  // namespace chimere::engram
