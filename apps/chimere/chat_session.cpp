#include "chat_session.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "terminal/signals.h"

namespace chimere::apps {
namespace {

using Json = nlohmann::ordered_json;
using orchestrator::ChatChunk;
using orchestrator::ChatModel;
using orchestrator::ChatRequest;
using orchestrator::ChatService;
using orchestrator::Finish;

constexpr uintmax_t kMaxSavedBytes = 64 << 20;

chat::Message message(std::string role, std::string content) {
  chat::Message m;
  m.role = std::move(role);
  m.content = std::move(content);
  return m;
}

Result<Json> read_saved(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return Error{Code::not_found, path + ": " + error.message()};
  if (size > kMaxSavedBytes) return Error{Code::invalid_argument, path + ": larger than any conversation"};
  std::ifstream file(path);
  Json saved = Json::parse(file, nullptr, false);
  const bool is_conversation = saved.is_object() && saved.contains("messages") && saved["messages"].is_array();
  if (!is_conversation) {
    return Error{Code::invalid_argument, path + ": expected JSON with \"messages\", as /save writes it"};
  }
  return Result<Json>{std::move(saved)};
}

std::string percent(double part) { return std::to_string(static_cast<int>(100 * part + 0.5)) + " %"; }

std::string tokens_a_second(double tokens, double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f tok/s", seconds > 0 ? tokens / seconds : 0.0);
  return text;
}

}  // namespace

Status ChatSession::open() {
  engine::EngineConfig config;
  config.context_length = options_.context;
  config.max_running = 1;
  options_.speculate.apply_to(config);
  TRY_ASSIGN(const std::string chat_template, read_chat_template(options_.chat_template_file));
  ModelOptions model_options = options_.model;
  model_options.speculate = options_.speculate.mode;
  model_options.context = options_.context;
  TRY_ASSIGN(auto draft_model, load_draft_model(options_.speculate.draft_model, model_options));
  TRY_ASSIGN(auto model, load_model(model_options));
  if (!model->draft_problem().empty()) screen_.warn("the MTP block is not used: " + model->draft_problem());
  if (const std::string placed = placement_text(*model); !placed.empty()) screen_.note(placed);
  if (const std::string warning = context_warning(*model, options_.context); !warning.empty()) screen_.warn(warning);
  TRY_ASSIGN(ChatModel chat_model, ChatModel::from_model(std::move(model), chat_template));
  if (!chat_model.chat_template) {
    return Error{
        Code::unsupported,
        "this file can not be talked to: it has no chat template and may be a base model, which continues text "
        "and answers no messages (`chimere serve` does so at /v1/completions); give a template with "
        "--chat-template FILE, or look for an instruct or chat version of the model"};
  }
  TRY(add_draft_model(chat_model, std::move(draft_model)));
  chat_model.thinking = options_.thinking;
  chat_model.open_memories(options_.engram, shipped_tables());
  for (const std::string& warning : chat_model.warnings) screen_.note(warning);
  TRY(load_adapters(options_.adapters, *chat_model.adapters));
  service_ = std::make_unique<ChatService>(std::move(chat_model), std::move(config));
  return Ok{};
}

Status ChatSession::change_model(const std::string& path) {
  const std::string before = options_.model.path;
  service_.reset();  // there may not be memory for two
  options_.model.path = path;
  Status opened = open();
  if (opened) return Ok{};
  options_.model.path = before;
  TRY(open());
  return opened;
}

ChatRequest ChatSession::request() const {
  ChatRequest request;
  for (const auto& entry : service_->adapters().list()) request.adapters.push_back({entry.name, std::nullopt});
  if (!options_.system.empty()) request.messages.push_back(message("system", options_.system));
  request.messages.insert(request.messages.end(), messages_.begin(), messages_.end());
  request.sampling = service_->defaults().sampling;
  options_.apply_to(request.sampling);
  request.seed = options_.seed;
  request.max_tokens = options_.max_tokens;
  request.stop = options_.stop;
  request.enable_thinking = options_.think;
  request.thinking_budget = options_.thinking_budget;
  request.memory = options_.memory;
  return request;
}

Status ChatSession::ask(const std::string& question) {
  messages_.push_back(message("user", question));
  was_stopped_ = false;
  const auto stream = service_->start(request());
  std::string thinking, content;
  for (;;) {
    if (take_interrupt() || asked_to_end()) {
      was_stopped_ = true;
      stream->cancel();
    }
    std::optional<ChatChunk> chunk = stream->wait(std::chrono::milliseconds(100));
    if (!chunk) continue;
    if (chunk->kind == ChatChunk::Kind::failed) {
      screen_.end_answer();
      messages_.pop_back();
      if (!chunk->is_too_long) return *chunk->error;
      return Error{chunk->error->code,
                   chunk->error->message + (options_.talks ? ". /clear begins a new conversation; --ctx N makes room"
                                                           : ". --ctx N makes room")};
    }
    screen_.thought(chunk->reasoning);
    screen_.answer(chunk->content);
    thinking += chunk->reasoning;
    content += chunk->content;
    if (chunk->kind != ChatChunk::Kind::finished) continue;
    screen_.end_answer();
    show_speed(*chunk);
    if (content.empty() && !thinking.empty() && chunk->finish == Finish::length) {
      screen_.warn("There is no answer: the thought took all " + std::to_string(chunk->usage.completion_tokens) +
                   " tokens. -n N allows more, --no-think answers without one.");
    }
    messages_.push_back(message("assistant", std::move(content)));
    if (!thinking.empty()) messages_.back().reasoning_content = std::move(thinking);
    last_ = chunk->usage;
    ++n_answers_;
    n_tokens_ += chunk->usage.completion_tokens;
    decode_seconds_ += chunk->usage.decode_seconds;
    return Ok{};
  }
}

void ChatSession::show_speed(const ChatChunk& end) const {
  const engine::Usage& u = end.usage;
  const char* why = end.finish == Finish::length      ? ", cut at the limit"
                    : end.finish == Finish::loop      ? ", ended because it repeats itself"
                    : end.finish == Finish::cancelled ? ", stopped"
                                                      : "";
  screen_.note("[" + std::to_string(u.completion_tokens) + " tokens, " +
               tokens_a_second(u.completion_tokens, u.decode_seconds) + why + "]");
  const double full = static_cast<double>(u.prompt_tokens + u.completion_tokens) / service_->context_length();
  if (full > 0.8 && options_.talks)
    screen_.note("The context is " + percent(full) + " full; /clear begins a new conversation.");
}

std::optional<std::string> ChatSession::last_question() const {
  for (auto m = messages_.rbegin(); m != messages_.rend(); ++m) {
    if (m->role == "user") return chat::text_of(*m);
  }
  return std::nullopt;
}

std::optional<std::string> ChatSession::take_back() {
  std::optional<std::string> question = last_question();
  if (!question) return question;
  while (messages_.back().role != "user") messages_.pop_back();
  messages_.pop_back();
  return question;
}

Status ChatSession::save(const std::string& path) const {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !read_saved(path)) {
    return Error{Code::invalid_argument, path + " exists and is no saved conversation; it stays as it is"};
  }
  Json list = Json::array();
  if (!options_.system.empty()) list.push_back({{"role", "system"}, {"content", options_.system}});
  for (const chat::Message& m : messages_) {
    Json entry{{"role", m.role}, {"content", chat::text_of(m)}};
    if (m.reasoning_content) entry["reasoning_content"] = *m.reasoning_content;
    list.push_back(std::move(entry));
  }
  std::ofstream file(path);
  file << Json{{"messages", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  file.close();
  if (!file) return Error{Code::io, "cannot write " + path};
  return Ok{};
}

Status ChatSession::load(const std::string& path) {
  TRY_ASSIGN(const Json saved, read_saved(path));
  std::vector<chat::Message> messages;
  std::string system;
  for (const Json& entry : saved["messages"]) {
    const auto text = [&](const char* key) {
      const auto found = entry.is_object() ? entry.find(key) : entry.end();
      return entry.is_object() && found != entry.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
    };
    const std::string role = text("role");
    const bool known = role == "system" || role == "user" || role == "assistant";
    if (!known || !entry.contains("content") || !entry["content"].is_string()) {
      return Error{Code::invalid_argument,
                   path + ": expected messages of system, user and assistant with a text as content"};
    }
    if (role == "system") {
      system = text("content");
      continue;
    }
    messages.push_back(message(role, text("content")));
    if (entry.contains("reasoning_content")) messages.back().reasoning_content = text("reasoning_content");
  }
  messages_ = std::move(messages);
  options_.system = std::move(system);
  return Ok{};
}

std::string ChatSession::facts() const {
  const orchestrator::ModelInfo& info = service_->model_info();
  return service_->model_info().name + ", " + human_count(info.parameters) + " parameters, a context of " +
         std::to_string(service_->context_length()) + " tokens";
}

std::string ChatSession::stats() const {
  std::string text = facts() + "\n";
  if (!last_) return text + "No answer yet.";
  const int used = last_->prompt_tokens + last_->completion_tokens;
  text += "last answer   " + std::to_string(last_->completion_tokens) + " tokens";
  if (last_->reasoning_tokens > 0) text += " (" + std::to_string(last_->reasoning_tokens) + " of them thought)";
  text += ", " + tokens_a_second(last_->completion_tokens, last_->decode_seconds);
  if (last_->draft_tokens > 0) text += ", " + std::to_string(last_->draft_tokens_accepted) + " guessed ahead";
  text += "\n";
  text += "its question  " + std::to_string(last_->prompt_tokens) + " tokens with all before it, " +
          std::to_string(last_->cached_tokens) + " of them known already\n";
  text += "all answers   " + std::to_string(n_answers_) + ", " + std::to_string(n_tokens_) + " tokens, " +
          tokens_a_second(static_cast<double>(n_tokens_), decode_seconds_) + "\n";
  text += "context       " + std::to_string(used) + " of " + std::to_string(service_->context_length()) + " tokens, " +
          percent(static_cast<double>(used) / service_->context_length());
  return text;
}

}  // namespace chimere::apps
