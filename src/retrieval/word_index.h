// word_index.h  Texts found by the words they share with a question: BM25, and how much of the question a text covers.
//
// A sorted list of (word, text) is all there is. A lookup is a binary search a word and a step a place; a copy is a
// copy of plain memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace chimere::retrieval {

class WordIndex {
 public:
  // They get the next numbers, from 0 on.
  void add(const std::vector<std::string_view>& texts);
  size_t size() const { return lengths_.size(); }

  // A word of a question, once each. `weight`: how much it tells, whatever the texts are; 0: nothing.
  struct Asked {
    uint64_t term = 0;
    float weight = 1;
  };
  struct Match {
    uint32_t text = 0;
    float covered = 0;  // 0 to 1: of the weights of the question's words, the part that this text has
    float rank = 0;     // BM25
  };
  // Those that cover at least `least` of the question, best first, at most `k`.
  std::vector<Match> best(const std::vector<Asked>& question, float least, size_t k) const;

 private:
  struct Posting {
    uint64_t term;
    uint32_t text;
    uint32_t count;
  };
  std::vector<Posting> postings_;  // by term, then text
  std::vector<uint32_t> lengths_;  // words of each text
  uint64_t n_words_ = 0;
};

}  // namespace chimere::retrieval
