#include "odo/routing/router.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "odo/routing/calibration.h"
#include "odo/routing/softmax.h"

namespace chimere::odo {
namespace {

// A question that says nothing: what the model answers to it, it answers by habit.
constexpr std::string_view kNoQuestion = "...";
constexpr size_t kMaxModels = 8;

std::string joined(const std::set<std::string>& found) {
  std::string text;
  for (const std::string& rule : found) text += (text.empty() ? "" : ", ") + rule;
  return text;
}

size_t best_of(const std::vector<double>& chances) {
  return static_cast<size_t>(std::max_element(chances.begin(), chances.end()) - chances.begin());
}

std::string percent(double chance) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * chance);
  return text;
}

}  // namespace

Router::Router(std::vector<NamedRules> routes, std::string fallback, RuleMatcher rules)
    : routes_(std::move(routes)),
      fallback_(std::move(fallback)),
      rules_(std::move(rules)),
      words_(routes_),
      centroids_(routes_) {}

Result<std::shared_ptr<const Router>> Router::create(std::vector<NamedRules> routes, std::string fallback) {
  std::set<std::string> names;
  for (const auto& [name, rules] : routes) {
    if (name.empty()) return Error{Code::invalid_argument, "routes: expected a name, found an empty one"};
    if (!names.insert(name).second) return Error{Code::invalid_argument, "routes: '" + name + "' is there twice"};
  }
  TRY_ASSIGN(RuleMatcher rules, RuleMatcher::create(routes));
  return std::shared_ptr<const Router>(new Router(std::move(routes), std::move(fallback), std::move(rules)));
}

RouteChoice Router::chosen(size_t route, double confidence, std::string why, const char* stage) const {
  return {routes_[route].first, confidence, std::move(why), stage, 0};
}

std::optional<size_t> Router::by_attachment(const std::vector<RouteAttachment>& attachments, std::string& why) const {
  std::vector<int> votes(routes_.size(), 0);
  for (const RouteAttachment& file : attachments) {
    for (size_t route = 0; route < routes_.size(); ++route) {
      const auto& wanted = routes_[route].second.attachments;
      votes[route] += std::any_of(wanted.begin(), wanted.end(),
                                  [&](const std::string& rule) { return fits_attachment(rule, file.name, file.type); });
    }
  }
  const auto best = std::max_element(votes.begin(), votes.end());
  if (best == votes.end() || *best == 0 || std::count(votes.begin(), votes.end(), *best) > 1) return std::nullopt;
  why = std::to_string(*best) + " of " + std::to_string(attachments.size()) + " files";
  return static_cast<size_t>(best - votes.begin());
}

std::vector<bool> Router::with_examples() const {
  std::vector<bool> known;
  for (size_t route = 0; route < routes_.size(); ++route) known.push_back(words_.knows(route));
  return known;
}

std::vector<double> Router::by_words(const FoldedText& text) const {
  std::vector<double> logits = words_.logits(text);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] += bias_of(i, kWordsFallbackBias);
  return softmax(logits, with_examples(), kWordsTemperature);
}

Result<std::vector<double>> Router::by_vectors(std::string_view question, const RouteHooks& hooks) const {
  TRY_ASSIGN(const std::vector<double> cosines, centroids_.cosines(std::string(question), hooks.embedder, hooks.embed));
  return softmax(cosines, with_examples(), kCosineTemperature);
}

Result<std::vector<double>> Router::by_words_and_vectors(std::string_view question, const RouteHooks& hooks) const {
  std::vector<double> logits = words_.logits(FoldedText(question));
  TRY_ASSIGN(const std::vector<double> cosines, centroids_.cosines(std::string(question), hooks.embedder, hooks.embed));
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] += kCosineWeight * cosines[i] + bias_of(i, kBothFallbackBias);
  }
  return softmax(logits, with_examples(), kBothTemperature);
}

Result<std::vector<double>> Router::model_bias(const RouteHooks& hooks) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = bias_.find(hooks.model); found != bias_.end()) return found->second;
  TRY_ASSIGN(std::vector<double> bias, hooks.ask_model(routes_, kNoQuestion));
  if (bias_.size() == kMaxModels) bias_.erase(bias_.begin());
  return bias_.emplace(hooks.model, std::move(bias)).first->second;
}

Result<std::vector<double>> Router::by_model(std::string_view question, const RouteHooks& hooks) const {
  TRY_ASSIGN(const std::vector<double> bias, model_bias(hooks));
  TRY_ASSIGN(std::vector<double> logits, hooks.ask_model(routes_, question));
  if (logits.size() != routes_.size() || bias.size() != routes_.size()) {
    return Error{Code::internal, "the model gave other names than it was asked for"};
  }
  for (size_t i = 0; i < logits.size(); ++i) logits[i] -= bias[i];
  return softmax(logits, std::vector<bool>(logits.size(), true), hooks.model_temperature);
}

RouteChoice Router::choose(std::string_view question, const std::vector<RouteAttachment>& attachments,
                           const RouteHooks& hooks) const {
  const auto start = std::chrono::steady_clock::now();
  RouteChoice choice = decide(question, attachments, hooks);
  choice.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return choice;
}

RouteChoice Router::between_rules(const std::vector<RuleHits>& hits, size_t most, const FoldedText& text) const {
  std::vector<double> chances = by_words(text);
  double sum = 0;
  std::string why;
  for (size_t route = 0; route < hits.size(); ++route) {
    if (hits[route].found.size() < most) chances[route] = 0;
    sum += chances[route];
    if (hits[route].found.size() == most) why += routes_[route].first + " by " + joined(hits[route].found) + "; ";
  }
  const size_t best = best_of(chances);
  const double share = sum > 0 ? chances[best] / sum : 0;
  return chosen(best, kOneRuleRight * share, why + "words of the examples", "examples");
}

RouteChoice Router::decide(std::string_view question, const std::vector<RouteAttachment>& attachments,
                           const RouteHooks& hooks) const {
  const FoldedText text(question);
  const std::vector<RuleHits> hits = rules_.match(text);
  size_t first = 0, most = 0, second = 0;
  for (size_t route = 0; route < hits.size(); ++route) {
    const size_t n = hits[route].found.size();
    if (n > most) first = route;
    second = std::max(second, std::min(n, most));
    most = std::max(most, n);
  }
  const size_t lead = most - second;
  if (lead >= 2) return chosen(first, kMoreRulesRight, joined(hits[first].found), "rules");
  std::string why;
  if (const auto route = by_attachment(attachments, why)) return chosen(*route, kAttachmentRight, why, "attachment");
  if (lead == 1) return chosen(first, kOneRuleRight, joined(hits[first].found), "rules");
  if (most > 0 && words_.can_tell()) return between_rules(hits, most, text);
  std::string heard;  // from those that were not sure
  const auto verdict = [&](const Result<std::vector<double>>& chances, double sure, const char* stage,
                           const char* what) -> std::optional<RouteChoice> {
    if (!chances) {
      heard += std::string(what) + ": " + chances.error().message + "; ";
      return std::nullopt;
    }
    const size_t best = best_of(*chances);
    const double chance = (*chances)[best];
    if (chance >= sure) return chosen(best, chance, heard + what, stage);
    heard += std::string(what) + ": " + routes_[best].first + " " + percent(chance) + "; ";
    return std::nullopt;
  };
  if (words_.can_tell()) {
    const std::vector<double> chances = by_words(text);
    const double sure = hooks.embed ? kSureByWords : kSureEnough;
    if (auto choice = verdict(chances, sure, "examples", "words of the examples")) return *choice;
    if (hooks.embed) {
      const auto both = by_words_and_vectors(question, hooks);
      if (auto choice = verdict(both, kSureEnough, "examples", "words and vectors of the examples")) return *choice;
      // Without vectors the words have to do.
      if (!both) {
        if (auto choice = verdict(chances, kSureEnough, "examples", "words of the examples")) return *choice;
      }
    }
  }
  if (hooks.ask_model) {
    if (auto choice = verdict(by_model(question, hooks), kSureEnough, "model", "the model's own choice"))
      return *choice;
  }
  return {fallback_, 1 - kSureEnough, heard.empty() ? "no rule" : heard, "none", 0};
}

}  // namespace chimere::odo
