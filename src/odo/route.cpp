#include "odo/route.h"

#include <algorithm>

namespace chimere::odo {
namespace {

constexpr size_t kMaxPromptBytes = 16 << 10;
constexpr size_t kMaxNamedTools = 64;
constexpr int64_t kMaxTokens = 1 << 20;

Status read_params(const YamlNode& map, const std::string& file, Wishes& wishes) {
  YamlFields fields(map, file);
  fields.number("temperature", wishes.temperature, 0, 2);
  fields.number("top_p", wishes.top_p, 0, 1);
  fields.integer("top_k", wishes.top_k, -1, kMaxTokens);
  fields.number("min_p", wishes.min_p, 0, 1);
  fields.number("presence_penalty", wishes.presence_penalty, -2, 2);
  fields.integer("max_tokens", wishes.max_tokens, 1, kMaxTokens);
  return fields.end();
}

Status read_thinking(const YamlNode& map, const std::string& file, Wishes& wishes) {
  YamlFields fields(map, file);
  fields.boolean("enabled", wishes.thinking);
  fields.integer("budget", wishes.thinking_limit, 0, kMaxTokens);
  std::string mode;
  fields.text("mode", mode);
  if (!mode.empty()) {
    wishes.thinking_mode = orchestrator::thinking_mode(mode);
    if (!wishes.thinking_mode)
      fields.fail(*map.find("mode"), "mode: expected off, fast, quality or ultra, found '" + mode + "'");
  }
  return fields.end();
}

Status read_engram(const YamlNode& map, const std::string& file, Wishes& wishes) {
  YamlFields fields(map, file);
  std::vector<std::string> names;
  fields.words("tables", names, 8, 128);
  fields.number("alpha", wishes.alpha, 0, 1);
  wishes.tables.emplace();
  for (std::string& name : names) wishes.tables->push_back({std::move(name), 1.0f});
  return fields.end();
}

Status read_lora(const YamlNode& map, const std::string& file, Wishes& wishes) {
  YamlFields fields(map, file);
  orchestrator::AdapterUse use;
  fields.text("name", use.name, 128);
  fields.number("scale", use.scale, -10, 10);
  if (use.name.empty()) fields.fail(map, "lora: expected `name`, the name of a loaded adapter");
  wishes.adapters = std::vector<orchestrator::AdapterUse>{std::move(use)};
  return fields.end();
}

Status read_search(const YamlNode& map, const std::string& file, Effort& effort) {
  YamlFields fields(map, file);
  std::string kind;
  fields.text("kind", kind, 64);
  effort.search = search_kind(kind);
  if (!effort.search)
    fields.fail(map, std::string("search: expected `kind`: ") + kSearchNames + ", found '" + kind + "'");
  fields.integer("branches", effort.branches, 1, kMaxBranches);
  fields.integer("width", effort.width, 1, kMaxWidth);
  fields.integer("tokens", effort.tokens, 1, kMaxSearchTokens);
  return fields.end();
}

Result<PipelineStep> read_step(const YamlNode& map, const std::string& file, int group) {
  YamlFields fields(map, file);
  PipelineStep step;
  step.group = group;
  fields.text("agent", step.agent, 64);
  fields.text("prompt", step.prompt, kMaxPromptBytes);
  if (step.agent.empty()) fields.fail(map, "a step: expected `agent`, the name of the step");
  if (step.prompt.empty()) fields.fail(map, "a step: expected `prompt`, what it is told");
  if (const YamlNode* params = fields.find("params")) fields.take(read_params(*params, file, step.wishes));
  if (const YamlNode* thinking = fields.find("thinking")) fields.take(read_thinking(*thinking, file, step.wishes));
  if (fields.find("tools")) {
    step.tools.emplace();
    fields.words("tools", *step.tools, kMaxNamedTools, 64);
  }
  std::optional<int32_t> iterations;
  fields.integer("iterations", iterations, 1, kMaxStepIterations);
  step.iterations = iterations.value_or(1);
  TRY(fields.end());
  return Result<PipelineStep>{std::move(step)};
}

// A list of steps; `parallel:` in place of one holds several that run side by side.
Status read_steps(const YamlNode& list, const std::string& file, std::vector<PipelineStep>& steps) {
  if (list.kind != YamlNode::Kind::list) {
    YamlFields fields(list, file);
    fields.fail(list, "steps: expected a list, found " + described(list));
    return fields.end();
  }
  int group = 0;
  for (const YamlNode& item : list.items) {
    ++group;
    const YamlNode* side_by_side = item.find("parallel");
    const bool is_group = side_by_side && side_by_side->kind == YamlNode::Kind::list && item.pairs.size() == 1;
    const std::vector<YamlNode> one = {item};
    for (const YamlNode& step : is_group ? side_by_side->items : one) {
      TRY_ASSIGN(PipelineStep read, read_step(step, file, group));
      steps.push_back(std::move(read));
      if (steps.size() > kMaxPipelineSteps) {
        YamlFields fields(item, file);
        fields.fail(step, "steps: expected at most " + std::to_string(kMaxPipelineSteps));
        return fields.end();
      }
    }
  }
  return Ok{};
}

}  // namespace

bool is_route_name(std::string_view name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  return is_plain && !name.empty() && name.size() <= 64 && !mode_named(name);
}

Result<Route> read_route(const YamlNode& root, const std::string& name, const std::string& file) {
  Route route;
  route.name = name;
  YamlFields fields(root, file);
  std::string said;
  fields.text("name", said, 64);
  if (!said.empty() && said != name)
    fields.fail(*root.find("name"), "name: expected that of the file, '" + name + "', found '" + said + "'");
  if (const YamlNode* match = fields.find("match")) {
    auto rules = read_match(*match, file);
    if (!rules) return rules.error();
    route.match = std::move(*rules);
  }
  fields.text("title", route.title, 128);
  fields.text("system_prompt", route.system_prompt, kMaxPromptBytes);
  fields.words("tools", route.tools, kMaxNamedTools, 64);
  fields.words("tools_on_cue", route.cued_tools, kMaxNamedTools, 64);
  fields.words("collections", route.collections, 8, 64);
  if (const YamlNode* params = fields.find("params")) fields.take(read_params(*params, file, route.wishes));
  if (const YamlNode* thinking = fields.find("thinking")) fields.take(read_thinking(*thinking, file, route.wishes));
  if (const YamlNode* engram = fields.find("engram")) fields.take(read_engram(*engram, file, route.wishes));
  if (const YamlNode* lora = fields.find("lora")) fields.take(read_lora(*lora, file, route.wishes));
  if (const YamlNode* search = fields.find("search")) fields.take(read_search(*search, file, route.effort));
  fields.boolean("gate", route.effort.gate);
  fields.integer("few_shot", route.effort.few_shot, 0, kMaxExamples);
  fields.number("source_weight", route.effort.source_weight, 0, 1);
  fields.boolean("expand", route.effort.expand);
  fields.boolean("grade", route.effort.grade);
  fields.boolean("retrieve_in_doubt", route.effort.looks_in_doubt);
  fields.integer("tool_tokens", route.effort.tool_tokens, 1, kMaxToolTokens);
  std::optional<bool> searches, calculates, weighs_doubt, is_automatic;
  fields.boolean("web", searches);
  fields.boolean("calculate", calculates);
  fields.boolean("entropy", weighs_doubt);
  fields.boolean("pipeline_auto", is_automatic);
  route.searches = searches.value_or(false);
  route.calculates = calculates.value_or(true);
  route.weighs_doubt = weighs_doubt.value_or(true);
  route.is_automatic = is_automatic.value_or(false);
  if (const YamlNode* steps = fields.find("steps")) fields.take(read_steps(*steps, file, route.steps));
  TRY(fields.end());
  return Result<Route>{std::move(route)};
}

}  // namespace chimere::odo
