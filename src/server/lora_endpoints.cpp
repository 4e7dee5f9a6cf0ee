// lora_endpoints.cpp  /v1/lora: the adapters that requests may name, loaded and unloaded while the server runs.
//
// A client names an adapter and never a path: files come from the folder that the server was started with.
#include <filesystem>
#include <utility>

#include "server/api_error.h"
#include "server/endpoints.h"
#include "server/generate_fields.h"
#include "server/json.h"

namespace chimere::server {
namespace {

using orchestrator::ChatService;
using orchestrator::TokenJob;

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
    json["data"].push_back(std::move(item));
  }
  return json;
}

// Waits for the file to be read.
class LoadAnswer : public Answer {
 public:
  LoadAnswer(ChatService& chat, std::unique_ptr<TokenJob> job, std::unique_ptr<RequestRecord> record)
      : chat_(chat), job_(std::move(job)), record_(std::move(record)) {}

  Piece poll() override {
    Piece piece;
    const auto done = job_->poll();
    if (!done) return piece;
    piece.head = *done ? json_response(list_json(chat_)) : error_response(to_api_error(done->error()));
    piece.done = true;
    record_->set_status(piece.head->status);
    return piece;
  }

 private:
  ChatService& chat_;
  std::unique_ptr<TokenJob> job_;
  std::unique_ptr<RequestRecord> record_;
};

std::unique_ptr<Answer> load(const Services& services, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<Json>(parsed));
  std::string name;
  float scale = 1;
  fields.string("name", name);
  fields.number("scale", scale, -kMaxScale, kMaxScale);
  if (services.lora_folder.empty()) {
    fields.fail("name", "this server loads no adapters: it was started without --lora-dir");
  } else if (name.empty() || name[0] == '.' || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    fields.fail("name", "expected the name of a file of the adapters' folder, without .gguf");
  }
  for (const std::string& unknown : fields.unknown()) fields.fail(unknown, "expected name and scale");
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const std::string path = services.lora_folder + "/" + name + ".gguf";
  auto job = services.chat.load_adapter(name, path, scale, call.wake);
  return std::make_unique<LoadAnswer>(services.chat, std::move(job), std::move(call.record));
}

}  // namespace

void add_lora_endpoints(Router& router, const Services& services) {
  ChatService& chat = services.chat;
  auto list = [&chat](Call call) { return answer_now(call, json_response(list_json(chat))); };
  auto loaded = [services](Call call) { return load(services, std::move(call)); };
  auto unloaded = [&chat](Call call) {
    const Status done = chat.adapters().unload(call.parameter);
    if (done) return answer_now(call, json_response(list_json(chat)));
    return answer_now(call, error_response({404, done.error().message, "invalid_request_error", "name", "not_found"}));
  };
  router.add({.method = "GET", .path = "/v1/lora", .handler = list});
  router.add({.method = "POST", .path = "/v1/lora", .handler = loaded});
  router.add({.method = "DELETE", .path = "/v1/lora/{id}", .handler = unloaded});
}

}  // namespace chimere::server
