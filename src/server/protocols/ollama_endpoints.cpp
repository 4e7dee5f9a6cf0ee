// ollama_endpoints.cpp  /api/*: the API of Ollama, for programs that know that server. One model is served, so nothing
// is loaded, pulled or copied.
#include <cmath>
#include <utility>

#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/odo/start_chat.h"
#include "server/protocols/embedding_response.h"
#include "server/protocols/ollama_request.h"
#include "server/protocols/ollama_response.h"
#include "server/protocols/shared/answer_generated.h"
#include "server/protocols/shared/embedding_answer.h"
#include "server/protocols/shared/engram_field.h"

namespace chimere::server {
namespace {

using orchestrator::ChatRequest;
using orchestrator::CompletionRequest;
using orchestrator::Embedded;
using orchestrator::ModelInfo;
using std::chrono::system_clock;

// The release of Ollama whose API this is: clients ask for it before they offer what came later than another.
constexpr const char* kOllamaApi = "0.12.6";

// "23.8M"
std::string short_count(uint64_t n) {
  char text[32];
  const auto value = static_cast<double>(n);
  if (value >= 1e9) {
    std::snprintf(text, sizeof text, "%.1fB", value / 1e9);
  } else if (value >= 1e6) {
    std::snprintf(text, sizeof text, "%.1fM", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.0fK", std::ceil(value / 1e3));
  }
  return text;
}

Json details_json(const ModelInfo& info) {
  Json json;
  json["parent_model"] = "";
  json["format"] = "gguf";
  json["family"] = info.architecture;
  json["families"] = Json::array({info.architecture});
  json["parameter_size"] = short_count(info.parameters);
  json["quantization_level"] = info.formats.empty() ? "" : info.formats.front().type;
  return json;
}

std::string tagged(const std::string& name) { return name + ":latest"; }

// The model that generates, then the one that embeds where it is another.
Json listed_models(const Services& services, system_clock::time_point started) {
  const ModelInfo& info = services.chat.model_info();
  Json models = Json::array();
  const auto add = [&](const std::string& name, uint64_t bytes, Json details) {
    Json json;
    json["name"] = json["model"] = tagged(name);
    json["modified_at"] = ollama_time(started);
    json["size"] = bytes;
    json["digest"] = services.system_fingerprint();
    json["details"] = std::move(details);
    models.push_back(std::move(json));
  };
  add(services.names.chat, info.file_bytes, details_json(info));
  if (!services.names.embedder.empty()) add(services.names.embedder, 0, Json{{"format", "gguf"}});
  return models;
}

Json show_json(const Services& services, system_clock::time_point started) {
  const ModelInfo& info = services.chat.model_info();
  const SamplingParams& usual = services.chat.defaults().sampling;
  char parameters[128];
  std::snprintf(parameters, sizeof parameters, "temperature %g\ntop_k %d\ntop_p %g\nmin_p %g",
                static_cast<double>(usual.temperature), usual.top_k, static_cast<double>(usual.top_p),
                static_cast<double>(usual.min_p));
  Json json;
  json["modified_at"] = ollama_time(started);
  json["parameters"] = parameters;
  json["details"] = details_json(info);
  Json& facts = json["model_info"];
  facts["general.architecture"] = info.architecture;
  facts["general.basename"] = info.name;
  facts["general.parameter_count"] = info.parameters;
  facts[info.architecture + ".context_length"] = services.chat.context_length();
  facts[info.architecture + ".block_count"] = info.layers.size();
  facts[info.architecture + ".embedding_length"] = services.chat.embedder().dimensions();
  Json& capabilities = json["capabilities"] = Json::array({"completion"});
  if (info.tools) capabilities.push_back("tools");
  if (info.thinking) capabilities.push_back("thinking");
  if (services.names.embeds_by_chat(services.names.chat)) capabilities.push_back("embedding");
  return json;
}

// It stays until the server ends, and Ollama's clients want to be told a time.
Json running_json(const Services& services) {
  const ModelInfo& info = services.chat.model_info();
  Json json;
  json["name"] = json["model"] = tagged(services.names.chat);
  json["size"] = info.file_bytes;
  json["digest"] = services.system_fingerprint();
  json["details"] = details_json(info);
  json["expires_at"] = "9999-12-31T23:59:59Z";
  json["size_vram"] = info.backend == "cuda" ? info.file_bytes : 0;
  json["context_length"] = services.chat.context_length();
  return json;
}

std::unique_ptr<Answer> generate(const Services& services, Call call, OllamaCall& asked) {
  const ModelInfo& info = services.chat.model_info();
  const auto refused = [&](const ApiError& error) { return answer_now(call, ollama_error_response(error)); };
  if (services.keeps_alive) std::erase(asked.ignored, "keep_alive");
  odo::Ask ask;
  ask.model = asked_name(services, call, asked.model);
  ask.client = call.request.client;
  if (const auto error = asked.is_chat ? refuse_chat(services, ask) : services.names.refuse_to_chat(asked.model)) {
    return refused(*error);
  }
  drop_read(services, ask.model, asked.ignored);
  if (asked.wants_thought && !info.thinking) {
    return refused({400, "\"" + asked.named + "\" does not support thinking", "invalid_request_error", "think", ""});
  }
  OllamaHead head{asked.named.empty() ? tagged(services.names.chat) : asked.named, asked.is_chat, false,
                  call.record->started()};
  if (asked.only_loads) {
    return answer_now(call, {200, {{"Content-Type", "application/json"}}, ollama_loaded(head)});
  }
  Generation generation;
  std::visit(
      [&](auto& request) {
        head.logprobs = request.logprobs;
        request.memory.owner = memory_owner(call.request.client, asked.user);
        services.limit(request, call);
        if constexpr (std::is_same_v<std::decay_t<decltype(request)>, ChatRequest>) {
          generation.choices = start_chat(services, call, std::move(ask), std::move(request));
        } else {
          generation.choices.push_back(services.chat.complete(std::move(request), call.wake));
        }
      },
      asked.request);
  generation.prompt_field = asked.is_chat ? "messages" : "prompt";
  generation.writer = ollama_writer(std::move(head));
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

std::string embedded_text(const OllamaEmbedCall& asked, const Embedded& embedded, const std::string& model,
                          std::chrono::steady_clock::time_point began) {
  Json json;
  if (asked.is_legacy) {
    json["embedding"] = shortened(embedded.vectors.front(), asked.dimensions);
    return to_text(json);
  }
  json["model"] = asked.named.empty() ? tagged(model) : asked.named;
  json["embeddings"] = Json::array();
  for (const std::vector<float>& vector : embedded.vectors) {
    json["embeddings"].push_back(shortened(vector, asked.dimensions));
  }
  const auto took = std::chrono::steady_clock::now() - began;
  json["total_duration"] = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  json["load_duration"] = 0;
  json["prompt_eval_count"] = embedded.n_tokens;
  return to_text(json);
}

// Cuts what is too long, unless it was told not to.
Parsed<OllamaEmbedCall> parse_embed(const Services& services, const std::string& body, bool is_legacy) {
  const EmbeddingShapeOf shape = [&services](const std::string& model) -> EmbeddingShape {
    return {services.embedder_for(model).dimensions()};
  };
  auto parsed = parse_ollama_embed(body, shape, is_legacy);
  OllamaEmbedCall* call = std::get_if<OllamaEmbedCall>(&parsed);
  if (!call || !call->cuts) return parsed;
  constexpr size_t kOwnTokens = 2;  // at its beginning and its end; of the others there are no more than bytes
  const orchestrator::Embedder& embedder = services.embedder_for(call->model);
  for (orchestrator::EmbedInput& input : call->inputs) {
    const bool may_be_long = input.text.size() + kOwnTokens > static_cast<size_t>(embedder.context_length());
    if (input.ids.empty() && may_be_long) input = embedder.cut_to_fit(input.text);
  }
  return parsed;
}

std::unique_ptr<Answer> embed(const Services& services, Call call, OllamaEmbedCall& parsed) {
  auto asked = std::make_shared<OllamaEmbedCall>(std::move(parsed));
  if (const auto error = services.names.refuse_to_embed(asked->model)) {
    return answer_now(call, ollama_error_response(*error));
  }
  orchestrator::Embedder& embedder = services.embedder_for(asked->model);
  const auto write = [asked, model = embedder.model_name(), began = call.record->started()](const Embedded& embedded) {
    return embedded_text(*asked, embedded, model, began);
  };
  if (services.keeps_alive) std::erase(asked->ignored, "keep_alive");
  return answer_embedded(services, embedder, call, std::move(asked->inputs), asked->ignored, write,
                         ollama_error_response);
}

}  // namespace

void add_ollama_endpoints(Router& router, const Services& services) {
  const orchestrator::ChatService& chat = services.chat;
  const system_clock::time_point started = system_clock::now();
  router.add({.method = "GET", .path = "/api/version", .handler = [](Call call) {
                return answer_now(call, json_response(Json{{"version", kOllamaApi}}));
              }});
  router.add({.method = "GET", .path = "/api/tags", .handler = [services, started](Call call) {
                return answer_now(call, json_response(Json{{"models", listed_models(services, started)}}));
              }});
  router.add({.method = "GET", .path = "/api/ps", .handler = [services](Call call) {
                return answer_now(call, json_response(Json{{"models", Json::array({running_json(services)})}}));
              }});
  // It says the same of every model that it has.
  router.add({.method = "POST", .path = "/api/show", .handler = [services, started](Call call) {
                auto parsed = parse_ollama_show(call.request.body);
                const ApiError* wrong = std::get_if<ApiError>(&parsed);
                if (wrong) return answer_now(call, ollama_error_response(*wrong));
                const auto error = services.names.refuse_to_chat(std::get<OllamaShowCall>(parsed).model);
                return answer_now(call,
                                  error ? ollama_error_response(*error) : json_response(show_json(services, started)));
              }});
  add_parsed_route(
      router, services, "/api/chat",
      [&chat](const std::string& body) { return parse_ollama_chat(body, chat.defaults()); }, generate,
      ollama_error_response);
  add_parsed_route(
      router, services, "/api/generate",
      [&chat](const std::string& body) { return parse_ollama_generate(body, chat.defaults(), &chat.tokenizer()); },
      generate, ollama_error_response);
  const auto parse_for = [services](bool is_legacy) {
    return [services, is_legacy](const std::string& body) { return parse_embed(services, body, is_legacy); };
  };
  add_parsed_route(router, services, "/api/embed", parse_for(false), embed, ollama_error_response);
  add_parsed_route(router, services, "/api/embeddings", parse_for(true), embed, ollama_error_response);
}

}  // namespace chimere::server
