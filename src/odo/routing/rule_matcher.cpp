#include "odo/routing/rule_matcher.h"

#include <algorithm>

namespace chimere::odo {
namespace {

uint32_t next_step(std::unordered_map<std::string, uint32_t>& map, std::string_view key, size_t n_steps) {
  return map.emplace(key, static_cast<uint32_t>(n_steps)).first->second;
}

std::string small(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

void RuleMatcher::add(const std::string& words, size_t route) {
  const bool is_stem = words.ends_with('*');
  const FoldedText folded(words);
  const std::vector<std::string_view> parts = folded.words();
  uint32_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool by_stem = is_stem && i + 1 == parts.size();
    auto& map = by_stem ? steps_[at].stems : steps_[at].next;
    const uint32_t to = next_step(map, parts[i], steps_.size());
    if (by_stem) {
      std::vector<size_t>& lengths = steps_[at].stem_bytes;
      const auto place = std::lower_bound(lengths.begin(), lengths.end(), parts[i].size());
      if (place == lengths.end() || *place != parts[i].size()) lengths.insert(place, parts[i].size());
    }
    if (to == steps_.size()) steps_.emplace_back();
    at = to;
  }
  steps_[at].ends.push_back(static_cast<uint32_t>(rules_.size()));
  rules_.push_back({route, words});
}

Result<RuleMatcher> RuleMatcher::create(const std::vector<NamedRules>& routes) {
  RuleMatcher matcher;
  matcher.n_routes_ = routes.size();
  for (size_t route = 0; route < routes.size(); ++route) {
    for (const std::string& words : routes[route].second.words) matcher.add(words, route);
    for (const std::string& regex : routes[route].second.patterns) {
      TRY_ASSIGN(grammar::Pattern pattern, grammar::Pattern::parse(regex));
      pattern.tabulate();
      matcher.patterns_.push_back({{route, regex}, std::move(pattern)});
    }
  }
  return Result<RuleMatcher>{std::move(matcher)};
}

std::vector<RuleHits> RuleMatcher::match(const FoldedText& text) const {
  std::vector<RuleHits> hits(n_routes_);
  const auto take = [&](const Step& step) {
    for (const uint32_t id : step.ends) hits[rules_[id].route].found.insert(rules_[id].shown);
  };
  const std::vector<std::string_view> words = text.words();
  std::string key;
  for (size_t first = 0; first < words.size(); ++first) {
    const Step* step = &steps_[0];
    for (size_t i = first; i < words.size(); ++i) {
      for (const size_t n : step->stem_bytes) {
        if (n > words[i].size()) break;
        key.assign(words[i], 0, n);
        if (const auto found = step->stems.find(key); found != step->stems.end()) take(steps_[found->second]);
      }
      key = words[i];
      const auto found = step->next.find(key);
      if (found == step->next.end()) break;
      step = &steps_[found->second];
      take(*step);
    }
  }
  for (const PatternRule& p : patterns_) {
    if (p.pattern.is_in(text.text())) hits[p.rule.route].found.insert(p.rule.shown);
  }
  return hits;
}

bool fits_attachment(const std::string& rule, std::string_view name, std::string_view type) {
  const std::string wanted = small(rule);
  if (wanted[0] == '.') return small(name).ends_with(wanted);
  const std::string kind = small(type.substr(0, type.find(';')));
  if (wanted.ends_with("/*")) return kind.starts_with(std::string_view(wanted).substr(0, wanted.size() - 1));
  return kind == wanted;
}

}  // namespace chimere::odo
