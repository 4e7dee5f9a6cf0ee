#include "server/odo/start_chat.h"

#include <utility>

#include "improve/workbench.h"
#include "server/learning/improve_desk.h"
#include "server/learning/journaled_stream.h"
#include "store/journal.h"

namespace chimere::server {

std::string asked_name(const Services& services, const Call& call, const std::string& named) {
  const bool is_meant = call.request.by_side_port && services.odo && !odo::Odo::is_odo(named);
  return is_meant && !services.names.refuse_to_chat(named) ? "odo" : named;
}

bool is_run(const Services& services, const std::string& asked) { return services.odo && odo::Odo::is_odo(asked); }

void drop_read(const Services& services, const std::string& asked, std::vector<std::string>& ignored) {
  if (services.hold_chat && is_run(services, asked)) std::erase(ignored, kBaseModel);
}

std::optional<ApiError> refuse_chat(const Services& services, const odo::Ask& ask, int n) {
  if (!is_run(services, ask.model)) return services.names.refuse_to_chat(ask.model);
  if (n != 1) {
    return ApiError{400, "n: expected 1 of '" + ask.model + "', found " + std::to_string(n), "invalid_request_error",
                    "n", ""};
  }
  const Status known = services.odo->check(ask);
  if (known) return std::nullopt;
  if (known.error().code == Code::not_found) {
    return ApiError{404, "model: " + known.error().message, "invalid_request_error", "model", "model_not_found"};
  }
  return ApiError{400, known.error().message, "invalid_request_error", "odo", ""};
}

namespace {

// What was learned for the owner takes part; gives its names. Tables do so by themselves (engram::Library::use_learned).
std::vector<std::string> use_learned(const Services& services, const odo::Ask& ask,
                                     orchestrator::ChatRequest& request) {
  if (!services.improve || request.memory.alpha <= 0) return {};
  const auto served = services.improve->in_use().of(request.memory.owner);
  if (!served) return {};
  std::vector<std::string> names = served->names;
  if (!served->adapter.empty()) {
    // One that is still being read takes no part.
    auto adapter = request.adapters.empty() ? services.improve->adapters().find(served->adapter) : nullptr;
    if (!adapter) std::erase_if(names, [](const std::string& name) { return name.starts_with("lora@"); });
    if (adapter) request.adapters.push_back({adapter->name, std::nullopt, adapter});
  }
  const auto drop = [&](std::string_view kind) {
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(std::string(kind) + "@"); });
  };
  if (is_run(services, ask.model)) {
    for (const char* kind : {"prompts", "closing", "words", "examples", "thinking"}) drop(kind);
    return names;
  }
  if (const auto prompt = served->prompts.find(""); prompt != served->prompts.end()) {
    request.messages = improve::with_system(std::move(request.messages), prompt->second);
  }
  if (request.tools.empty()) drop("words");
  improve::tell_tool_words(served->words, request.tools, request.messages);
  request.closing = served->closing;
  request.examples = served->examples;
  if (served->thoughts && !improve::use_thought_setting(*served->thoughts, request)) drop("thinking");
  return names;
}

}  // namespace

std::vector<std::unique_ptr<orchestrator::AnswerStream>> start_chat(const Services& services, const Call& call,
                                                                    odo::Ask ask, orchestrator::ChatRequest request,
                                                                    int n, std::string answer_id) {
  // Of several answers to one question the first is kept: what is said of the request is said of it.
  std::optional<store::JournalAnswer> entry;
  if (services.journal && !request.stays_private && services.journal->hears(request.memory.owner)) {
    entry = journal_entry(request, answering_name(services, ask.model), call.request.id, std::move(answer_id));
  }
  const std::vector<std::string> learned = use_learned(services, ask, request);
  if (entry) entry->artefacts.insert(entry->artefacts.end(), learned.begin(), learned.end());
  std::vector<std::unique_ptr<orchestrator::AnswerStream>> choices;
  if (is_run(services, ask.model)) {
    if (services.hold_chat) ask.chat = services.hold_chat();
    choices.push_back(services.odo->start(std::move(ask), std::move(request), call.wake));
  } else {
    for (auto& stream : services.chat.start(std::move(request), n, call.wake)) choices.push_back(std::move(stream));
  }
  if (entry) choices.front() = journaled(std::move(choices.front()), services.journal, std::move(*entry));
  return choices;
}

std::string answering_name(const Services& services, const std::string& asked) {
  return is_run(services, asked) ? asked : services.names.chat;
}

}  // namespace chimere::server
