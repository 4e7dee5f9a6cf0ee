// odo_endpoints.cpp  What the orchestrator has and did: /v1/odo/*, and /routes, /stats as such orchestrators have them; and
// what it can do for others: /v1/search, skills at /skill, and tools for other programs at /mcp.
#include "odo/odo.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include "odo/web_answer.h"
#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/odo/odo_json.h"
#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/generate_fields.h"
#include "tools/mcp_server.h"
#include "web/web_search.h"

namespace chimere::server {
namespace {

constexpr size_t kListedTraces = 50;

Json routes_json(odo::Odo& odo) {
  Json routes = Json::object();
  for (const auto& [name, route] : odo.routes()->routes) {
    Json json;
    json["name"] = route.title.empty() ? name : route.title;
    json["thinking"] = route.wishes.thinking ? Json(*route.wishes.thinking) : Json(nullptr);
    json["engram"] = Json::array();
    if (route.wishes.tables) {
      for (const auto& table : *route.wishes.tables) json["engram"].push_back(table.name);
    }
    json["lora"] = route.wishes.adapters ? Json(route.wishes.adapters->front().name) : Json(nullptr);
    json["tools"] = route.tools;
    json["tools_on_cue"] = route.cued_tools;
    json["collections"] = route.collections;
    json["web"] = route.searches;
    json["steps"] = Json::array();
    for (const odo::PipelineStep& step : route.steps) json["steps"].push_back(step.agent);
    routes[name] = std::move(json);
  }
  return routes;
}

Json stages_json(const odo::Odo& odo) {
  Json stages = Json::object();
  for (const auto& [stage, count] : odo.stage_counts()) {
    stages[stage] = {{"n", count.n}, {"failed", count.failed}, {"skipped", count.skipped}, {"seconds", count.seconds}};
  }
  return stages;
}

// A server that answers no more is started again by the next call of one of its tools.
Json server_json(const tools::McpServerStatus& status) {
  return {{"name", status.name},
          {"state", status.is_connected ? "running" : "failed"},
          {"server", status.server},
          {"protocol", status.version},
          {"policy", tools::policy_name(status.policy)},
          {"tools", status.tools},
          {"problem", status.problem},
          {"starts", status.n_starts}};
}

Json status_json(odo::Odo& odo) {
  Json json;
  json["object"] = "odo.status";
  json["models"] = odo.model_names();
  json["modes"] = odo::list_of_modes();
  json["routes"] = routes_json(odo);
  json["problems"] = Json::object();
  for (const auto& [file, problem] : odo.problems()) json["problems"][file] = problem;
  json["stages"] = stages_json(odo);
  json["web"] = odo.shelves().web != nullptr;
  json["mcp_servers"] = Json::array();
  if (const tools::McpServers* servers = odo.servers()) {
    for (const tools::McpServerStatus& status : servers->status()) json["mcp_servers"].push_back(server_json(status));
  }
  return json;
}

Json tools_json(odo::Odo& odo) {
  Json list = Json::array();
  for (const tools::ToolSpec& spec : odo.toolbox().list()) {
    auto parameters = parse_json(spec.parameters);
    list.push_back({{"name", spec.name},
                    {"description", spec.description},
                    {"policy", tools::policy_name(odo.toolbox().policy(spec.name))},
                    {"parameters", parameters ? *parameters : Json::object()}});
  }
  Json denied = Json::array();
  for (const tools::ToolSpec& spec : odo.toolbox().denied()) {
    denied.push_back({{"name", spec.name}, {"description", spec.description}, {"policy", "deny"}});
  }
  return Json{{"object", "list"}, {"data", std::move(list)}, {"denied", std::move(denied)}};
}

HttpResponse approval(odo::Odo& odo, const Call& call) {
  auto body = parse_json(call.request.body);
  const bool is_fit = body && body->is_object() && body->contains("allow") && (*body)["allow"].is_boolean();
  if (!is_fit) {
    return error_response(
        {400, "expected {\"allow\": true} or {\"allow\": false}", "invalid_request_error", "allow", ""});
  }
  const bool is_allowed = (*body)["allow"].get<bool>();
  if (!odo.approvals().answer(call.parameter, call.request.client, is_allowed)) {
    return error_response(
        {404, "no call waits under '" + call.parameter + "'", "invalid_request_error", "id", "not_found"});
  }
  return json_response(Json{{"id", call.parameter}, {"allow", is_allowed}});
}

// Work that blocks is done by a thread of the runs. Nobody waits for longer than this, and a client that leaves ends it.
constexpr std::chrono::seconds kLongestWork{60};

tools::ToolContext context_of(const Call& call, const std::shared_ptr<std::atomic<bool>>& is_left) {
  tools::ToolContext context;
  context.owner = memory_owner(call.request.client, {});
  context.key = call.request.client;
  context.deadline = std::chrono::steady_clock::now() + kLongestWork;
  context.is_cancelled = [is_left] { return is_left->load(); };
  return context;
}

std::unique_ptr<Answer> worked(odo::Odo& odo, Call call, std::function<Result<std::string>()> work,
                               const std::shared_ptr<std::atomic<bool>>& is_left) {
  call.record->watch([is_left] { *is_left = true; });
  auto job = odo.work(std::move(work), call.wake);
  const auto whole = [](const std::string& text) {
    if (text.empty()) return HttpResponse{202, {}, {}};
    return HttpResponse{200, {{"Content-Type", "application/json"}}, text};
  };
  return std::make_unique<JobAnswer<std::string>>(std::move(job), std::move(call.record), whole, to_api_error);
}

// POST /mcp: one message of JSON-RPC in, its reply out. Nothing is kept between two of them.
std::unique_ptr<Answer> mcp_message(odo::Odo& odo, Call call, const tools::McpServer& server) {
  const auto is_left = std::make_shared<std::atomic<bool>>(false);
  auto work = [&server, body = call.request.body, context = context_of(call, is_left)]() -> Result<std::string> {
    return server.answer(body, context);
  };
  return worked(odo, std::move(call), std::move(work), is_left);
}

// POST /v1/search {"query", "depth", "synthesis", "expand", "grade"}: sources and passages of the web, and what the model
// makes of them.
std::unique_ptr<Answer> web_search(const OdoDesk& desk, Call call) {
  odo::Odo& odo = *desk.odo;
  const web::WebSearch* web = odo.shelves().web;
  const auto refuse = [&](const char* field, const std::string& message) {
    return answer_now(call, error_response({400, message, "invalid_request_error", field, ""}));
  };
  if (!web) return refuse("query", "no search server is configured: start the server with --searxng URL");
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<OwnedJson>(parsed));
  odo::WebAsk ask;
  odo::SearchHelp help;
  std::string depth = "standard";
  fields.string("query", ask.query);
  fields.string("depth", depth);
  fields.boolean("synthesis", ask.synthesizes);
  fields.boolean("expand", help.expands);
  fields.boolean("grade", help.grades);
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto named = web::search_depth(depth);
  if (ask.query.empty()) return refuse("query", "query: expected a text, found none");
  if (!named) return refuse("depth", "depth: expected quick, standard or deep, found '" + depth.substr(0, 64) + "'");
  ask.depth = *named;
  std::shared_ptr<orchestrator::ChatService> model;
  if (ask.synthesizes || help.expands || help.grades) {
    if (desk.model) model = desk.model();
    if (!model) return refuse("synthesis", "synthesis, expand and grade need a model: none is loaded");
  }
  help.scorer = odo.shelves().scorer;
  help.owner = help.cache_scope = Services::owner_of(call);
  const auto is_left = std::make_shared<std::atomic<bool>>(false);
  auto work = [web, ask, help, model, context = context_of(call, is_left)]() -> Result<std::string> {
    odo::SearchHelp by_model = help;
    by_model.model = model.get();
    return odo::web_answer(*web, ask, by_model, {context.deadline, context.is_cancelled});
  };
  return worked(odo, std::move(call), std::move(work), is_left);
}

// The traces of this key that are kept, of the last day.
Json last_day_json(const odo::Odo& odo, const std::string& client) {
  constexpr int64_t kDay = 24 * 60 * 60;
  const auto since = static_cast<int64_t>(std::time(nullptr)) - kDay;
  Json routes = Json::object();
  int n = 0;
  double ms = 0;
  for (const odo::Trace& trace : odo.traces().list(client, odo::TraceStore::kMaxTraces)) {
    if (trace.began < since) continue;
    ++n;
    ms += trace.ms;
    Json& count = routes[trace.run.route];
    count = count.is_null() ? 1 : count.get<int>() + 1;
  }
  return Json{{"total", n}, {"routes", std::move(routes)}, {"avg_ms", n == 0 ? 0.0 : ms / n}};
}

Json skill_json(odo::Odo& odo, const tools::ToolSpec& spec) {
  const auto parameters = parse_json(spec.parameters);
  return {{"name", spec.name},
          {"description", spec.description},
          {"policy", tools::policy_name(odo.toolbox().policy(spec.name))},
          {"parameters", parameters ? *parameters : Json::object()}};
}

std::optional<tools::ToolSpec> skill_named(odo::Odo& odo, const std::string& name) {
  for (tools::ToolSpec& spec : odo.skills()) {
    if (spec.name == name) return std::move(spec);
  }
  return std::nullopt;
}

HttpResponse no_skill(const std::string& name) {
  return error_response(
      {404, "there is no skill '" + name.substr(0, 64) + "'", "invalid_request_error", "name", "not_found"});
}

// Those whose name is in the text, as a word or, of names of several words, as words.
Json matching_skills(odo::Odo& odo, const std::string& text) {
  const auto folded = [](const std::string& given) {
    std::string out = " ";
    for (const char c : given) {
      const bool is_letter =
          (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (static_cast<unsigned char>(c) >= 0x80);
      const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : is_letter ? c : ' ';
      if (small != ' ' || out.back() != ' ') out += small;
    }
    return out.back() == ' ' ? out : out + " ";
  };
  const std::string words = folded(text);
  Json skills = Json::array();
  for (const tools::ToolSpec& spec : odo.skills()) {
    if (words.find(folded(spec.name)) != std::string::npos) skills.push_back(skill_json(odo, spec));
  }
  return Json{{"skills", std::move(skills)}};
}

// What the body says a skill is called with: `arguments`, or as `args` the text of its one argument.
Result<Json> invocation_arguments(const tools::ToolSpec& skill, const Json& body) {
  if (body.contains("arguments") && body["arguments"].is_object()) return body["arguments"];
  const auto schema = parse_json(skill.parameters);
  const Json properties = schema && schema->contains("properties") ? (*schema)["properties"] : Json::object();
  if (!body.contains("arguments") && body.contains("args") && body["args"].is_string() && properties.size() == 1) {
    return Json{{properties.begin().key(), body["args"]}};
  }
  if (!body.contains("arguments") && !body.contains("args")) return Json::object();
  return Error{Code::invalid_argument, "expected `arguments`, an object of " + std::to_string(properties.size()) +
                                           " arguments (`args`, a text, where there is one), found another"};
}

// POST /skill/invoke/{name} {"arguments": {...}, "allow": true}: whoever asks is the person whose word a policy of `ask`
// waits for, and says it.
std::unique_ptr<Answer> invoke_skill(odo::Odo& odo, Call call) {
  const auto skill = skill_named(odo, call.parameter);
  if (!skill) return answer_now(call, no_skill(call.parameter));
  const auto refuse = [&](int status, const char* field, const std::string& message) {
    return answer_now(call, error_response({status, message, "invalid_request_error", field, ""}));
  };
  const auto body = call.request.body.empty() ? std::optional<Json>(Json::object()) : [&] {
    auto parsed = parse_json(call.request.body);
    return parsed ? std::optional<Json>(std::move(*parsed)) : std::nullopt;
  }();
  if (!body || !body->is_object()) return refuse(400, "arguments", "expected a JSON object");
  const auto arguments = invocation_arguments(*skill, *body);
  if (!arguments) return refuse(400, "arguments", arguments.error().message);
  const bool is_allowed = body->contains("allow") && (*body)["allow"] == true;
  if (!is_allowed && odo.toolbox().policy(skill->name) == tools::Policy::ask) {
    return refuse(403, "allow", "the policy of '" + skill->name + "' is ask: expected \"allow\": true of a person");
  }
  const auto is_left = std::make_shared<std::atomic<bool>>(false);
  auto work = [&odo, name = skill->name, text = to_text(*arguments), is_allowed,
               context = context_of(call, is_left)]() -> Result<std::string> {
    const tools::ToolResult result = odo.toolbox().run(name, text, context, is_allowed);
    return to_text(Json{{"skill", name},
                        {"success", !result.is_error},
                        {"output", result.text},
                        {"is_untrusted", result.is_untrusted}});
  };
  return worked(odo, std::move(call), std::move(work), is_left);
}

void add_skill_endpoints(Router& router, odo::Odo& odo) {
  router.add({.method = "GET", .path = "/skill/list", .handler = [&odo](Call call) {
                Json skills = Json::array();
                for (const tools::ToolSpec& spec : odo.skills()) skills.push_back(skill_json(odo, spec));
                return answer_now(call, json_response(Json{{"skills", std::move(skills)}}));
              }});
  router.add({.method = "GET", .path = "/skill/get/{id}", .handler = [&odo](Call call) {
                const auto skill = skill_named(odo, call.parameter);
                return answer_now(call, skill ? json_response(skill_json(odo, *skill)) : no_skill(call.parameter));
              }});
  router.add({.method = "GET", .path = "/skill/match", .handler = [&odo](Call call) {
                std::string text;
                for (auto& [name, value] : query_fields(call.request.query)) {
                  if (name == "text") text = std::move(value);
                }
                return answer_now(call, json_response(matching_skills(odo, text)));
              }});
  router.add({.method = "POST", .path = "/skill/invoke/{id}", .handler = [&odo](Call call) {
                return invoke_skill(odo, std::move(call));
              }});
}

}  // namespace

void add_odo_endpoints(Router& router, const OdoDesk& desk) {
  if (!desk.odo) return;
  odo::Odo& odo = *desk.odo;
  router.add({.method = "GET", .path = "/v1/odo/status", .handler = [&odo](Call call) {
                return answer_now(call, json_response(status_json(odo)));
              }});
  router.add({.method = "GET", .path = "/v1/odo/tools", .handler = [&odo](Call call) {
                return answer_now(call, json_response(tools_json(odo)));
              }});
  router.add({.method = "GET", .path = "/v1/odo/traces", .handler = [&odo](Call call) {
                Json list = Json::array();
                for (const odo::Trace& trace : odo.traces().list(call.request.client, kListedTraces))
                  list.push_back(trace_json(trace));
                return answer_now(call, json_response(Json{{"object", "list"}, {"data", std::move(list)}}));
              }});
  router.add({.method = "GET", .path = "/v1/odo/traces/{id}", .handler = [&odo](Call call) {
                const auto trace = odo.traces().find(call.parameter, call.request.client);
                if (trace) return answer_now(call, json_response(trace_json(*trace)));
                return answer_now(call, error_response({404, "no trace '" + call.parameter + "' is kept",
                                                        "invalid_request_error", "id", "not_found"}));
              }});
  router.add({.method = "POST", .path = "/v1/odo/approvals/{id}", .handler = [&odo](Call call) {
                return answer_now(call, approval(odo, call));
              }});
  // What others may use of us: what we know, not what this machine can do.
  const auto mcp = std::make_shared<const tools::McpServer>(
      odo.toolbox(), desk.version, std::vector<std::string>{"retrieve", "remember", "forget", "web_search"});
  router.add({.method = "POST", .path = "/mcp", .handler = [&odo, mcp](Call call) {
                return mcp_message(odo, std::move(call), *mcp);
              }});
  router.add({.method = "POST", .path = "/v1/search", .handler = [desk](Call call) {
                return web_search(desk, std::move(call));
              }});
  router.add({.method = "GET", .path = "/routes", .handler = [&odo](Call call) {
                return answer_now(call, json_response(Json{{"routes", routes_json(odo)}}));
              }});
  router.add({.method = "GET", .path = "/stats", .handler = [&odo, learned_now = desk.learned](Call call) {
                Json json;
                const auto learned = learned_now();
                json["engram"] = learned ? Json{{"bytes", learned->bytes}, {"users", learned->files}} : Json();
                json["routes"] = odo.routes()->names();
                json["stages"] = stages_json(odo);
                json["last_24h"] = last_day_json(odo, call.request.client);
                return answer_now(call, json_response(json));
              }});
  add_skill_endpoints(router, odo);
}

}  // namespace chimere::server
