// rule_matcher.h  Words and patterns of all routes, looked for in one text at once.
//
// Words of rules form a tree by their parts ("pull" -> "request"), which the words of the text walk down from each of
// their places: the work is linear in the text and does not grow with the number of rules. A part that ends in a star is
// found by the beginnings of a word, which are looked up by length. Patterns are byte automata, one after the other.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/pattern.h"
#include "odo/routing/folded_text.h"
#include "odo/routing/route_rules.h"

namespace chimere::odo {

// What spoke for one route.
struct RuleHits {
  std::set<std::string> found;  // rules as the file has them, each once
};

class RuleMatcher {
 public:
  static Result<RuleMatcher> create(const std::vector<NamedRules>& routes);

  // One for each route.
  std::vector<RuleHits> match(const FoldedText& text) const;

 private:
  struct Rule {
    size_t route;
    std::string shown;
  };
  struct Step {
    std::unordered_map<std::string, uint32_t> next;   // by the whole word
    std::unordered_map<std::string, uint32_t> stems;  // by its beginning
    std::vector<size_t> stem_bytes;                   // lengths of these, ascending
    std::vector<uint32_t> ends;                       // rules that are complete here
  };
  struct PatternRule {
    Rule rule;
    grammar::Pattern pattern;
  };

  void add(const std::string& words, size_t route);

  size_t n_routes_ = 0;
  std::vector<Step> steps_{1};  // 0: where every place begins
  std::vector<Rule> rules_;
  std::vector<PatternRule> patterns_;
};

// Whether a rule of RouteRules::attachments fits the name or the type of a file, whatever their case.
bool fits_attachment(const std::string& rule, std::string_view name, std::string_view type);

}  // namespace chimere::odo
