// token_grammar.h  A grammar over a vocabulary: which tokens each of its states allows.
//
// For a state almost all tokens are decided once, whatever the stack above it holds: they fit or they do not. What
// depends on the stack are tokens that run over the end of the state's rule, as `",` does in a string. For those the
// places in the token tree are kept where the rule is left; a constraint (constraint.h) walks on from there with the
// stack it has.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/recogniser.h"
#include "grammar/vocabulary.h"

namespace chimere::grammar {

struct StateMask {
  std::vector<std::uint64_t> bits;  // allowed tokens; empty when they are few and listed in `ids`
  std::vector<std::int32_t> ids;
  const TokenTree* tree = nullptr;     // of `leaving`
  std::vector<std::uint32_t> leaving;  // nodes whose byte would be the first one behind the rule
};

class TokenGrammar {
 public:
  static Result<std::shared_ptr<const TokenGrammar>> create(const Grammar& grammar,
                                                            std::shared_ptr<const Vocabulary> vocabulary);

  const Automaton& automaton() const { return automaton_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }

  // Of a place whose stack is not known; `budget` as in TreeWalk. Any thread.
  std::shared_ptr<const StateMask> state_mask(StateId state, std::uint32_t count, std::int64_t& budget) const;
  // Another count that allows the same tokens: far from both limits of a run it makes no difference how far.
  std::uint32_t equal_count(StateId state, std::uint32_t count) const;

  // `create` alone makes usable ones.
  TokenGrammar(Automaton automaton, std::shared_ptr<const Vocabulary> vocabulary);

 private:
  StateMask make_mask(StateId state, std::uint32_t count, std::int64_t& budget) const;

  const Automaton automaton_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  mutable std::mutex mutex_;  // guards the two below
  mutable std::unordered_map<std::uint64_t, std::shared_ptr<const StateMask>> masks_;
  mutable size_t mask_bytes_ = 0;
};

// Walks the subtree of `node`, whose own byte has led to `at_node`, and calls `allow` with each node whose bytes the
// grammar takes, and `leave` with each node before whose byte a stack that is not known is returned to.
//
// Steps (Recogniser::work) are taken from `budget`; when it is spent the walk ends, and tokens that were not reached
// count as not allowed. Only grammars that are ambiguous on purpose come near it.
class TreeWalk {
 public:
  static constexpr std::int64_t kBudget = 8'000'000;

  template <class Allow, class Leave>
  void run(Recogniser& recogniser, const TokenTree& tree, std::uint32_t node, const PlaceSet& at_node,
           std::int64_t& budget, Allow allow, Leave leave) {
    const std::uint32_t base = tree.depth[node];
    if (levels_.empty()) levels_.resize(1);
    levels_[0] = at_node;
    std::uint32_t i = node + 1;
    while (i < tree.end[node] && budget > 0) {
      const size_t level = tree.depth[i] - base;
      if (levels_.size() <= level) levels_.resize(level + 1);
      const PlaceSet& before = levels_[level - 1];
      if (before.leaves) leave(i);
      const std::uint64_t work = recogniser.work();
      recogniser.step(before, tree.byte[i], levels_[level]);
      budget -= 1 + static_cast<std::int64_t>(recogniser.work() - work);
      const bool fits = levels_[level].is_alive();
      if (fits) allow(i);
      i = fits ? i + 1 : tree.end[i];
    }
  }

 private:
  std::vector<PlaceSet> levels_;
};

}  // namespace chimere::grammar
