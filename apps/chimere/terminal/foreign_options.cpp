// foreign_options.cpp  The table of llama-server's options, and the few that are more than another name.
#include "terminal/foreign_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace chimere::apps {
namespace {

enum class Kind {
  value,     // another name; its value goes along
  flag,      // another name, without a value
  off,       // has a value, and no effect here
  off_flag,  // has none
  refused,   // has a value; what it does is not here
  refused_flag
};

struct Foreign {
  std::string_view name;
  Kind kind;
  std::string_view ours;  // the name; or why it has no effect, or what to do instead
};

constexpr std::string_view kBatches = "the size of batches is chosen by the engine";
constexpr std::string_view kAlways = "it is always so";
constexpr std::string_view kPlaced = "weights go to the card as far as they fit; --vram and --cpu-moe say otherwise";
constexpr std::string_view kFromFile = "the file says so";
constexpr std::string_view kNoDownload = "nothing is downloaded here: give the path of a GGUF file";
constexpr std::string_view kNoImages = "this server reads text only";

constexpr auto kForeign = std::to_array<Foreign>({
    {"-m", Kind::value, "--model"},
    {"-c", Kind::value, "--ctx"},
    {"--ctx-size", Kind::value, "--ctx"},
    {"-np", Kind::value, "--parallel"},
    {"--predict", Kind::value, "--max-tokens"},
    {"--n-predict", Kind::value, "--max-tokens"},
    {"-s", Kind::value, "--seed"},
    {"--repeat-penalty", Kind::value, "--repetition-penalty"},
    {"-ctk", Kind::value, "--kv-k"},
    {"--cache-type-k", Kind::value, "--kv-k"},
    {"-ctv", Kind::value, "--kv-v"},
    {"--cache-type-v", Kind::value, "--kv-v"},
    {"-a", Kind::value, "--alias"},
    {"--ssl-cert-file", Kind::value, "--tls-cert"},
    {"--ssl-key-file", Kind::value, "--tls-key"},
    {"--chat-template-file", Kind::value, "--chat-template"},
    {"--cors-origins", Kind::value, "--cors"},
    {"-rea", Kind::value, "--reasoning"},
    {"--ncmoe", Kind::value, "--cpu-moe"},
    {"-ncmoe", Kind::value, "--cpu-moe"},
    {"--n-cpu-moe", Kind::value, "--cpu-moe"},
    {"-to", Kind::value, "--request-timeout"},
    {"--timeout", Kind::value, "--request-timeout"},
    {"--models-dir", Kind::value, "--models"},
    {"--no-ui", Kind::flag, "--no-page"},
    {"--no-webui", Kind::flag, "--no-page"},
    {"-v", Kind::flag, "--verbose"},
    {"-b", Kind::off, kBatches},
    {"--batch-size", Kind::off, kBatches},
    {"-ub", Kind::off, kBatches},
    {"--ubatch-size", Kind::off, kBatches},
    {"-fa", Kind::off, kAlways},
    {"--flash-attn", Kind::off, kAlways},
    {"-ngl", Kind::off, kPlaced},
    {"--gpu-layers", Kind::off, kPlaced},
    {"--n-gpu-layers", Kind::off, kPlaced},
    {"-tb", Kind::off, "--threads holds for prompts too"},
    {"--threads-batch", Kind::off, "--threads holds for prompts too"},
    {"--threads-http", Kind::off, "one thread serves all connections"},
    {"--pooling", Kind::off, kFromFile},
    {"--reasoning-format", Kind::off, "a thought is always told apart from the answer"},
    {"--cache-reuse", Kind::off, "prompts that begin alike share their states; --cache-gb says how much"},
    {"--cache-ram", Kind::off, "--cache-gb says how much memory prompts may share"},
    {"--slot-save-path", Kind::off, "states of prompts are kept by the cache; --cache-dir says where"},
    {"--rope-scaling", Kind::off, kFromFile},
    {"--rope-freq-base", Kind::off, kFromFile},
    {"--spec-draft-n-max", Kind::value, "--draft-max"},
    {"--draft", Kind::value, "--draft-max"},
    {"--spec-draft-n-min", Kind::off, "how far is guessed is chosen by what it gains; --speculate"},
    {"--draft-min", Kind::off, "how far is guessed is chosen by what it gains; --speculate"},
    {"--sleep-idle-seconds", Kind::off,
     "--idle-sleep says after how many minutes the card is given back, --idle-unload when models of a folder are "
     "unloaded"},
    {"-cb", Kind::off_flag, kAlways},
    {"--cont-batching", Kind::off_flag, kAlways},
    {"--jinja", Kind::off_flag, kAlways},
    {"--no-jinja", Kind::off_flag, "templates are always read as Jinja"},
    {"--metrics", Kind::off_flag, kAlways},
    {"--props", Kind::off_flag, kAlways},
    {"--slots", Kind::off_flag, kAlways},
    {"--embedding", Kind::off_flag, kAlways},
    {"--embeddings", Kind::off_flag, kAlways},
    {"--rerank", Kind::off_flag, kAlways},
    {"--reranking", Kind::off_flag, kAlways},
    {"--offline", Kind::off_flag, kAlways},
    {"--mlock", Kind::off_flag, "weights are read once and kept"},
    {"--no-mmap", Kind::off_flag, "weights are read once and kept"},
    {"--swa-full", Kind::off_flag, "sliding windows are kept as far as they are needed"},
    {"--no-warmup", Kind::off_flag, "there is none"},
    {"--no-context-shift", Kind::off_flag, kAlways},
    {"--no-cache-idle-slots", Kind::off_flag, "prompts are kept by the cache; --cache-gb 0 keeps none"},
    {"--no-mmproj", Kind::off_flag, kNoImages},
    {"--backend_sampling", Kind::off_flag, "tokens are drawn on the card where there is one"},
    {"--log-disable", Kind::off_flag, "--log-format says how it is written"},
    {"--api-key-file", Kind::refused, "--api-keys-file takes lines name:sha256, which `chimere keys` makes"},
    {"-hf", Kind::refused, kNoDownload},
    {"-hfr", Kind::refused, kNoDownload},
    {"--hf-repo", Kind::refused, kNoDownload},
    {"--hf-file", Kind::refused, kNoDownload},
    {"-mu", Kind::refused, kNoDownload},
    {"--model-url", Kind::refused, kNoDownload},
    {"--mmproj", Kind::refused, kNoImages},
    {"--mmproj-url", Kind::refused, kNoImages},
    {"-md", Kind::refused, "a second model that guesses ahead is not there yet; --speculate has what is"},
    {"--model-draft", Kind::refused, "a second model that guesses ahead is not there yet; --speculate has what is"},
    {"--spec-type", Kind::refused, "--speculate auto, ngram or mtp"},
    {"--grp-attn-n", Kind::refused, "contexts are not stretched by grouping; files with scaled positions have them"},
    {"--grp-attn-w", Kind::refused, "contexts are not stretched by grouping; files with scaled positions have them"},
    {"--context-shift", Kind::refused_flag,
     "a full context ends the answer; the page offers to go on without the oldest"},
});

const Foreign* foreign(std::string_view name) {
  const auto found =
      std::find_if(kForeign.begin(), kForeign.end(), [&](const Foreign& known) { return known.name == name; });
  return found == kForeign.end() ? nullptr : &*found;
}

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

class Translation {
 public:
  explicit Translation(const std::vector<std::string>& given) : given_(given) {}

  Status add(size_t& i) {
    const std::string& name = given_[i];
    if (name == "--kv-unified" || name == "-kvu") return Ok{};  // said of --ctx-size, below
    if (name == "--api-key" && i + 1 < given_.size()) return add_keys(given_[++i]);
    if (name == "--lora" && i + 1 < given_.size()) return add_adapter(given_[++i]);
    const Foreign* known = foreign(name);
    if (!known) {
      words_.arguments.push_back(name);
      return Ok{};
    }
    if (known->kind == Kind::refused || known->kind == Kind::refused_flag) {
      return Error{Code::invalid_argument, name + ": " + std::string(known->ours)};
    }
    if (has_value(known->kind) && i + 1 == given_.size()) {
      return Error{Code::invalid_argument, name + ": expected a value behind it, found none"};
    }
    if (known->kind == Kind::value || known->kind == Kind::flag) words_.arguments.emplace_back(known->ours);
    if (known->kind == Kind::value)
      words_.arguments.push_back(known->ours == "--ctx" ? context(given_[i + 1]) : given_[i + 1]);
    if (known->kind == Kind::off || known->kind == Kind::off_flag) {
      words_.notes.push_back(name + " has no effect: " + std::string(known->ours));
    }
    if (has_value(known->kind)) ++i;
    return Ok{};
  }

  OwnWords take() { return std::move(words_); }

 private:
  // There the context is divided among the slots, unless they share it.
  std::string context(const std::string& text) const {
    const std::optional<int> all = number(text);
    const std::optional<int> slots = value_of(given_, {"-np", "--parallel"});
    if (!all || !slots || *slots < 1 || has(given_, "--kv-unified") || has(given_, "-kvu")) return text;
    return std::to_string(*all / *slots);
  }

  Status add_keys(const std::string& list) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      words_.arguments.insert(words_.arguments.end(), {"--api-key", list.substr(begin, end - begin)});
      begin = end + 1;
    }
    return Ok{};
  }

  // Without a name it is called as its file. There it changes every answer, here those that ask for it.
  Status add_adapter(const std::string& text) {
    words_.arguments.emplace_back("--lora");
    if (text.find('=') != std::string::npos) {
      words_.arguments.push_back(text);
      return Ok{};
    }
    words_.arguments.push_back(stem(text) + "=" + text);
    words_.notes.push_back("--lora " + text + ": requests that name it in `lora` (\"" + stem(text) + "\") use it");
    return Ok{};
  }

  const std::vector<std::string>& given_;
  OwnWords words_;
};

}  // namespace

Result<OwnWords> in_own_words(const std::vector<std::string>& arguments) {
  // "--ctx-size=4096" is two words as well.
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (argument.starts_with("-") && equals != std::string::npos && foreign(argument.substr(0, equals))) {
      words.push_back(argument.substr(0, equals));
      words.push_back(argument.substr(equals + 1));
    } else {
      words.push_back(argument);
    }
  }
  Translation translation(words);
  for (size_t i = 0; i < words.size(); ++i) TRY(translation.add(i));
  return Result<OwnWords>{translation.take()};
}

}  // namespace chimere::apps
