// route.h  A kind of question and how it is answered: one YAML file (docs/odo.md has the keys).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "odo/effort.h"
#include "odo/routing/route_rules.h"
#include "odo/wishes.h"
#include "text/yaml.h"

namespace chimere::odo {

// A step of a pipeline: the model is asked once with its own words, after the steps before it. Steps of one group run
// side by side.
struct PipelineStep {
  std::string agent;  // its name in the trace
  std::string prompt;
  Wishes wishes;
  std::optional<std::vector<std::string>> tools;  // absent: those of the route
  int iterations = 1;                             // each time it sees what it wrote before
  int group = 0;                                  // steps with the same number stand beside each other
};

struct Route {
  std::string name;
  RouteRules match;   // what questions it is for
  std::string title;  // for people
  std::string system_prompt;
  Wishes wishes;
  std::vector<std::string> tools;       // those it may use, of the toolbox; `*` at the end of one stands for any text
  std::vector<std::string> cued_tools;  // the same, for questions that sound like them (tool_cues.h)
  std::vector<std::string> collections;
  bool searches = false;      // the web, where it is set up
  bool calculates = true;     // sums of the question before the model answers (calculate.h)
  bool weighs_doubt = true;   // a sure answer goes without a thought (doubt.h)
  Effort effort = {};         // beside asking the model once
  bool is_automatic = false;  // its pipeline runs without being asked for
  std::vector<PipelineStep> steps;
};

inline constexpr size_t kMaxPipelineSteps = 16;
inline constexpr int kMaxStepIterations = 8;

// The name of a route is that of its file: small letters, digits, - and _.
bool is_route_name(std::string_view name);
Result<Route> read_route(const YamlNode& root, const std::string& name, const std::string& file);

}  // namespace chimere::odo
