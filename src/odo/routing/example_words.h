// example_words.h  Routes told apart by the words of their examples: a multinomial logistic regression that is learnt
// from them when the routes are loaded.
//
// Features of a text, each 0 or 1, scaled to length 1 together: its words, pairs of neighbours, and pieces of four
// letters with the borders of words, so that "tendinite" speaks for "tendinitis". What no example has stays without a
// weight but counts for the length: the more of a question is new, the less sure the answer. 300 examples take about
// 20 milliseconds.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "odo/routing/folded_text.h"
#include "odo/routing/route_rules.h"

namespace chimere::odo {

class ExampleWords {
 public:
  // The same examples give the same weights everywhere.
  explicit ExampleWords(const std::vector<NamedRules>& routes);

  // Logits of all routes, 0 for those without examples. REQUIRES: can_tell()
  std::vector<double> logits(const FoldedText& text) const;
  // At least two routes have examples.
  bool can_tell() const { return n_known_ >= 2; }
  bool knows(size_t route) const { return known_[route]; }

 private:
  using Features = std::vector<uint64_t>;  // hashes, each once
  static Features features_of(const FoldedText& text);
  void learn(const std::vector<std::pair<Features, size_t>>& examples);

  size_t n_routes_ = 0;
  int n_known_ = 0;
  std::vector<bool> known_;                        // [n_routes]: has examples
  std::unordered_map<uint64_t, uint32_t> places_;  // of a feature in `weights_`
  std::vector<float> weights_;                     // [features, n_routes]
};

}  // namespace chimere::odo
