#include "chat_commands.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

struct Call {
  std::string argument;  // all behind the name, without spaces around it
  ChatSession& session;
  ChatOptions& options;
  ChatScreen& screen;
};

ChatStep say(const Call& call, const std::string& text) {
  call.screen.tell(text);
  return {};
}

ChatStep report(const Call& call, const Status& status, const std::string& done) {
  if (status) return say(call, done);
  call.screen.error(status.error().message);
  return {};
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// "~/x" as a shell would read it.
std::string file_name(const std::string& text) {
  const char* home = std::getenv("HOME");
  return text.starts_with("~/") && home ? home + text.substr(1) : text;
}

// A setting that /set shows and changes. `set` is false when the text is no value for it.
struct Setting {
  const char* name;
  const char* meaning;
  std::string (*get)(const ChatOptions&, const SamplingParams& usual);
  bool (*set)(ChatOptions&, const std::string&);
};

template <class T>
bool parse(const std::string& text, T least, T most, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= least && out <= most;
}

template <class T>
bool parse_into(std::optional<T>& to, const std::string& text, T least, T most) {
  T value{};
  if (!parse(text, least, most, value)) return false;
  to = value;
  return true;
}

std::string as_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

using Usual = SamplingParams;
const Setting kSettings[] = {
    {"temperature", "0: always the likeliest token; 1: as the model was trained",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.temperature.value_or(u.temperature)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.temperature, t, 0.0f, 10.0f); }},
    {"top_k", "draw from the k likeliest tokens; 0: from all",
     [](const ChatOptions& o, const Usual& u) { return std::to_string(o.top_k.value_or(u.top_k)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.top_k, t, 0, 1 << 20); }},
    {"top_p", "draw from the fewest tokens that hold this probability; 1: from all",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.top_p.value_or(u.top_p)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.top_p, t, 0.0f, 1.0f); }},
    {"min_p", "draw from tokens at least this share as likely as the best; 0: from all",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.min_p.value_or(u.min_p)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.min_p, t, 0.0f, 1.0f); }},
    {"repetition_penalty", "1: off",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.repetition_penalty.value_or(u.repetition_penalty)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.repetition_penalty, t, 0.01f, 10.0f); }},
    {"presence_penalty", "0: off",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.presence_penalty.value_or(u.presence_penalty)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.presence_penalty, t, -2.0f, 2.0f); }},
    {"frequency_penalty", "0: off",
     [](const ChatOptions& o, const Usual& u) { return as_text(o.frequency_penalty.value_or(u.frequency_penalty)); },
     [](ChatOptions& o, const std::string& t) { return parse_into(o.frequency_penalty, t, -2.0f, 2.0f); }},
    {"max_tokens", "of one answer; -1: until the context is full",
     [](const ChatOptions& o, const Usual&) { return std::to_string(o.max_tokens); },
     [](ChatOptions& o, const std::string& t) { return parse(t, -1, 1 << 30, o.max_tokens); }},
    {"seed", "same seed, same text; `random` for another each time",
     [](const ChatOptions& o, const Usual&) { return o.seed ? std::to_string(*o.seed) : std::string("random"); },
     [](ChatOptions& o, const std::string& t) {
       if (t == "random") {
         o.seed.reset();
         return true;
       }
       return parse_into(o.seed, t, uint64_t{0}, UINT64_MAX);
     }},
};

ChatStep set(const Call& call) {
  const std::vector<std::string> given = words(call.argument);
  const SamplingParams& usual = call.session.service().defaults().sampling;
  std::vector<std::string> names;
  std::string list;
  for (const Setting& s : kSettings) {
    names.push_back(s.name);
    std::string line = "  " + names.back();
    line.resize(22, ' ');
    line += s.get(call.options, usual);
    line.resize(std::max<size_t>(line.size() + 1, 32), ' ');
    list += line + s.meaning + "\n";
    if (given.empty() || given[0] != s.name) continue;
    if (given.size() == 1) return say(call, given[0] + " is " + s.get(call.options, usual) + " (" + s.meaning + ")");
    if (given.size() == 2 && s.set(call.options, given[1])) return say(call, given[0] + " is now " + given[1] + ".");
    call.screen.error("/set " + given[0] + ": '" + call.argument.substr(given[0].size() + 1) +
                      "' is no value for it (" + s.meaning + ")");
    return {};
  }
  if (given.empty()) return say(call, list + "For example: /set temperature 0.2");
  const std::string near = nearest_word(given[0], names);
  call.screen.error("/set: there is no " + given[0] +
                    (near.empty() ? "; /set alone lists what there is" : "; did you mean " + near + "?"));
  return {};
}

ChatStep system(const Call& call) {
  if (call.argument.empty()) {
    return say(call, call.options.system.empty()
                         ? "There is no system prompt. For example: /system Answer in one sentence."
                         : "The system prompt is: " + call.options.system);
  }
  const bool none = call.argument == "none";
  call.options.system = none ? "" : call.argument;
  return say(call,
             none ? "There is no system prompt now." : "The system prompt is set; it holds from the next answer on.");
}

ChatStep think(const Call& call) {
  ChatOptions& o = call.options;
  int budget = 0;
  if (call.argument == "on") {
    o.think = true;
  } else if (call.argument == "off") {
    o.think = false;
  } else if (call.argument == "auto") {
    o.think.reset();
    o.thinking_budget = -1;
  } else if (call.argument == "show" || call.argument == "hide") {
    call.screen.show_thoughts(call.argument == "show");
  } else if (parse(call.argument, 1, 1 << 30, budget)) {
    o.think = true;
    o.thinking_budget = budget;
  } else if (!call.argument.empty()) {
    call.screen.error("/think: expected on, off, auto, show, hide or a number of tokens, found '" + call.argument +
                      "'");
    return {};
  }
  std::string state = !o.think   ? "The model thinks as its template says"
                      : *o.think ? "The model thinks first"
                                 : "The model answers without thinking";
  if (o.thinking_budget >= 0 && o.think.value_or(true))
    state += ", at most " + std::to_string(o.thinking_budget) + " tokens";
  return say(call, state + (call.screen.shows_thoughts() ? "; thoughts are shown." : "; thoughts are hidden."));
}

ChatStep regen(const Call& call) {
  const auto question = call.session.take_back();
  if (!question) return say(call, "There is no question to answer again yet.");
  return {ChatStep::Kind::ask, *question};
}

ChatStep edit(const Call& call) {
  const auto question = call.session.last_question();
  if (!question) return say(call, "There is no question to change yet.");
  return {ChatStep::Kind::edit, *question};
}

ChatStep save(const Call& call) {
  if (call.argument.empty()) return say(call, "Where to? For example: /save talk.json");
  const std::string path = file_name(call.argument);
  return report(call, call.session.save(path), "Saved to " + path + ".");
}

ChatStep load(const Call& call) {
  if (call.argument.empty()) return say(call, "Which one? For example: /load talk.json");
  const std::string path = file_name(call.argument);
  const Status loaded = call.session.load(path);
  return report(call, loaded, "Loaded " + std::to_string(call.session.n_messages()) + " messages from " + path + ".");
}

ChatStep model(const Call& call) {
  if (call.argument.empty()) return say(call, call.session.facts() + ". Another one: /model FILE.gguf");
  const Status changed = call.session.change_model(file_name(call.argument));
  return report(call, changed, changed ? call.session.facts() + ". The conversation goes on with it." : "");
}

ChatStep engram(const Call& call) {
  orchestrator::MemoryUse& use = call.options.memory;
  if (call.argument == "off") {
    use = {};
    return say(call, "No memory takes part.");
  }
  const auto job = call.session.service().memory().list(use.owner, {});
  auto result = job->poll();
  for (; !result; result = job->poll()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (!*result) return report(call, (*result).error(), "");
  const orchestrator::MemoryList& list = **result;
  std::vector<std::string> names;
  for (const auto& table : list.tables) names.push_back(table.name);
  names.insert(names.end(), list.passages.begin(), list.passages.end());
  orchestrator::MemoryUse asked;
  for (const std::string& name : words(call.argument)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = nearest_word(name, names);
      call.screen.error("/engram: there is no " + name + (near.empty() ? "" : "; did you mean " + near + "?"));
      return {};
    }
    const bool is_passages = std::find(list.passages.begin(), list.passages.end(), name) != list.passages.end();
    if (is_passages) {
      asked.passages = name;
    } else {
      asked.tables.push_back({name});
    }
  }
  if (!call.argument.empty()) {
    use = asked;
    return say(call, "These take part from the next answer on: " + call.argument + ". /engram off ends it.");
  }
  std::string text = names.empty() ? "There are no tables; start with --engram FOLDER."
                                   : "Tables and passages there are (* takes part):";
  for (const std::string& name : names) {
    const bool used = use.passages == name ||
                      std::any_of(use.tables.begin(), use.tables.end(), [&](const auto& t) { return t.name == name; });
    text += "\n  " + name + (used ? " *" : "");
  }
  return say(call, names.empty() ? text : text + "\nFor example: /engram " + names.front());
}

ChatStep stats(const Call& call) { return say(call, call.session.stats()); }

ChatStep clear(const Call& call) {
  call.session.clear();
  return say(call, "The conversation is forgotten; settings and system prompt stay.");
}

ChatStep leave(const Call&) { return {ChatStep::Kind::leave, ""}; }
ChatStep help(const Call& call);

struct Command {
  const char* name;
  const char* argument;
  const char* meaning;
  const char* more;  // for `/help NAME`
  ChatStep (*run)(const Call&);
};

constexpr Command kCommands[] = {
    {"/regen", "", "answer the last question again",
     "The answer before is forgotten. With /set temperature 0 it would be the same.", regen},
    {"/edit", "", "change the last question and ask it again",
     "The question stands there to be changed; Enter asks it, Ctrl-C leaves all as it was.", edit},
    {"/system", "TEXT", "how the model should behave",
     "Alone it shows the text; /system none takes it away.\nFor example: /system You are a pirate.", system},
    {"/think", "on|off|N", "think before answering, at most N tokens",
     "Also: auto (as the model's template says), show and hide (thoughts on the screen).\nFor example: /think 200",
     think},
    {"/set", "NAME VALUE", "temperature, max_tokens and others",
     "Alone it lists what there is and what it is set to.\nFor example: /set temperature 0.2", set},
    {"/engram", "NAME...", "memory tables that take part",
     "Alone it lists them; /engram off ends it. docs/engram.md says what they are.", engram},
    {"/model", "FILE", "talk to another model",
     "Alone it says which one this is. The conversation goes on.\nFor example: /model ~/models/other.gguf", model},
    {"/save", "FILE", "keep the conversation",
     "As the messages of an API request, in JSON.\nFor example: /save talk.json", save},
    {"/load", "FILE", "go on with a kept one", "What /save wrote.\nFor example: /load talk.json", load},
    {"/stats", "", "tokens, speed, how full the context is", "", stats},
    {"/clear", "", "begin a new conversation", "Settings and system prompt stay.", clear},
    {"/help", "NAME", "this list, or more about one command", "For example: /help think", help},
    {"/quit", "", "leave; so does Ctrl-D", "", leave},
};

ChatStep help(const Call& call) {
  const std::string name = call.argument.starts_with("/") ? call.argument : "/" + call.argument;
  std::string text;
  for (const Command& c : kCommands) {
    std::string line = std::string("  ") + c.name + " " + c.argument;
    line.resize(std::max<size_t>(line.size() + 1, 21), ' ');
    line += c.meaning;
    if (name == c.name) return say(call, line + (*c.more ? std::string("\n") + c.more : ""));
    text += line + "\n";
  }
  return say(call,
             "Type a question and press Enter. Ctrl-C stops an answer, Ctrl-D leaves.\n"
             "Several lines: end a line with \\ or press Alt-Enter; a paste of many lines is one question.\n"
             "Up and Down bring back earlier questions, Ctrl-R searches them.\n\n" +
                 text +
                 "\nFrom the shell, the answer alone on standard output:\n"
                 "  chimere chat -p \"Say hello in French\"\n"
                 "  cat notes.txt | chimere chat -p \"Sum this up:\"");
}

}  // namespace

bool is_chat_command(const std::string& line) {
  if (line.size() < 2 || line[0] != '/' || line.find('\n') != std::string::npos) return false;
  const std::string name = line.substr(1, line.find(' ') - 1);
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

ChatStep run_chat_command(const std::string& line, ChatSession& session, ChatOptions& options, ChatScreen& screen) {
  const std::string name = line.substr(0, line.find(' '));
  std::string argument = line.substr(name.size());
  argument.erase(0, argument.find_first_not_of(' '));
  while (!argument.empty() && argument.back() == ' ') argument.pop_back();
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (name == c.name || (name == "/exit" && c.run == leave)) return c.run({argument, session, options, screen});
    names.push_back(c.name);
  }
  const std::string near = nearest_word(name, names);
  screen.error("there is no " + name + (near.empty() ? "; /help lists the commands" : "; did you mean " + near + "?") +
               " (a space in front makes it a question)");
  return {};
}

}  // namespace chimere::apps
