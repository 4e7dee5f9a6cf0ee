// effort.h  What is done for an answer beside asking the model once: as far as a request, a route or a mode says so, in this order.
#pragma once

#include <cstdint>
#include <optional>

#include "odo/search.h"

namespace chimere::odo {

inline constexpr int kMaxExamples = 8;

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
            either(grade, lower.grade)};
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
