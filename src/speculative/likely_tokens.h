// likely_tokens.h  The part of the vocabulary that guesses are made of.
//
// A draft pass is a layer and the output head, and the head of a whole vocabulary takes most of its time. Texts use a
// small part of the vocabulary: tokens are counted by blocks of neighbours, which the head reads together, and the
// blocks with the most are the candidates. Before any text was seen they are the first: vocabularies list short and
// frequent tokens before long and rare ones. A token outside is never guessed, and an answer has it all the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chimere::speculative {

class LikelyTokens {
 public:
  // A vocabulary of fewer than kFewTokens is not worth it: all of it is a candidate.
  LikelyTokens(int32_t n_vocab, int32_t block_tokens);

  // Text that was read or written.
  void learn(std::span<const int32_t> tokens);
  // Ascending; empty: all blocks.
  std::span<const int32_t> blocks() const { return blocks_; }
  // Whether blocks() may have changed since this was last asked.
  bool take_changed();

  static constexpr int32_t kFewTokens = 4096;
  static constexpr int32_t kLeastTokens = 2048;  // that are candidates: this many, or an eighth of all if that is more

 private:
  void choose();

  int32_t block_tokens_;
  size_t n_chosen_ = 0;
  std::vector<uint32_t> counts_;  // [block]
  std::vector<int32_t> blocks_;
  uint32_t n_new_ = 0;  // tokens since they were chosen
  uint32_t n_all_ = 0;
  bool is_changed_ = false;
};

}  // namespace chimere::speculative
