// lora_endpoints.cpp  /v1/lora: the adapters that requests may name, loaded and unloaded while the server runs.
//
// A client names an adapter and never a path: files come from the folder that the server was started with.
#include <filesystem>
#include <utility>

#include "odo/judge.h"
#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ChatService;

constexpr float kMaxScale = 100;

Json list_json(ChatService& chat) {
  Json json;
  json["object"] = "list";
  json["data"] = Json::array();
  for (const auto& entry : chat.adapters().list()) {
    Json item;
    item["name"] = entry.name;
    item["file"] = std::filesystem::path(entry.path).filename().string();
    item["scale"] = entry.scale;
    item["bytes"] = entry.n_bytes;
    item["use"] = entry.name == odo::kJudgeAdapter ? "judge" : "answer";  // what offers adapters leaves a judge out
    json["data"].push_back(std::move(item));
  }
  return json;
}

// The client named the file, so that it can not be used is no failure of the server's.
ApiError load_failure(const Error& error) {
  ApiError api = to_api_error(error);
  if (error.code == Code::corrupt) api = {400, api.message, "invalid_request_error", "name", "damaged_adapter"};
  return api;
}

struct LoadCall {
  std::string name;
  float scale = 1;
};

Parsed<LoadCall> parse_load(const std::string& body, bool has_folder) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
  LoadCall call;
  fields.string("name", call.name);
  fields.number("scale", call.scale, -kMaxScale, kMaxScale);
  const std::string& name = call.name;
  if (!has_folder) {
    fields.fail("name", "this server loads no adapters: it was started without --lora-dir");
  } else if (name.empty() || name[0] == '.' || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    fields.fail("name", "expected the name of a file of the adapters' folder, without .gguf");
  }
  for (const std::string& unknown : fields.unknown()) fields.fail(unknown, "expected name and scale");
  if (!fields.ok()) return fields.error();
  return call;
}

std::unique_ptr<Answer> load(const Services& services, Call call, LoadCall& asked) {
  const std::string path = services.lora_folder + "/" + asked.name + ".gguf";
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) {
    return answer_now(call, error_response({404, "the adapters' folder has no '" + asked.name + ".gguf'",
                                            "invalid_request_error", "name", "not_found"}));
  }
  auto job = services.chat.load_adapter(asked.name, path, asked.scale, call.request.client, call.wake);
  const auto write = [&chat = services.chat](const Ok&) { return json_response(list_json(chat)); };
  return std::make_unique<JobAnswer<Ok>>(std::move(job), std::move(call.record), write, load_failure);
}

// By whom it was loaded. What the server was started with belongs to no key; where there are no keys, all are one.
HttpResponse unload(ChatService& chat, const std::string& name, const std::string& client) {
  for (const auto& entry : chat.adapters().list()) {
    if (entry.name != name || entry.owner == client) continue;
    return error_response({403, "adapter '" + name + "' was not loaded with this key: only who loaded it may unload it",
                           "invalid_request_error", "name", "not_yours"});
  }
  const Status done = chat.adapters().unload(name);
  if (done) return json_response(list_json(chat));
  return error_response({404, done.error().message, "invalid_request_error", "name", "not_found"});
}

}  // namespace

void add_lora_endpoints(Router& router, const Services& services) {
  ChatService& chat = services.chat;
  auto list = [&chat](Call call) { return answer_now(call, json_response(list_json(chat))); };
  auto unloaded = [&chat](Call call) { return answer_now(call, unload(chat, call.parameter, call.request.client)); };
  router.add({.method = "GET", .path = "/v1/lora", .handler = list});
  add_parsed_route(
      router, services, "/v1/lora",
      [has_folder = !services.lora_folder.empty()](const std::string& body) { return parse_load(body, has_folder); },
      load);
  router.add({.method = "DELETE", .path = "/v1/lora/{id}", .handler = unloaded});
}

}  // namespace chimere::server
