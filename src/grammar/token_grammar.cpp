#include "grammar/token_grammar.h"

#include <algorithm>

#include "grammar/plain_text.h"

namespace chimere::grammar {
namespace {

// A state that allows more tokens than this keeps a mask of its own; fewer are kept as a list.
constexpr size_t kListed = 512;
// Of all masks of a grammar together. Beyond it they are dropped and made again: it takes many large states.
constexpr size_t kMaxMaskBytes = size_t{32} << 20;

void set(std::vector<std::uint64_t>& bits, std::int32_t id) {
  bits[static_cast<size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

}  // namespace

Result<std::shared_ptr<const TokenGrammar>> TokenGrammar::create(const Grammar& grammar,
                                                                 std::shared_ptr<const Vocabulary> vocabulary) {
  TRY_ASSIGN(Automaton automaton, compile(grammar));
  return Result<std::shared_ptr<const TokenGrammar>>{
      std::make_shared<const TokenGrammar>(std::move(automaton), std::move(vocabulary))};
}

TokenGrammar::TokenGrammar(Automaton automaton, std::shared_ptr<const Vocabulary> vocabulary)
    : automaton_(std::move(automaton)), vocabulary_(std::move(vocabulary)) {}

std::uint32_t TokenGrammar::equal_count(StateId state, std::uint32_t count) const {
  const Rule& rule = automaton_.rules[automaton_.states[state].rule];
  if (rule.kind != Rule::Kind::run) return count;
  const auto far = static_cast<std::uint32_t>(vocabulary_->longest_bytes()) + 1;
  if (rule.min > count + far) return 0;
  if (count >= rule.min && rule.max != kNoLimit && rule.max > count + far) return rule.max - far - 1;
  return count;
}

std::shared_ptr<const StateMask> TokenGrammar::state_mask(StateId state, std::uint32_t count,
                                                          std::int64_t& budget) const {
  count = equal_count(state, count);
  const std::uint64_t key = static_cast<std::uint64_t>(state) << 32 | count;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = masks_.find(key); found != masks_.end()) return found->second;
  }
  auto made = std::make_shared<const StateMask>(make_mask(state, count, budget));
  if (budget <= 0) return made;  // not whole: another time there may be more to spend
  const size_t bytes = made->bits.size() * 8 + made->ids.size() * 4 + made->leaving.size() * 4 + 100;
  std::lock_guard lock(mutex_);
  if (mask_bytes_ + bytes > kMaxMaskBytes) {
    masks_.clear();
    mask_bytes_ = 0;
  }
  mask_bytes_ += bytes;
  masks_[key] = made;
  return made;
}

StateMask TokenGrammar::make_mask(StateId state, std::uint32_t count, std::int64_t& budget) const {
  const State& s = automaton_.states[state];
  const Rule& rule = automaton_.rules[s.rule];
  StateMask mask;
  mask.tree = &vocabulary_->all();
  if (s.is_plain_loop) {
    const bool is_counted = rule.kind == Rule::Kind::run;
    const std::uint32_t left = is_counted && rule.max != kNoLimit ? rule.max - count : kNoLimit;
    // Longer plain tokens do not fit here, unless what follows the run is plain as well.
    static const ByteSet kPlainFirst = plain_first_bytes();
    if (left >= Vocabulary::kMaxPlainChars || (rule.follow & kPlainFirst).none()) {
      const auto plain = vocabulary_->plain(left);
      mask.bits.assign(plain.begin(), plain.end());
      mask.tree = &vocabulary_->not_plain();
    }
  }
  Recogniser recogniser(automaton_);
  PlaceSet here;
  here.places = {{state, count, kOpen}};
  TreeWalk walk;
  const TokenTree& tree = *mask.tree;
  walk.run(
      recogniser, tree, 0, here, budget,
      [&](std::uint32_t node) {
        const auto ids = tree.ids_at(node);
        mask.ids.insert(mask.ids.end(), ids.begin(), ids.end());
      },
      [&](std::uint32_t node) {
        if (rule.follow[tree.byte[node]]) mask.leaving.push_back(node);
      });
  if (!mask.bits.empty() || mask.ids.size() > kListed) {
    mask.bits.resize(vocabulary_->n_words());
    for (const std::int32_t id : mask.ids) set(mask.bits, id);
    mask.ids = {};
  }
  return mask;
}

}  // namespace chimere::grammar
