// chat.cpp  `chimere chat MODEL`: a conversation in the terminal.
//
// On a terminal the thinking is dimmed, Ctrl-C stops the answer and a second one at the prompt leaves. With piped input
// every line is a message, and the output is plain text.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "common.h"
#include "orchestrator/chat_service.h"
#include "thinking.h"

namespace chimere::apps {
namespace {

using orchestrator::ChatChunk;
using orchestrator::ChatModel;
using orchestrator::ChatRequest;
using orchestrator::ChatService;
using orchestrator::Finish;

constexpr const char* kHelp =
    "/reset       forget the conversation\n"
    "/save FILE   write the conversation to FILE, as the messages of an API request\n"
    "/help        this text\n"
    "/quit        leave (so do Ctrl-D, and Ctrl-C twice)\n";

struct ChatOptions {
  ModelOptions model;
  int context = 0;
  std::string system;
  bool no_think = false;
  bool hide_thinking = false;
  int max_tokens = -1;
  std::vector<std::string> stop;
  std::vector<std::string> adapters;
  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  orchestrator::ThinkingOptions thinking;
};

volatile sig_atomic_t g_interrupts = 0;  // a signal handler has nothing else to write to

void on_interrupt(int) { g_interrupts = g_interrupts + 1; }

bool take_interrupt() {
  const bool interrupted = g_interrupts > 0;
  g_interrupts = 0;
  return interrupted;
}

// Lines of standard input. Reads by itself, because a stream would sleep through Ctrl-C.
class LineReader {
 public:
  enum class Outcome { line, interrupted, end };

  Outcome read(std::string& line) {
    for (;;) {
      const size_t newline = buffer_.find('\n');
      if (newline != std::string::npos || (at_end_ && !buffer_.empty())) {
        line = buffer_.substr(0, newline);
        buffer_.erase(0, newline == std::string::npos ? newline : newline + 1);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return Outcome::line;
      }
      if (at_end_) return Outcome::end;
      if (take_interrupt()) return Outcome::interrupted;
      // The signal may come to another thread, so waiting ends by itself now and then.
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, 100) <= 0) continue;
      char bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n > 0) {
        buffer_.append(bytes, static_cast<size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        at_end_ = true;
      }
    }
  }

 private:
  std::string buffer_;
  bool at_end_ = false;
};

class Conversation {
 public:
  Conversation(ChatService& service, const ChatOptions& options)
      : service_(service), options_(options), is_terminal_(isatty(STDOUT_FILENO) != 0) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back(message("system", options_.system));
  }

  Status save(const std::string& path) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const chat::Message& m : messages_) {
      nlohmann::ordered_json entry{{"role", m.role}, {"content", m.content.value_or("")}};
      if (m.reasoning_content) entry["reasoning_content"] = *m.reasoning_content;
      list.push_back(std::move(entry));
    }
    std::ofstream file(path);
    file << nlohmann::ordered_json{{"messages", std::move(list)}}.dump(2, ' ', false,
                                                                       nlohmann::ordered_json::error_handler_t::replace)
         << "\n";
    file.close();
    if (!file) return Error{Code::io, "cannot write " + path};
    return Ok{};
  }

  // Asks, prints the answer as it comes, remembers both.
  Status ask(const std::string& text) {
    messages_.push_back(message("user", text));
    const auto stream = service_.start(request());
    std::string thinking, content;
    for (;;) {
      if (take_interrupt()) stream->cancel();
      std::optional<ChatChunk> chunk = stream->wait(std::chrono::milliseconds(100));
      if (!chunk) continue;
      if (chunk->kind == ChatChunk::Kind::failed) {
        end_line();
        messages_.pop_back();
        return *chunk->error;
      }
      show(chunk->reasoning, true);
      show(chunk->content, false);
      thinking += chunk->reasoning;
      content += chunk->content;
      if (chunk->kind != ChatChunk::Kind::finished) continue;
      end_line();
      show_speed(*chunk);
      messages_.push_back(message("assistant", std::move(content)));
      if (!thinking.empty()) messages_.back().reasoning_content = std::move(thinking);
      return Ok{};
    }
  }

 private:
  static chat::Message message(const char* role, std::string content) {
    chat::Message m;
    m.role = role;
    m.content = std::move(content);
    return m;
  }

  ChatRequest request() const {
    ChatRequest request;
    for (const auto& entry : service_.adapters().list()) request.adapters.push_back({entry.name, std::nullopt});
    request.messages = messages_;
    request.sampling = service_.default_sampling();
    SamplingParams& s = request.sampling;
    s.temperature = options_.temperature.value_or(s.temperature);
    s.top_k = options_.top_k.value_or(s.top_k);
    s.top_p = options_.top_p.value_or(s.top_p);
    s.min_p = options_.min_p.value_or(s.min_p);
    s.repetition_penalty = options_.repetition_penalty.value_or(s.repetition_penalty);
    s.presence_penalty = options_.presence_penalty.value_or(s.presence_penalty);
    s.frequency_penalty = options_.frequency_penalty.value_or(s.frequency_penalty);
    request.seed = options_.seed;
    request.max_tokens = options_.max_tokens;
    request.stop = options_.stop;
    if (options_.no_think) request.enable_thinking = false;
    return request;
  }

  void show(const std::string& text, bool is_thinking) {
    if (text.empty() || (is_thinking && options_.hide_thinking)) return;
    if (is_thinking != in_thinking_) {
      if (in_thinking_) std::fputs(is_terminal_ ? "\033[0m\n\n" : "\n\n", stdout);
      if (is_thinking && is_terminal_) std::fputs("\033[2m", stdout);
      in_thinking_ = is_thinking;
    }
    for (const char c : text) {
      // What a model says must not steer the terminal.
      const bool is_control = (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 0x7f;
      if (!(is_terminal_ && is_control)) std::fputc(c, stdout);
    }
    std::fflush(stdout);
  }

  void end_line() {
    std::fputs(in_thinking_ && is_terminal_ ? "\033[0m\n" : "\n", stdout);
    in_thinking_ = false;
    std::fflush(stdout);
  }

  void show_speed(const ChatChunk& end) const {
    if (!is_terminal_) return;
    const engine::Usage& u = end.usage;
    const double speed = u.decode_seconds > 0 ? u.completion_tokens / u.decode_seconds : 0;
    const char* why = end.finish == Finish::length      ? ", cut at the limit"
                      : end.finish == Finish::loop      ? ", ended because it repeats itself"
                      : end.finish == Finish::cancelled ? ", stopped"
                                                        : "";
    std::printf("\033[2m[%d tokens, %.1f tok/s%s]\033[0m\n", u.completion_tokens, speed, why);
  }

  ChatService& service_;
  const ChatOptions& options_;
  const bool is_terminal_;
  std::vector<chat::Message> messages_;
  bool in_thinking_ = false;
};

// False when the conversation is over.
bool run_command(const std::string& line, Conversation& conversation) {
  const std::string name = line.substr(0, line.find(' '));
  const std::string argument = name.size() < line.size() ? line.substr(name.size() + 1) : std::string();
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/reset") {
    conversation.reset();
    std::fputs("The conversation is forgotten.\n", stderr);
  } else if (name == "/save" && !argument.empty()) {
    if (Status s = conversation.save(argument); !s) fail(s.error());
  } else if (name == "/help") {
    std::fputs(kHelp, stderr);
  } else {
    std::fprintf(stderr, "unknown command: %s\n%s", line.c_str(), kHelp);
  }
  return true;
}

void talk(Conversation& conversation, Outcome& outcome) {
  const bool interactive = isatty(STDIN_FILENO) != 0;
  if (interactive) std::fputs("Type a message; /help for commands.\n", stderr);
  LineReader reader;
  bool leaving = false;
  for (;;) {
    if (interactive) std::fputs("\n> ", stderr);
    std::string line;
    const LineReader::Outcome read = reader.read(line);
    if (read == LineReader::Outcome::end || (read == LineReader::Outcome::interrupted && leaving)) break;
    leaving = read == LineReader::Outcome::interrupted;
    if (leaving) {
      std::fputs("\n(Ctrl-C again to leave)", stderr);
      continue;
    }
    if (line.empty()) continue;
    if (line.front() == '/') {
      if (!run_command(line, conversation)) return;
      continue;
    }
    if (Status s = conversation.ask(line); !s) {
      fail(s.error());
      if (!interactive) outcome.code = 1;
    }
  }
  if (interactive) std::fputs("\n", stderr);
}

Status chat(const ChatOptions& o, Outcome& outcome) {
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = 1;
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(ChatModel chat_model, ChatModel::from_model(std::move(model)));
  chat_model.thinking = o.thinking;
  for (const std::string& warning : chat_model.warnings) std::fprintf(stderr, "chimere: %s\n", warning.c_str());
  TRY(load_adapters(o.adapters, *chat_model.adapters));
  if (!chat_model.chat_template) {
    return Error{Code::unsupported,
                 "this file can not be talked to: it may be a base model, which continues text but "
                 "answers no messages"};
  }
  ChatService service(std::move(chat_model), std::move(config));
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  Conversation conversation(service, o);
  talk(conversation, outcome);
  return Ok{};
}

}  // namespace

void add_chat(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Talk to a model in the terminal");
  add_model_options(*command, o->model, true);
  command->add_option("--system", o->system, "system prompt");
  command->add_flag("--no-think", o->no_think, "ask the model to answer without thinking first");
  command->add_flag("--hide-thinking", o->hide_thinking, "do not print the thinking");
  command->add_option("--ctx", o->context, "tokens of the conversation; 0: what the model was made for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("-n,--max-tokens", o->max_tokens, "tokens of one answer; -1: until the context is full")
      ->check(CLI::Range(-1, 1 << 30))
      ->capture_default_str();
  command->add_option("--stop", o->stop, "text that ends an answer; may be given several times");
  command->add_option(
      "--lora", o->adapters,
      "NAME=FILE[:SCALE], a LoRA adapter to talk with; may be given several times, their changes add up");
  command->add_option("--seed", o->seed, "same seed, same text; random when absent");
  const std::string file = "; the file's recommendation when absent";
  command->add_option("--temp,--temperature", o->temperature, "0: always the likeliest token" + file);
  command->add_option("--top-k", o->top_k, "draw from the k likeliest tokens" + file);
  command->add_option("--top-p", o->top_p, "draw from the fewest tokens that hold this probability" + file);
  command->add_option("--min-p", o->min_p, "draw from tokens at least this share as likely as the best" + file);
  command->add_option("--repetition-penalty", o->repetition_penalty, "1: off" + file);
  command->add_option("--presence-penalty", o->presence_penalty, "0: off");
  command->add_option("--frequency-penalty", o->frequency_penalty, "0: off");
  add_thinking_options(*command, o->thinking);
  command->callback([o, &outcome] {
    if (Status s = chat(*o, outcome); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
