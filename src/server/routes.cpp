// routes.cpp  The list of families, and the order of the checks.
#include "server/routes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/http/api_error.h"
#include "server/http/log.h"
#include "server/learning/improve_desk.h"
#include "server/protocols/anthropic_response.h"
#include "server/protocols/ollama_response.h"

namespace chimere::server {
namespace {

constexpr size_t kLongestLoggedBody = size_t{64} << 10;

// Other names of a path: llama.cpp's server has those of OpenAI without /v1.
constexpr std::pair<std::string_view, const char*> kAliases[] = {
    {"/chat/completions", "/v1/chat/completions"},
    {"/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"},
    {"/completions", "/completion"},
    {"/embeddings", "/v1/embeddings"},
    {"/models", "/v1/models"},
    {"/rerank", "/v1/rerank"},
    {"/reranking", "/v1/rerank"},
    {"/responses", "/v1/responses"},
    {"/v1/reranking", "/v1/rerank"},
    {"/v1/health", "/health"},
};

}  // namespace

void use_own_name(HttpRequest& head) {
  for (const auto& [alias, path] : kAliases) {
    if (head.path != alias) continue;
    head.path = path;
    head.is_llama_path = true;
    return;
  }
}

HttpResponse shaped_for(const HttpRequest& head, const ApiError& error) {
  const bool is_anthropic = head.path == "/v1/messages" || head.path.starts_with("/v1/messages/");
  if (head.path.starts_with("/api/")) return ollama_error_response(error);
  return is_anthropic ? anthropic_error_response(error) : error_response(error);
}

HttpResponse connection_error(const HttpRequest& head, int status, std::string message) {
  const bool ours = status >= 500;
  if (ours) message = without_folders(message);  // of what a library threw
  return shaped_for(head, {status, std::move(message), ours ? "server_error" : "invalid_request_error", "", ""});
}

bool has_others(const Monitor& monitor, const BatchHouse::IsOwn& is_own) {
  const auto& records = monitor.records();
  return std::any_of(records.begin(), records.end(),
                     [&](const RequestRecord* record) { return record->can_be_cancelled() && !is_own(record->id()); });
}

Routes::Routes(const Services& services, std::shared_ptr<Access> access, WatchConfig watch)
    : services_(services),
      access_(std::move(access)),
      log_prompts_(watch.log_prompts),
      housekeeping_(services_, watch.dump_on_stall) {
  services_.monitor.key_usage = &access_->usage();
  add_status_endpoints(router_, services_, access_);
  add_request_endpoints(router_, services_);
  add_model_endpoints(router_, services_);
  add_generation_endpoints(router_, services_);
  add_token_endpoints(router_, services_);
  add_embedding_endpoints(router_, services_);
  add_lora_endpoints(router_, services_);
  add_engram_endpoints(router_, services_);
  add_cache_endpoints(router_, services_);
  add_sleep_endpoints(router_, services_);
  add_llama_endpoints(router_, services_);
  add_ollama_endpoints(router_, services_);
  const auto stays = [&chat = services_.chat] {
    return std::shared_ptr<orchestrator::ChatService>(std::shared_ptr<void>(), &chat);
  };
  OdoDesk desk{services_.odo, services_.version, [&chat = services_.chat] { return chat.memory().usage(); }, stays};
  if (services_.hold_chat) desk.model = services_.hold_chat;
  add_odo_endpoints(router_, desk);
  add_conversation_endpoints(router_, services_.conversations, services_.workers);
  add_learning_endpoints(router_, services_.journal, learning_workers(services_.journal, services_.workers));
  add_improve_endpoints(router_, services_);
  add_batch_endpoints(router_, services_);
  add_collection_endpoints(router_, services_);
  add_pair_endpoints(router_, access_);
  if (services_.page) add_page_endpoints(router_);
}

void Routes::set_wake(Wake wake) {
  if (!services_.batches) return;
  wake_ = std::move(wake);
  BatchRunner::Means means{services_.batches, services_.workers, services_.monitor, access_};
  BatchHouse& house = *this;
  batches_ = std::make_unique<BatchRunner>(std::move(means), house, wake_);
}

std::unique_ptr<Answer> Routes::ask_for_batch(HttpRequest request) { return handle(std::move(request), wake_); }

bool Routes::others_ask(const IsOwn& is_own) { return has_others(services_.monitor, is_own); }

std::optional<engine::EngineStats> Routes::stats_of(const std::string&) { return services_.chat.engine().stats(); }

void Routes::tell_ends(std::function<void()> ring) { services_.monitor.on_end = std::move(ring); }

void Routes::work() {
  if (batches_) batches_->work();
}

HttpResponse Routes::logged(const HttpRequest& request, const Route* route, HttpResponse response) {
  RequestRecord record(request, route ? route->path : "", services_.monitor);
  record.set_status(response.status);
  return response;
}

std::optional<HttpResponse> Routes::refuse(HttpRequest& head) {
  use_own_name(head);
  const Router::Match match = router_.find(head.method, head.path);
  if (Cors::is_preflight(head) && !match.allowed.empty()) return std::nullopt;
  std::optional<ApiError> error = refusal_of(head, match);
  if (!error) return std::nullopt;
  HttpResponse response = shaped_for(head, *error);
  if (error->status == 405) response.add_header("Allow", match.allowed);
  if (access_->cors().allows(head)) Cors::open(head.header("Origin"), response);
  return logged(head, match.route, std::move(response));
}

std::optional<ApiError> Routes::refusal_of(HttpRequest& head, const Router::Match& match) {
  if (!match.route || match.route->needs_key) {
    if (auto refused = access_->refuse_stranger(head)) return refused;
  }
  if (match.allowed.empty()) {
    return ApiError{404, "no such path: " + head.path, "invalid_request_error", "", "not_found"};
  }
  if (!match.route) {
    return ApiError{405, head.path + ": expected " + match.allowed + ", found " + head.method, "invalid_request_error",
                    "", "method_not_allowed"};
  }
  if (auto refused = access_->refuse_over_budget(head)) return refused;
  // Those who watch are not counted: a page that asks every second would lock its user out.
  if (match.route->needs_key && !match.route->is_polled) return access_->refuse_too_many(head);
  return std::nullopt;
}

std::unique_ptr<Answer> Routes::handle(HttpRequest request, Wake wake) {
  use_own_name(request);
  Router::Match match = router_.find(request.method, request.path);
  if (!match.route) return immediate(logged(request, nullptr, access_->cors().leave(request, match.allowed)));
  if (log_prompts_ && !request.body.empty()) {
    spdlog::info("{} body {}", request.id, printable(request.body, kLongestLoggedBody));
  }
  auto record = std::make_unique<RequestRecord>(request, match.route->path, services_.monitor);
  if (match.route->is_polled) record->log_failures_only();
  if (services_.improve && !match.route->is_polled && request.method == "POST") services_.improve->people_ask();
  const std::string origin(access_->cors().allows(request) ? request.header("Origin") : std::string_view());
  auto answer =
      match.route->handler({std::move(request), std::move(match.parameter), std::move(wake), std::move(record)});
  return origin.empty() ? std::move(answer) : opened_to(origin, std::move(answer));
}

HttpResponse Routes::error(const HttpRequest& head, int status, std::string message) {
  HttpResponse response = connection_error(head, status, std::move(message));
  if (access_->cors().allows(head)) Cors::open(head.header("Origin"), response);
  HttpRequest known = head;
  if (known.method.empty()) known.method = "-";
  if (known.path.empty()) known.path = "-";
  return logged(known, router_.find(known.method, known.path).route, std::move(response));
}

void Routes::tick() {
  housekeeping_.tick();
  if (batches_) batches_->tick();
  if (services_.improve) services_.improve->tick();
  auto text = access_->usage().text_to_save();
  if (!text) return;
  services_.workers->post([file = access_->usage().file(), text = std::move(*text)] {
    if (const Status saved = KeyUsage::save(file, text); !saved) spdlog::warn("{}", saved.error().message);
  });
}

void Routes::end_answers() {
  if (batches_) batches_->stop();
  if (services_.improve) services_.improve->stop();
  for (RequestRecord* record : services_.monitor.records()) record->cancel(RequestRecord::CancelledBy::shutdown);
}

}  // namespace chimere::server
