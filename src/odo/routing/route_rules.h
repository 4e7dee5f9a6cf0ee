// route_rules.h  The `match:` section of a route's YAML file: what questions the route is for.
//
//   match:
//     words: [traceback, "pull request", "refactor*"]   # whole words; a star stands for any end of the last one
//     patterns: ["[a-z]+error: "]                       # grammar/pattern.h, over the folded text (folded_text.h)
//     attachments: [.py, "image/*"]                     # endings of file names, and types
//     examples: [Why does my loop never end?]           # sentences; the more, the better they are told apart
//     describes: programs, their errors, databases      # what the model is told where it has to choose
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/yaml.h"

namespace chimere::odo {

struct RouteRules {
  std::vector<std::string> words;
  std::vector<std::string> patterns;
  std::vector<std::string> attachments;
  std::vector<std::string> examples;
  std::string describes;
};

using NamedRules = std::pair<std::string, RouteRules>;

// Limits of one route; a file beyond them is refused.
inline constexpr size_t kMaxRouteWords = 4096;
inline constexpr size_t kMaxRoutePatterns = 64;
inline constexpr size_t kMaxRouteAttachments = 256;
inline constexpr size_t kMaxRouteExamples = 512;
inline constexpr size_t kMaxRuleBytes = 1000;  // of a word, a pattern, an example or a description

// Errors have file, line and column; an unknown key comes with the nearest known one.
Result<RouteRules> read_match(const YamlNode& match, const std::string& file);

// `name` and `match` of a route's file; its other keys are not looked at.
Result<NamedRules> route_rules_of(const YamlNode& root, const std::string& file);
Result<NamedRules> parse_route_rules(std::string_view text, const std::string& file);

// Those of all *.yaml files of a folder, in the order of their names. `name` must be the name of its file.
Result<std::vector<NamedRules>> read_route_rules(const std::string& folder);

}  // namespace chimere::odo
