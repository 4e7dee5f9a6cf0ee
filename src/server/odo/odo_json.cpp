#include "server/odo/odo_json.h"

#include <cmath>

#include "server/protocols/shared/answer_json.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::RunReport;
using orchestrator::StepReport;

constexpr size_t kMaxAskedTools = 64;
constexpr size_t kMaxAttachments = 32;

const char* state_word(StepReport::State state) {
  switch (state) {
    case StepReport::State::running: return "running";
    case StepReport::State::asks: return "asks";
    case StepReport::State::done: return "done";
    case StepReport::State::failed: return "failed";
    case StepReport::State::skipped: return "skipped";
  }
  return "done";
}

// Tenths of a millisecond are what a person can use.
double shown_ms(double ms) { return std::round(ms * 10) / 10; }

Json head_json(const RunReport& run) {
  Json json;
  json["id"] = run.id;
  json["route"] = run.route;
  if (!run.mode.empty()) json["mode"] = run.mode;
  return json;
}

// A list of names, or of objects that have one.
void read_attachments(JsonFields& fields, const std::string& name, std::vector<std::string>& out) {
  const Json* list = fields.array(name);
  if (!list) return;
  if (list->size() > kMaxAttachments) {
    return fields.fail(
        name, "expected at most " + std::to_string(kMaxAttachments) + " files, found " + std::to_string(list->size()));
  }
  for (const Json& item : *list) {
    const Json& file = item.is_object() && item.contains("name") ? item["name"] : item;
    if (!file.is_string()) return fields.fail_type(name, "names of files", item);
    out.push_back(file.get<std::string>());
  }
}

void read_choice(JsonFields& fields, const char* name, std::optional<bool>& out) {
  if (!fields.find(name)) return;
  bool wanted = false;
  fields.boolean(name, wanted);
  out = wanted;
}

// Plug-ins of other orchestrators say true or send what they would search for: both wish for it.
void read_hint(JsonFields& fields, const char* name, std::optional<bool>& out) {
  const Json* hint = fields.find(name);
  if (hint) out = hint->is_boolean() ? hint->get<bool>() : !hint->empty();
}

void read_count(JsonFields& fields, const char* name, std::optional<int32_t>& out, int64_t low, int64_t high) {
  if (!fields.find(name)) return;
  int count = 0;
  fields.integer(name, count, low, high);
  out = count;
}

void read_effort(JsonFields& fields, odo::Effort& effort) {
  std::string search;
  fields.string("search", search);
  if (!search.empty()) {
    effort.search = odo::search_kind(search);
    if (!effort.search)
      fields.fail("search", std::string("expected ") + odo::kSearchNames + ", found '" + search + "'");
  }
  read_count(fields, "branches", effort.branches, 1, odo::kMaxBranches);
  read_count(fields, "width", effort.width, 1, odo::kMaxWidth);
  read_count(fields, "tokens", effort.tokens, 1, odo::kMaxSearchTokens);
  read_choice(fields, "gate", effort.gate);
  read_count(fields, "few_shot", effort.few_shot, 0, odo::kMaxExamples);
  read_choice(fields, "expand", effort.expand);
  read_choice(fields, "grade", effort.grade);
  read_choice(fields, "retrieve_in_doubt", effort.looks_in_doubt);
  read_count(fields, "tool_tokens", effort.tool_tokens, 1, odo::kMaxToolTokens);
  if (fields.find("source_weight")) {
    float weight = 0;
    fields.number("source_weight", weight, 0, 1);
    effort.source_weight = weight;
  }
}

}  // namespace

void read_odo(JsonFields& fields, odo::Ask& ask, std::vector<std::string>& read) {
  for (const char* name : {"odo", "mode", "pipeline", "odo_metadata", "odo_route", "x_odo_route", "chimere_search"}) {
    if (fields.find(name)) read.emplace_back(name);
  }
  for (const char* name : {"odo_route", "x_odo_route"}) fields.string(name, ask.route);
  read_hint(fields, "chimere_search", ask.web);
  fields.string("mode", ask.mode);
  read_choice(fields, "pipeline", ask.pipeline);
  if (const Json* metadata = fields.object("odo_metadata")) {
    JsonFields inner(*metadata, "odo_metadata.");
    read_attachments(inner, "files", ask.attachments);
    fields.take_error(inner);
  }
  const Json* object = fields.object("odo");
  if (!object) return;
  JsonFields inner(*object, "odo.");
  inner.string("mode", ask.mode);
  inner.string("route", ask.route);
  if (inner.find("tools")) ask.tools = read_strings(inner, "tools", kMaxAskedTools, 64);
  read_choice(inner, "pipeline", ask.pipeline);
  if (inner.find("collections")) ask.collections = read_strings(inner, "collections", kMaxAskedTools, 64);
  read_choice(inner, "web", ask.web);
  read_choice(inner, "calculate", ask.calculates);
  read_choice(inner, "entropy", ask.entropy);
  read_effort(inner, ask.effort);
  read_attachments(inner, "files", ask.attachments);
  inner.boolean("approve", ask.can_approve);
  for (const std::string& name : inner.unknown()) {
    inner.fail(name.substr(name.find('.') + 1), "expected one of the fields of docs/odo.md, found another");
  }
  fields.take_error(inner);
}

Json steps_json(const std::vector<StepReport>& steps) {
  Json list = Json::array();
  for (const StepReport& step : steps) {
    Json json;
    json["index"] = step.index;
    json["stage"] = step.stage;
    json["state"] = state_word(step.state);
    if (!step.about.empty()) json["about"] = step.about;
    json["ms"] = shown_ms(step.ms);
    if (step.tokens > 0) json["tokens"] = step.tokens;
    if (auto detail = parse_json(step.detail); !step.detail.empty() && detail) json["detail"] = *detail;
    list.push_back(std::move(json));
  }
  return list;
}

void add_run(Json& json, const orchestrator::ChatChunk& chunk) {
  const std::vector<StepReport>& steps = chunk.run && !chunk.run->steps.empty() ? chunk.run->steps : chunk.steps;
  if (chunk.run) json["odo"] = head_json(*chunk.run);
  if (chunk.run) json["x_odo_route"] = chunk.run->route;
  if (!steps.empty()) json["odo"]["steps"] = steps_json(steps);
}

Json trace_json(const odo::Trace& trace) {
  Json json = head_json(trace.run);
  json["object"] = "odo.trace";
  json["model"] = trace.model;
  json["created"] = trace.began;
  json["ms"] = shown_ms(trace.ms);
  json["finish"] = trace.finish;
  add_usage(json, trace.usage);
  json["steps"] = steps_json(trace.run.steps);
  return json;
}

}  // namespace chimere::server
