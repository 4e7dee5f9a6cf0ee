#include "odo/routing/route_rules.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "grammar/pattern.h"
#include "odo/routing/folded_text.h"

namespace chimere::odo {
namespace {

constexpr size_t kMaxRouteFiles = 64;

std::string shown(const std::string& text) { return "'" + text.substr(0, 60) + "'"; }

// Of every text of the list what is wrong with it; empty: nothing.
void check_each(YamlFields& fields, const YamlNode& match, const char* key,
                const std::function<std::string(const std::string&)>& wrong) {
  const YamlNode* list = match.find(key);
  if (!list) return;
  for (const YamlNode& item : list->items) {
    if (const std::string message = wrong(item.word); !message.empty()) {
      fields.fail(item, std::string(key) + ": " + message);
    }
  }
}

std::string wrong_word(const std::string& text) {
  return FoldedText(text).words().empty() ? "expected letters or digits, found " + shown(text) : "";
}

std::string wrong_pattern(const std::string& text) {
  const auto pattern = grammar::Pattern::parse(text);
  return pattern ? "" : pattern.error().message;
}

std::string wrong_attachment(const std::string& text) {
  const bool is_fit = text.starts_with('.') || text.find('/') != std::string::npos;
  return is_fit ? "" : "expected an ending such as .py or a type such as image/*, found " + shown(text);
}

}  // namespace

Result<RouteRules> read_match(const YamlNode& match, const std::string& file) {
  RouteRules rules;
  YamlFields fields(match, file);
  fields.words("words", rules.words, kMaxRouteWords, kMaxRuleBytes);
  fields.words("patterns", rules.patterns, kMaxRoutePatterns, kMaxRuleBytes);
  fields.words("attachments", rules.attachments, kMaxRouteAttachments, kMaxRuleBytes);
  fields.words("examples", rules.examples, kMaxRouteExamples, kMaxRuleBytes);
  fields.text("describes", rules.describes, kMaxRuleBytes);
  check_each(fields, match, "words", wrong_word);
  check_each(fields, match, "patterns", wrong_pattern);
  check_each(fields, match, "attachments", wrong_attachment);
  TRY(fields.end());
  return Result<RouteRules>{std::move(rules)};
}

Result<NamedRules> parse_route_rules(std::string_view text, const std::string& file) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, file));
  return route_rules_of(root, file);
}

Result<NamedRules> route_rules_of(const YamlNode& root, const std::string& file) {
  NamedRules route;
  YamlFields fields(root, file);
  fields.text("name", route.first, 64);
  if (route.first.empty()) fields.fail(root, "name: expected the name of the route");
  if (const YamlNode* match = fields.find("match")) {
    auto rules = read_match(*match, file);
    if (!rules) return rules.error();
    route.second = std::move(*rules);
  }
  TRY(fields.so_far());
  return Result<NamedRules>{std::move(route)};
}

Result<std::vector<NamedRules>> read_route_rules(const std::string& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() == ".yaml") paths.push_back(at->path());
  }
  if (failed) return Error{Code::not_found, folder + ": " + failed.message()};
  if (paths.empty() || paths.size() > kMaxRouteFiles) {
    return Error{Code::invalid_argument, folder + ": expected 1 to " + std::to_string(kMaxRouteFiles) +
                                             " files *.yaml, found " + std::to_string(paths.size())};
  }
  std::sort(paths.begin(), paths.end());
  std::vector<NamedRules> routes;
  for (const auto& path : paths) {
    TRY_ASSIGN(const YamlNode root, read_yaml(path.string()));
    TRY_ASSIGN(NamedRules route, route_rules_of(root, path.string()));
    if (route.first != path.stem().string()) {
      return Error{Code::invalid_argument, path.string() + ": expected the name " + shown(path.stem().string()) +
                                               ", that of the file, found " + shown(route.first)};
    }
    routes.push_back(std::move(route));
  }
  return Result<std::vector<NamedRules>>{std::move(routes)};
}

}  // namespace chimere::odo
