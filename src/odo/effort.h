// effort.h  What is done for an answer beside asking the model once: as far as a request, a route or a mode says so, in this order.
#pragma once

#include <cstdint>
#include <optional>

#include "odo/search.h"

namespace chimere::odo {

inline constexpr int kMaxExamples = 8;
inline constexpr int32_t kMaxToolTokens = 1 << 20;

struct Effort {
  std::optional<SearchKind> search = {};  // several answers, and the best of them (search.h)
  std::optional<int32_t> branches = {};   // of the search: how many
  std::optional<int32_t> width = {};      // steps that are tried
  std::optional<int32_t> tokens = {};     // all that it may cost
  std::optional<bool> gate = {};          // a bad answer is tried once more (gate.h)
  std::optional<int32_t> few_shot = {};   // accepted answers to like questions that the model is shown (few_shot.h)
  std::optional<float> source_weight =
      {};                           // of the n-grams of texts that were found, in the mixture; 0: they are only read
  std::optional<bool> expand = {};  // the model writes further queries for a search of the web (search_help.h)
  std::optional<bool> grade = {};   // the model says of each text that was found whether it helps
  std::optional<bool> looks_in_doubt = {};  // an answer in doubt is told of what the owner's collections say (doubt.h)
  std::optional<int32_t> tool_tokens = {};  // that all rounds of calls may write (LoopLimits::tokens)

  // What these leave open is taken from `lower`.
  Effort over(const Effort& lower) const {
    const auto either = [](const auto& mine, const auto& others) { return mine ? mine : others; };
    return {either(search, lower.search),
            either(branches, lower.branches),
            either(width, lower.width),
            either(tokens, lower.tokens),
            either(gate, lower.gate),
            either(few_shot, lower.few_shot),
            either(source_weight, lower.source_weight),
            either(expand, lower.expand),
            either(grade, lower.grade),
            either(looks_in_doubt, lower.looks_in_doubt),
            either(tool_tokens, lower.tool_tokens)};
  }
  SearchRule search_rule() const {
    SearchRule rule;
    rule.kind = search.value_or(SearchKind::none);
    rule.branches = branches.value_or(rule.branches);
    rule.width = width.value_or(rule.width);
    rule.tokens = tokens.value_or(rule.tokens);
    return rule;
  }
};

}  // namespace chimere::odo
