// shelf_json.cpp  Lists.
#include "server/shelf/shelf_json.h"

#include "server/http/api_error.h"
#include "server/protocols/ollama_response.h"

namespace chimere::server {
namespace {

using Listed = ModelShelf::Listed;
using State = ModelShelf::State;

const char* state_name(State state) {
  switch (state) {
    case State::unloaded: return "unloaded";
    case State::loading: return "loading";
    case State::loaded: return "loaded";
    case State::failed: return "failed";
  }
  return "unloaded";
}

Json model_entry(const Listed& listed) {
  Json json;
  json["id"] = listed.file.name;
  json["object"] = "model";
  json["created"] = listed.file.written;
  json["owned_by"] = "chimere";
  json["size"] = listed.file.bytes;
  Json& status = json["status"];
  status["value"] = state_name(listed.state);
  if (listed.state == State::loading) status["progress"] = listed.progress;
  if (listed.state == State::failed) status["error"] = without_folders(listed.problem);
  // What a file can do is known when it was loaded; until then nothing is held against it.
  Json& capabilities = json["capabilities"] = Json::array({"completion", "chat", "embedding"});
  if (!listed.service) return json;
  json["context_length"] = listed.service->context_length();
  if (listed.memory.ram > 0) status["ram_bytes"] = listed.memory.ram;
  if (listed.memory.vram > 0) status["vram_bytes"] = listed.memory.vram;
  capabilities = Json::array({"completion"});
  if (listed.service->model_info().chat) capabilities.push_back("chat");
  capabilities.push_back("embedding");
  return json;
}

Json ollama_entry(const Listed& listed) {
  Json json;
  const bool has_tag = listed.file.name.find(':') != std::string::npos;
  json["name"] = json["model"] = listed.file.name + (has_tag ? "" : ":latest");
  json["modified_at"] = ollama_time(std::chrono::system_clock::time_point(std::chrono::seconds(listed.file.written)));
  json["size"] = listed.file.bytes;
  json["digest"] = "";
  json["details"] = Json{{"format", "gguf"}};
  return json;
}

}  // namespace

Json shelf_models(ModelShelf& shelf) {
  Json data = Json::array();
  shelf.list([&](const Listed& listed) { data.push_back(model_entry(listed)); });
  return Json{{"object", "list"}, {"data", std::move(data)}};
}

Json shelf_tags(ModelShelf& shelf) {
  Json models = Json::array();
  shelf.list([&](const Listed& listed) { models.push_back(ollama_entry(listed)); });
  return Json{{"models", std::move(models)}};
}

Json shelf_running(ModelShelf& shelf) {
  Json models = Json::array();
  shelf.list([&](const Listed& listed) {
    if (listed.state != State::loaded) return;
    Json json = ollama_entry(listed);
    json["context_length"] = listed.service->context_length();
    const bool is_on_card = listed.service->model_info().backend == "cuda";
    json["size_vram"] = !is_on_card ? 0 : listed.memory.vram > 0 ? listed.memory.vram : listed.file.bytes;
    models.push_back(std::move(json));
  });
  return Json{{"models", std::move(models)}};
}

Json shelf_health(ModelShelf& shelf) {
  Json loaded = Json::array();
  shelf.list([&](const Listed& listed) {
    if (listed.state == State::loaded) loaded.push_back(listed.file.name);
  });
  return Json{{"status", "ok"}, {"loaded", std::move(loaded)}};
}

Json shelf_states(ModelShelf& shelf) {
  Json states = Json::array();
  shelf.list([&](const Listed& listed) {
    Json json = {{"name", listed.file.name}, {"state", state_name(listed.state)}, {"file_bytes", listed.file.bytes}};
    if (listed.state == State::loading) json["progress"] = listed.progress;
    if (listed.state == State::failed) json["error"] = without_folders(listed.problem);
    if (listed.state == State::loaded) {
      json["ram_bytes"] = listed.memory.ram;
      json["vram_bytes"] = listed.memory.vram;
      json["users"] = listed.users;
      if (listed.has_new_options) json["has_new_options"] = true;
    }
    for (const auto& [option, value] : listed.file.options) json["options"][option] = value;
    states.push_back(std::move(json));
  });
  return states;
}

}  // namespace chimere::server
