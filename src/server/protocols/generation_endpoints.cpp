// generation_endpoints.cpp  The endpoints that generate: chat completions, completions, responses, messages.
#include <ctime>
#include <utility>

#include "server/endpoints.h"
#include "server/job_answer.h"
#include "server/odo/start_chat.h"
#include "server/protocols/anthropic_request.h"
#include "server/protocols/anthropic_response.h"
#include "server/protocols/openai_chat_request.h"
#include "server/protocols/openai_chat_response.h"
#include "server/protocols/openai_completion_request.h"
#include "server/protocols/openai_completion_response.h"
#include "server/protocols/openai_input_items.h"
#include "server/protocols/openai_responses_request.h"
#include "server/protocols/openai_responses_response.h"
#include "server/protocols/shared/answer_generated.h"
#include "server/protocols/shared/engram_field.h"

namespace chimere::server {
namespace {

using orchestrator::ChatService;

ResponseHead response_head(const Services& services, const char* prefix, const std::string& asked) {
  ResponseHead head;
  head.id = new_object_id(prefix);
  head.model = answering_name(services, asked);
  head.created = static_cast<int64_t>(std::time(nullptr));
  head.system_fingerprint = services.system_fingerprint();
  return head;
}

// Of protocols that have no field for more.
odo::Ask asked_of(const Services& services, const std::string& model, const Call& call) {
  odo::Ask ask;
  ask.model = asked_name(services, call, model);
  ask.client = call.request.client;
  return ask;
}

KeptResponses::Entry kept_entry(const Json& whole, const std::string& owner, std::vector<KeptResponses::Item> items) {
  const size_t n_input = items.size();
  for (const Json& item : whole["output"]) items.push_back({item["id"].get<std::string>(), to_text(item)});
  return {whole["id"].get<std::string>(), owner,  std::move(items), to_text(whole),
          KeptResponses::Clock::now(),    n_input};
}

std::unique_ptr<Answer> chat_completion(const Services& services, Call call, ChatCall& asked) {
  asked.odo.model = asked.model = asked_name(services, call, asked.model);
  asked.odo.client = call.request.client;
  drop_read(services, asked.model, asked.ignored);
  if (is_run(services, asked.model)) {
    for (const std::string& name : asked.for_runs) std::erase(asked.ignored, name);
  }
  if (const auto error = refuse_chat(services, asked.odo, asked.n)) return answer_now(call, error_response(*error));
  ResponseHead head = response_head(services, "chatcmpl-", asked.model);
  head.logprobs = asked.request.logprobs;
  head.token_stats = asked.request.token_stats;
  head.include_usage = asked.include_usage;
  head.verbose = asked.verbose || services.verbose;
  asked.request.show_prompt = head.verbose;
  head.llama_words = call.request.is_llama_path;
  asked.request.memory.owner = memory_owner(call.request.client, asked.user);
  const std::string answer_id = head.id;
  Generation generation;
  generation.writer = chat_writer(std::move(head));
  services.limit(asked.request, call);
  generation.choices = start_chat(services, call, std::move(asked.odo), std::move(asked.request), asked.n, answer_id);
  generation.choices_per_prompt = static_cast<size_t>(asked.n);
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

std::unique_ptr<Answer> completion(const Services& services, Call call, CompletionCall& asked) {
  ChatService& chat = services.chat;
  if (const auto error = services.names.refuse_to_chat(asked.model)) return answer_now(call, error_response(*error));
  ResponseHead head = response_head(services, "cmpl-", {});
  head.logprobs = asked.prompts.front().logprobs;
  head.token_stats = asked.prompts.front().token_stats;
  head.include_usage = asked.include_usage;
  Generation generation;
  generation.choices_per_prompt = static_cast<size_t>(asked.n);
  for (orchestrator::CompletionRequest& prompt : asked.prompts) {
    prompt.memory.owner = memory_owner(call.request.client, asked.user);
    services.limit(prompt, call);
    for (auto& choice : chat.complete(std::move(prompt), asked.n, call.wake)) {
      generation.choices.push_back(std::move(choice));
    }
  }
  generation.writer = completion_writer(std::move(head), std::move(asked.echoes));
  generation.prompt_field = "prompt";
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

std::unique_ptr<Answer> response(const Services& services, Call call, ResponsesCall& asked) {
  const std::string& owner = call.request.client;
  const odo::Ask ask = asked_of(services, asked.model, call);
  if (const auto error = refuse_chat(services, ask)) return answer_now(call, error_response(*error));
  drop_read(services, ask.model, asked.ignored);
  asked.request.memory.owner = memory_owner(call.request.client, asked.user);
  ResponsesHead head;
  head.model = answering_name(services, ask.model);
  head.created = static_cast<int64_t>(std::time(nullptr));
  head.echo = asked.echo;
  head.tools = std::move(asked.tools);
  head.logprobs = asked.request.logprobs;
  head.token_stats = asked.request.token_stats;
  if (asked.is_kept) {
    head.keep = [kept = services.kept, owner, items = std::move(asked.items)](const Json& whole) {
      kept->put(kept_entry(whole, owner, items));
    };
  }
  Generation generation;
  generation.writer = responses_writer(std::move(head));
  generation.prompt_field = "input";
  services.limit(asked.request, call);
  generation.choices = start_chat(services, call, ask, std::move(asked.request));
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

// GET and DELETE /v1/responses/{id}.
std::unique_ptr<Answer> kept_response(const Services& services, Call call) {
  const std::string& owner = call.request.client;
  const bool forgets = call.request.method == "DELETE";
  std::optional<std::string> body = services.kept->body(owner, call.parameter);
  if (!body || (forgets && !services.kept->forget(owner, call.parameter))) {
    return answer_now(call, error_response({404, "no response '" + call.parameter + "' is kept",
                                            "invalid_request_error", "response_id", "not_found"}));
  }
  if (forgets) *body = to_text(Json{{"id", call.parameter}, {"object", "response"}, {"deleted", true}});
  return answer_now(call, {200, {{"Content-Type", "application/json"}}, std::move(*body)});
}

// GET /v1/responses/{id}/input_items. A long conversation is written by a worker.
std::unique_ptr<Answer> input_items(const Services& services, Call call) {
  auto parsed = parse_items_query(call.request.query);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  ItemsQuery& query = std::get<ItemsQuery>(parsed);
  const std::string ignored = ignored_header(query.ignored);
  auto write = [kept = services.kept, owner = call.request.client, id = call.parameter,
                query = std::move(query)]() -> Result<std::string> {
    const auto items = kept->input(owner, id);
    if (!items) return Error{Code::not_found, "no response '" + id + "' is kept"};
    return items_text(*items, id, query);
  };
  const auto failure = [](const Error& error) -> ApiError {
    if (error.code == Code::not_found) return {404, error.message, "invalid_request_error", "response_id", "not_found"};
    if (error.code == Code::invalid_argument) return {400, error.message, "invalid_request_error", "after", ""};
    return failed_work(error);
  };
  auto job = services.workers->run<std::string>(std::move(write), call.wake);
  const auto whole = [](const std::string& text) {
    return HttpResponse{200, {{"Content-Type", "application/json"}}, text};
  };
  return std::make_unique<JobAnswer<std::string>>(std::move(job), std::move(call.record), whole, failure, ignored);
}

std::unique_ptr<Answer> anthropic_message(const Services& services, Call call, AnthropicCall& asked) {
  const odo::Ask ask = asked_of(services, asked.model, call);
  if (const auto error = refuse_chat(services, ask)) return answer_now(call, anthropic_error_response(*error));
  drop_read(services, ask.model, asked.ignored);
  asked.request.memory.owner = memory_owner(call.request.client, asked.user);
  Generation generation;
  generation.writer = anthropic_writer(answering_name(services, ask.model), asked.request.token_stats);
  services.limit(asked.request, call);
  generation.choices = start_chat(services, call, ask, std::move(asked.request));
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

// With the texts that come back before the answers, one for each of them.
std::variant<CompletionCall, ApiError> parse_with_echoes(std::string_view body, const ChatService& chat) {
  auto parsed = parse_completion_call(body, chat.defaults());
  CompletionCall* call = std::get_if<CompletionCall>(&parsed);
  if (!call || !call->echo) return parsed;
  for (const orchestrator::CompletionRequest& prompt : call->prompts) {
    const std::string text =
        prompt.prompt_ids.empty() ? prompt.prompt : chat.tokenizer().decode(prompt.prompt_ids, true);
    call->echoes.insert(call->echoes.end(), static_cast<size_t>(call->n), text);
  }
  return parsed;
}

}  // namespace

void add_generation_endpoints(Router& router, const Services& services) {
  const ChatService& chat = services.chat;
  add_parsed_route(
      router, services, "/v1/chat/completions",
      [&chat](const std::string& body) { return parse_chat_call(body, chat.defaults()); }, chat_completion);
  add_parsed_route(
      router, services, "/v1/completions", [&chat](const std::string& body) { return parse_with_echoes(body, chat); },
      completion);
  // Its conversation may begin with what is kept for the key. What a worker holds of it must not be the services: they
  // own the workers.
  router.add({.method = "POST", .path = "/v1/responses", .handler = [services](Call call) {
                auto parse = [&chat = services.chat, kept = services.kept,
                              owner = call.request.client](const std::string& body) {
                  return parse_responses_call(body, chat.defaults(), kept, owner);
                };
                return answer_parsed<ResponsesCall>(services, std::move(call), std::move(parse), response);
              }});
  for (const char* method : {"GET", "DELETE"}) {
    router.add({.method = method, .path = "/v1/responses/{id}", .handler = [services](Call call) {
                  return kept_response(services, std::move(call));
                }});
  }
  router.add({.method = "GET", .path = "/v1/responses/{id}/input_items", .handler = [services](Call call) {
                return input_items(services, std::move(call));
              }});
  add_parsed_route(
      router, services, "/v1/messages",
      [&chat](const std::string& body) { return parse_anthropic_call(body, chat.defaults(), false); },
      anthropic_message, anthropic_error_response);
}

}  // namespace chimere::server
