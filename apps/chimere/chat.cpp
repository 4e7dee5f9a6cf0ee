// chat.cpp  `chimere chat MODEL`: a conversation in the terminal, or one question and its answer.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "chat_commands.h"
#include "chat_options.h"
#include "chat_screen.h"
#include "chat_session.h"
#include "commands.h"
#include "data_folder.h"
#include "terminal/line_editor.h"
#include "terminal/signals.h"
#include "thinking.h"

namespace chimere::apps {
namespace {

constexpr size_t kMaxPipedBytes = size_t{64} << 20;  // more tokens than any context has

// All of standard input.
Result<std::string> read_pipe() {
  std::string text;
  for (char bytes[65536];;) {
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{Code::io, std::string("standard input: ") + std::strerror(errno)};
    if (n == 0) break;
    text.append(bytes, static_cast<size_t>(n));
    if (text.size() > kMaxPipedBytes) {
      return Error{Code::invalid_argument, "standard input: expected at most 64 MiB of text, found more"};
    }
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return Result<std::string>{std::move(text)};
}

// The prompt of the command line, then what came through the pipe.
Result<std::string> one_question(const ChatOptions& o) {
  std::string piped;
  if (isatty(STDIN_FILENO) == 0) {
    TRY_ASSIGN(piped, read_pipe());
  }
  std::string question = o.prompt;
  if (!question.empty() && !piped.empty()) question += "\n\n";
  question += piped;
  if (question.empty()) {
    return Error{Code::invalid_argument,
                 "there is no question: standard input is empty; give one with -p TEXT or through a pipe"};
  }
  return Result<std::string>{std::move(question)};
}

void talk(ChatSession& session, ChatOptions& options, ChatScreen& screen, FILE* echo) {
  const std::string data = data_folder();
  InputHistory history(data.empty() ? "" : data + "/chat-history");
  LineEditor editor(echo, history, screen.has_colours());
  bool told_of_history = false;
  std::string draft;
  bool edits = false;  // the draft is the last question, which the new wording replaces
  for (;;) {
    std::fputs("\n", echo);
    std::string line;
    const LineEditor::Outcome outcome = editor.read(line, draft);
    const bool replaces = std::exchange(edits, false);
    draft.clear();
    if (outcome == LineEditor::Outcome::end) return;
    if (outcome == LineEditor::Outcome::interrupted) {
      screen.note("Ctrl-D leaves.");
      continue;
    }
    if (line.find_first_not_of(" \n\t") == std::string::npos) continue;
    if (Status kept = history.add(line); !kept && !std::exchange(told_of_history, true)) {
      screen.note("What you type is not kept: " + kept.error().message);
    }
    ChatStep step{ChatStep::Kind::ask, line};
    if (is_chat_command(line)) {
      step = run_chat_command(line, session, options, screen);
    } else if (replaces) {
      session.take_back();
    }
    if (step.kind == ChatStep::Kind::leave) return;
    if (step.kind == ChatStep::Kind::edit) {
      draft = step.text;
      edits = true;
    }
    if (step.kind != ChatStep::Kind::ask) continue;
    if (Status answered = session.ask(step.text); !answered) screen.error(answered.error().message);
    if (asked_to_end()) return;
  }
}

Status chat(ChatOptions& o, Outcome& outcome) {
  const bool has_keyboard = isatty(STDIN_FILENO) != 0;
  FILE* echo = isatty(STDOUT_FILENO) != 0 ? stdout : isatty(STDERR_FILENO) != 0 ? stderr : nullptr;
  const bool talks = o.talks = o.prompt.empty() && has_keyboard && echo;
  ChatScreen screen(!o.hide_thinking);
  std::string question;
  if (!talks) {
    TRY_ASSIGN(question, one_question(o));
  }
  ChatSession session(o, screen);
  TRY(session.open());
  catch_signals();
  if (talks) {
    screen.note(session.facts() + ". /help lists commands, Ctrl-D leaves.");
    talk(session, o, screen, echo);
    return Ok{};
  }
  TRY(session.ask(question));
  if (session.was_stopped()) outcome.code = 130;  // as shells say of a process that Ctrl-C ended
  return Ok{};
}

}  // namespace

void add_chat(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Talk to a model in the terminal");
  add_model_options(*command, o->model, true);
  command->add_option("-p,--prompt", o->prompt,
                      "ask this, print the answer and end; what comes through a pipe is put behind it");
  command->add_option("--system", o->system, "system prompt");
  command->add_option("--chat-template", o->chat_template_file,
                      "Jinja file to render conversations with, or a name (chatml, llama3, gemma, ...); the file's own "
                      "template when absent");
  command->add_flag_callback(
      "--no-think", [o] { o->think = false; }, "ask the model to answer without thinking first");
  command->add_flag("--hide-thinking", o->hide_thinking, "do not print the thinking");
  command->add_option("--ctx", o->context, "tokens of the conversation; 0: what the model was made for")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--stop", o->stop, "text that ends an answer; may be given several times");
  command->add_option(
      "--lora", o->adapters,
      "NAME=FILE[:SCALE], a LoRA adapter to talk with; may be given several times, their changes add up");
  command->add_option("--engram", o->engram, "folder of Engram tables that /engram may name");
  add_sampling_options(*command, *o);
  add_thinking_options(*command, o->thinking);
  add_speculate_options(*command, o->speculate);
  add_drafter_option(*command, o->model);
  command->footer(
      "In a terminal it is a conversation: /help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.\n"
      "With -p or a pipe it is one question, and only the answer goes to standard output:\n\n"
      "  chimere chat -p \"Say hello in French\"\n"
      "  cat notes.txt | chimere chat -p \"Sum this up:\"");
  command->callback([o, &outcome] {
    if (Status s = chat(*o, outcome); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
