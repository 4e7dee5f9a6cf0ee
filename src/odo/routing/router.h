// router.h  Which route a question takes.
//
// A cascade; the first stage that is sure enough decides:
//
//   rules       words and patterns of the routes' files                              well below a millisecond
//   attachment  names and types of attached files, where rules say little (one word)
//   examples    words of the example sentences (example_words.h); where they are not sure and the caller brings an
//               embedder, together with the nearest centroid of their vectors (example_centroids.h)
//   model       the chances the model gives the names, where the caller brings one   some ten milliseconds
//   none        none of these: the default route
//
// Confidence is the chance that the choice is right, fitted on questions of their own (tools/routing/fit.py).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "odo/routing/example_centroids.h"
#include "odo/routing/example_words.h"
#include "odo/routing/route_rules.h"
#include "odo/routing/rule_matcher.h"

namespace chimere::odo {

struct RouteChoice {
  std::string route;
  double confidence = 0;  // 0 to 1
  std::string why;        // for people: the rule, the file, the stage's figure
  std::string stage;      // rules, attachment, examples, model or none
  double ms = 0;          // what the choice took
};

struct RouteAttachment {
  std::string name;
  std::string type;  // of MIME; may be empty
};

// What a caller lends to the stages that compute. A stage without its hook is left out, one whose hook fails is passed
// over and named in RouteChoice::why.
struct RouteHooks {
  EmbedTexts embed;       // vectors of length 1
  uint64_t embedder = 0;  // fingerprint of what makes them
  // Log-probabilities of the names (model_choice.h). For models that can do it: docs/odo-routing.md has the measure.
  std::function<Result<std::vector<double>>(const std::vector<NamedRules>&, std::string_view question)> ask_model;
  uint64_t model = 0;            // fingerprint of the model that is asked
  double model_temperature = 1;  // its calibration (tools/routing/fit.py)
};

class Router {
 public:
  // Refuses patterns that are none and two routes of one name. `fallback` is the route of what fits none.
  static Result<std::shared_ptr<const Router>> create(std::vector<NamedRules> routes, std::string fallback = "default");

  // From any thread.
  RouteChoice choose(std::string_view question, const std::vector<RouteAttachment>& attachments,
                     const RouteHooks& hooks) const;

  const std::vector<NamedRules>& routes() const { return routes_; }

  // Whether the vectors of the examples are there, so that a question that needs them does not wait for them.
  bool knows_vectors(uint64_t embedder) const { return centroids_.knows(embedder); }
  Status learn_vectors(const RouteHooks& hooks) const { return centroids_.learn(hooks.embedder, hooks.embed); }

  // What single stages make of a question: for evaluation, and for the calibration of the cascade. Chances of all
  // routes, with the temperature that was fitted.
  std::vector<RuleHits> rule_hits(const FoldedText& text) const { return rules_.match(text); }
  std::vector<double> by_words(const FoldedText& text) const;
  Result<std::vector<double>> by_vectors(std::string_view question, const RouteHooks& hooks) const;
  Result<std::vector<double>> by_words_and_vectors(std::string_view question, const RouteHooks& hooks) const;
  Result<std::vector<double>> by_model(std::string_view question, const RouteHooks& hooks) const;

 private:
  Router(std::vector<NamedRules> routes, std::string fallback, RuleMatcher rules);
  double bias_of(size_t route, double bias) const { return routes_[route].first == fallback_ ? bias : 0; }
  std::vector<bool> with_examples() const;
  std::optional<size_t> by_attachment(const std::vector<RouteAttachment>& attachments, std::string& why) const;
  RouteChoice decide(std::string_view question, const std::vector<RouteAttachment>& attachments,
                     const RouteHooks& hooks) const;
  // Where rules speak for several routes alike, the words of the examples decide between these.
  RouteChoice between_rules(const std::vector<RuleHits>& hits, size_t most, const FoldedText& text) const;
  RouteChoice chosen(size_t route, double confidence, std::string why, const char* stage) const;
  Result<std::vector<double>> model_bias(const RouteHooks& hooks) const;

  const std::vector<NamedRules> routes_;
  const std::string fallback_;
  const RuleMatcher rules_;
  const ExampleWords words_;
  mutable ExampleCentroids centroids_;                    // keeps vectors; guards itself
  mutable std::mutex mutex_;                              // of bias_
  mutable std::map<uint64_t, std::vector<double>> bias_;  // by model: what it says to a question without content
};

}  // namespace chimere::odo
