#include "terminal/foreign_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "terminal/foreign_table.h"

namespace chimere::apps {
namespace {

using Kind = ForeignKind;

bool has_value(Kind kind) { return kind == Kind::value || kind == Kind::off || kind == Kind::refused; }

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value that stands behind one of the names.
std::optional<int> value_of(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> names) {
  std::optional<int> value;
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (std::find(names.begin(), names.end(), arguments[i]) != names.end()) value = number(arguments[i + 1]);
  }
  return value;
}

bool has(const std::vector<std::string>& arguments, std::string_view name) {
  return std::find(arguments.begin(), arguments.end(), name) != arguments.end();
}

std::string stem(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return std::string(path.substr(0, path.rfind('.')));
}

// Drafts by a name of llama-server; empty for those that are not here.
std::string_view mode_of_drafts(std::string_view type) {
  if (type == "none") return "off";
  if (type.find(',') != std::string_view::npos) return "auto";
  if (type.starts_with("ngram")) return "ngram";
  if (type == "draft-simple") return "draft";
  if (type == "draft-mtp") return "mtp";
  if (type == "draft-dflash") return "dflash";
  return "";
}

// "5m", "1h30m", "300" (seconds) or "-1" in minutes; nullopt: something else.
std::optional<double> minutes_of(std::string_view text) {
  if (text.starts_with("-")) return 0;  // for ever
  double minutes = 0;
  while (!text.empty()) {
    int n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const char unit = text.empty() ? 's' : text.front();
    if (unit != 'h' && unit != 'm' && unit != 's') return std::nullopt;
    minutes += unit == 'h' ? n * 60.0 : unit == 'm' ? n : n / 60.0;
    if (!text.empty()) text.remove_prefix(1);
  }
  return minutes;
}

std::vector<std::string> parts(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Programs that are pasted along, and what they do by themselves.
std::vector<std::string> without_program(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return arguments;
  const std::string program = stem(arguments[0] + ".");
  if (program == "llama-server") return {arguments.begin() + 1, arguments.end()};
  if (program != "ollama" || arguments.size() < 2) return arguments;
  const bool names_one = arguments[1] == "run" && arguments.size() > 2;
  if (arguments[1] != "serve" && !names_one) return arguments;
  // It serves all it has, and loads what is asked for. A question behind the name of a model is not for a server.
  std::vector<std::string> rest = {"--models", "ollama"};
  bool is_value = false;
  for (size_t i = names_one ? 3 : 2; i < arguments.size(); ++i) {
    const bool is_option = arguments[i].starts_with("-");
    if (is_option || is_value) rest.push_back(arguments[i]);
    is_value = is_option && (arguments[i] == "--keepalive" || arguments[i] == "--format");
  }
  return rest;
}

class Translation {
 public:
  explicit Translation(const std::vector<std::string>& given) : given_(given) {}

  Status add(size_t& i) {
    const std::string& name = given_[i];
    if (name == "--kv-unified" || name == "-kvu") return Ok{};  // said of --ctx-size, below
    if (name == "-cmoe") return add_words("--cpu-moe", "all");
    // There it is a flag.
    if (name == "--cpu-moe" && (i + 1 == given_.size() || given_[i + 1].starts_with("-"))) {
      return add_words("--cpu-moe", "all");
    }
    if (name == "--log-jsonl") return add_words("--log-format", "json");
    if (name == "--no-cache-prompt") return add_words("--cache-gb", "0");
    if (name == "--think" && (i + 1 == given_.size() || given_[i + 1].starts_with("-"))) {
      return add_words("--reasoning", "on");
    }
    if (i + 1 < given_.size()) {
      using Adder = Status (Translation::*)(const std::string&);
      struct {
        std::string_view names[4];
        Adder add;
      } const adders[] = {
          {{"--api-key"}, &Translation::add_keys},
          {{"--lora", "--lora-scaled"}, &Translation::add_adapters},
          {{"-ngl", "--n-gpu-layers"}, &Translation::add_layers},
          {{"-dev", "--device"}, &Translation::add_device},
          {{"-ot", "--override-tensor"}, &Translation::add_places},
          {{"--spec-type"}, &Translation::add_drafts},
          {{"--reasoning-budget"}, &Translation::add_budget},
          {{"--think"}, &Translation::add_thinking},
          {{"--keepalive"}, &Translation::add_keep_alive},
      };
      for (const auto& adder : adders) {
        const bool is_it = std::find(std::begin(adder.names), std::end(adder.names), name) != std::end(adder.names);
        if (is_it) return (this->*adder.add)(given_[++i]);
      }
    }
    const ForeignOption* known = foreign_option(name);
    if (!known) {
      words_.arguments.push_back(name);
      return Ok{};
    }
    if (known->kind == Kind::refused || known->kind == Kind::refused_flag) return refuse(name, known->ours);
    if (has_value(known->kind) && i + 1 == given_.size()) {
      return Error{Code::invalid_argument, name + ": expected a value behind it, found none"};
    }
    if (known->kind == Kind::value || known->kind == Kind::flag) words_.arguments.emplace_back(known->ours);
    if (known->kind == Kind::value)
      words_.arguments.push_back(known->ours == "--ctx" ? context(name, given_[i + 1]) : given_[i + 1]);
    if (known->kind == Kind::off || known->kind == Kind::off_flag) note(name, known->ours);
    if (has_value(known->kind)) ++i;
    return Ok{};
  }

  OwnWords take() { return std::move(words_); }

 private:
  static Status refuse(const std::string& name, std::string_view why) {
    return Error{Code::invalid_argument, name + ": " + std::string(why)};
  }

  void note(const std::string& name, std::string_view why) {
    words_.notes.push_back(name + " has no effect: " + std::string(why));
  }

  Status add_words(std::string name, std::string value) {
    words_.arguments.push_back(std::move(name));
    words_.arguments.push_back(std::move(value));
    return Ok{};
  }

  // There the context is divided among the slots, unless they share it.
  std::string context(const std::string& name, const std::string& text) const {
    const std::optional<int> all = number(text);
    const std::optional<int> slots = value_of(given_, {"-np", "--parallel"});
    const bool is_shared = name == "--kv-unified-per-slot" || has(given_, "--kv-unified") || has(given_, "-kvu");
    if (!all || !slots || *slots < 1 || is_shared) return text;
    return std::to_string(*all / *slots);
  }

  Status add_keys(const std::string& list) {
    for (const std::string& key : parts(list)) TRY(add_words("--api-key", key));
    return Ok{};
  }

  // Without a name it is called as its file. There it changes every answer, here those that ask for it.
  Status add_adapters(const std::string& list) {
    if (list.find('=') != std::string::npos) return add_words("--lora", list);
    for (const std::string& text : parts(list)) {
      const std::string name = stem(text.substr(0, text.find(".gguf")) + ".gguf");
      TRY(add_words("--lora", name + "=" + text));
      words_.notes.push_back("--lora " + text + ": requests that name it in `lora` (\"" + name + "\") use it");
    }
    return Ok{};
  }

  // A hundred layers and more are said of any model, by those who mean all that fits.
  Status add_layers(const std::string& layers) {
    if (layers == "0") return add_words("--vram", "0");
    const bool is_number = !layers.empty() && layers.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && layers.size() < 3 && layers != "99") return add_words("--gpu-layers", layers);
    note("-ngl", foreign_option("--fit")->ours);
    return Ok{};
  }

  Status add_device(const std::string& devices) {
    if (devices == "none") return add_words("--backend", "cpu");
    note("--device", foreign_option("--main-gpu")->ours);
    return Ok{};
  }

  // What people write there most often: all experts in RAM.
  Status add_places(const std::string& pattern) {
    const bool is_of_experts = pattern.find("exps") != std::string::npos && pattern.ends_with("=CPU");
    const bool names_layers = pattern.find_first_of("0123456789") != std::string::npos;
    if (is_of_experts && !names_layers && pattern.find(',') == std::string::npos) return add_words("--cpu-moe", "all");
    return refuse("--override-tensor " + pattern,
                  "tensors are not placed one by one; --cpu-moe N keeps the experts of the first N layers in RAM, "
                  "--vram says how much of the card is used");
  }

  Status add_drafts(const std::string& type) {
    const std::string_view mode = mode_of_drafts(type);
    if (!mode.empty()) return add_words("--speculate", std::string(mode));
    return refuse("--spec-type " + type,
                  "--speculate has auto, off, ngram, engram, mtp, draft (with --draft-model) and dflash (with "
                  "--drafter)");
  }

  Status add_budget(const std::string& tokens) {
    if (tokens == "0") return add_words("--reasoning", "off");
    if (tokens != "-1") return add_words("--thinking-budget", tokens);
    note("--reasoning-budget -1", "a thought may take half of the context; --thinking-budget says otherwise");
    return Ok{};
  }

  // Of `ollama run`.
  Status add_thinking(const std::string& how) {
    if (how == "true" || how == "false") return add_words("--reasoning", how == "true" ? "on" : "off");
    if (how == "low") return add_words("--thinking-mode", "fast");
    if (how == "medium" || how == "high") return add_words("--thinking-mode", "quality");
    return refuse("--think " + how, "expected true, false, low, medium or high");
  }

  Status add_keep_alive(const std::string& text) {
    const std::optional<double> minutes = minutes_of(text);
    if (!minutes) return refuse("--keepalive " + text, "expected a time as in 5m, 1h, 300 or -1");
    // 0 minutes is "never" here, and an unload at once there.
    std::string shown = std::to_string(*minutes == 0 && !text.starts_with("-") ? 0.01 : *minutes);
    shown.erase(shown.find_last_not_of('0') + 1);
    if (shown.ends_with(".")) shown.pop_back();
    return add_words("--idle-unload", shown);
  }

  const std::vector<std::string>& given_;
  OwnWords words_;
};

}  // namespace

Result<OwnWords> in_own_words(const std::vector<std::string>& arguments) {
  // "--ctx-size=4096" is two words as well.
  std::vector<std::string> words;
  for (const std::string& argument : without_program(arguments)) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool is_split = name == "--think" || name == "--keepalive" || name == "--reasoning-budget" ||
                          name == "--override-tensor" || name == "--spec-type" || name == "--device";
    if (argument.starts_with("-") && equals != std::string::npos && (is_split || foreign_option(name))) {
      words.push_back(name);
      words.push_back(argument.substr(equals + 1));
    } else {
      words.push_back(argument);
    }
  }
  Translation translation(words);
  for (size_t i = 0; i < words.size(); ++i) TRY(translation.add(i));
  return Result<OwnWords>{translation.take()};
}

Result<OwnWords> chat_in_own_words(const std::vector<std::string>& arguments) {
  OwnWords words;
  std::string question;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (!name.starts_with("-")) {
      if (words.arguments.empty()) {
        words.arguments.push_back(name);
      } else {
        question += (question.empty() ? "" : " ") + name;
      }
      continue;
    }
    const size_t equals = name.find('=');
    std::string value = equals == std::string::npos ? "" : name.substr(equals + 1);
    name = name.substr(0, equals);
    if (name == "--think") {
      if (value == "false") words.arguments.emplace_back("--no-think");
      if (value == "low") words.arguments.emplace_back("--thinking-mode=fast");
      if (value == "medium" || value == "high") words.arguments.emplace_back("--thinking-mode=quality");
    } else if (name == "--hidethinking") {
      words.arguments.emplace_back("--hide-thinking");
    } else if (name == "--keepalive") {
      if (equals == std::string::npos) ++i;
      words.notes.emplace_back("--keepalive has no effect: a model is loaded for as long as the chat lasts");
    } else if (name == "--verbose" || name == "--nowordwrap" || name == "--insecure") {
      words.notes.push_back(name + " has no effect: /help in a chat lists what can be shown");
    } else if (name == "--format") {
      return Error{Code::invalid_argument, "--format: requests to `chimere serve` say it: `response_format`"};
    } else {
      words.arguments.push_back(arguments[i]);
    }
  }
  if (words.arguments.empty() || words.arguments.front().starts_with("-")) {
    return Error{Code::invalid_argument,
                 "run: expected a model, found none; `chimere chat` talks to the one in the box"};
  }
  if (!question.empty()) words.arguments.insert(words.arguments.end(), {"-p", question});
  return Result<OwnWords>{std::move(words)};
}

}  // namespace chimere::apps
