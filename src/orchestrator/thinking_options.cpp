// thinking_options.cpp  From words and modes to the numbers and ids that the engine steers by.
#include "orchestrator/thinking_options.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace chimere::orchestrator {
namespace {

constexpr const char* kWarning = "\nI have thought about this long enough, so I will answer now.\n";
constexpr const char* kExtension = "\nWait, let me check this again.\n";

// Certainties are those of a model whose mean over a thought is about 0.9; docs/thinking.md has the curves.
ThinkingOptions preset(ThinkingMode mode) {
  ThinkingOptions o;
  if (mode != ThinkingMode::off) o.loop_guard = true;
  switch (mode) {
    case ThinkingMode::off: break;
    case ThinkingMode::fast:
      o.window = 16;
      o.min_tokens = 24;
      o.close_above = 0.99f;
      o.suppress_above = 0.9f;
      o.release_below = 0.8f;
      o.close_at_reflection = true;
      break;
    case ThinkingMode::quality:
      o.window = 32;
      o.min_tokens = 24;
      o.close_above = 0.99f;
      o.extend_below = 0.7f;
      o.max_extensions = 1;
      o.suppress_above = 0.97f;
      o.release_below = 0.9f;
      o.close_at_reflection = true;
      o.warn_before = 32;
      break;
    case ThinkingMode::ultra:
      o.window = 32;
      o.extend_below = 0.8f;
      o.max_extensions = 3;
      o.warn_before = 64;
      break;
  }
  return o;
}

// Where nobody asks, a loop has to be one that nobody wants. Twice this many tokens end it: 2,048 that go round in
// circles of at most 96, without one digit that differs. Empty maps and matrices, rulers, rows of a form and refrains
// stay below (a map of 20 by 20 fields has 840 to 1,221 tokens), and up to there no logit changes.
// In a string or number of a form, 256 tokens that are 32 times the same are enough: on one line of one value, which can
// be closed without losing the rest. Rows of a map and refrains have line breaks, and items of a list are not in one
// string: what of them is wanted, or demanded by a schema, has all of the above.
constexpr LoopGuardParams kUnasked{true, 1024, 0, 256};

template <class T>
void fill(std::optional<T>& mine, const std::optional<T>& other) {
  if (!mine) mine = other;
}

std::string with_first(const std::string& word, int (*change)(int)) {
  std::string changed = word;
  if (!changed.empty()) changed[0] = static_cast<char>(change(static_cast<unsigned char>(changed[0])));
  return changed;
}

}  // namespace

std::optional<ThinkingMode> thinking_mode(std::string_view name) {
  if (name == "off") return ThinkingMode::off;
  if (name == "fast") return ThinkingMode::fast;
  if (name == "quality") return ThinkingMode::quality;
  if (name == "ultra") return ThinkingMode::ultra;
  return std::nullopt;
}

const std::vector<std::string>& reflection_words() {
  static const std::vector<std::string> words = {"Wait",          "Hmm",          "But",          "However",
                                                 "Alternatively", "Actually",     "Hold on",  // English
                                                 "Attends",       "Attendez",     "Mais",         "Cependant",
                                                 "Pourtant",      "Sinon",        "En fait",  // French
                                                 "Warte",         "Moment",       "Aber",         "Allerdings",
                                                 "Andererseits",  "Oder",  // German
                                                 "Espera",        "Pero",         "Sin embargo",  "Aunque",
                                                 "Aspetta",       "Ma",           "Tuttavia",     "Mas",
                                                 "Porém",  // Spanish, Italian, ...
                                                 "\u7b49\u7b49",  "\u4f46\u662f", "\u4e0d\u8fc7", "\u7136\u800c",
                                                 "\u6216\u8005"};  // Chinese
  return words;
}

bool ThinkingOptions::asks_for_loop_guard() const {
  return loop_guard.value_or(mode.value_or(ThinkingMode::off) != ThinkingMode::off);
}

ThinkingOptions ThinkingOptions::over(const ThinkingOptions& defaults) const {
  ThinkingOptions o = *this;
  // A mode of its own, also `off`, stands for all of its values: nothing of the defaults shines through.
  if (o.mode) return o;
  fill(o.mode, defaults.mode);
  fill(o.window, defaults.window);
  fill(o.min_tokens, defaults.min_tokens);
  fill(o.close_above, defaults.close_above);
  fill(o.extend_below, defaults.extend_below);
  fill(o.max_extensions, defaults.max_extensions);
  fill(o.extension, defaults.extension);
  fill(o.warning, defaults.warning);
  fill(o.warn_before, defaults.warn_before);
  fill(o.answer_tokens, defaults.answer_tokens);
  fill(o.suppress_above, defaults.suppress_above);
  fill(o.release_below, defaults.release_below);
  fill(o.close_at_reflection, defaults.close_at_reflection);
  fill(o.triggers, defaults.triggers);
  fill(o.loop_guard, defaults.loop_guard);
  fill(o.loop_tokens, defaults.loop_tokens);
  fill(o.loop_penalty, defaults.loop_penalty);
  return o;
}

ThinkingResolver::ThinkingResolver(const Tokenizer& tokenizer, int32_t n_drawable)
    : tokenizer_(tokenizer), max_entropy_(std::log(static_cast<float>(std::max(n_drawable, 2)))) {}

ThinkingParams ThinkingResolver::resolve(const ThinkingOptions& options) {
  ThinkingOptions o = options;
  const ThinkingMode mode = o.mode.value_or(ThinkingMode::off);
  o.mode.reset();
  o = o.over(preset(mode));
  ThinkingParams p;
  p.window = o.window.value_or(p.window);
  p.least = o.min_tokens.value_or(p.least);
  p.close_above = o.close_above.value_or(p.close_above);
  p.extend_below = o.extend_below.value_or(p.extend_below);
  p.max_extensions = o.max_extensions.value_or(p.extend_below > 0 ? 1 : 0);
  p.suppress_above = o.suppress_above.value_or(p.suppress_above);
  p.release_below = o.release_below.value_or(p.suppress_above);
  p.closes_at_reflection = o.close_at_reflection.value_or(false);
  p.warn_before = o.warn_before.value_or(0);
  p.answer_tokens = o.answer_tokens.value_or(0);
  if (!o.loop_guard) p.loop = kUnasked;
  p.loop.is_on = o.loop_guard.value_or(true);
  if (o.loop_tokens) {
    p.loop.tokens = *o.loop_tokens;
    p.loop.string_tokens = 0;
  }
  p.loop.penalty = o.loop_penalty.value_or(p.loop.penalty);
  const auto phrase = [&](const std::optional<std::string>& given, const char* otherwise) {
    return tokenizer_.encode(given.value_or(otherwise), EncodeMode::plain, false);
  };
  if (p.warn_before > 0) p.warning = phrase(o.warning, kWarning);
  const bool closes = p.close_above <= 1, extends = p.extend_below > 0 && p.max_extensions > 0;
  const bool suppresses = p.suppress_above <= 1;
  if (extends) p.extension = phrase(o.extension, kExtension);
  if (closes || (suppresses && p.closes_at_reflection)) p.breaks = breaks();
  if (suppresses) {
    if (o.triggers) {
      p.triggers = triggers(*o.triggers);
    } else {
      if (!own_triggers_) own_triggers_ = triggers(reflection_words());
      p.triggers = own_triggers_;
    }
  }
  if (closes || extends || suppresses) p.max_entropy = max_entropy_;
  return p;
}

std::shared_ptr<const std::vector<uint64_t>> ThinkingResolver::breaks() {
  if (breaks_) return breaks_;
  auto bits = std::make_shared<std::vector<uint64_t>>((static_cast<size_t>(tokenizer_.n_vocab()) + 63) / 64);
  for (int32_t id = 0; id < tokenizer_.n_vocab(); ++id) {
    const std::string_view text = tokenizer_.token_text(id);
    const size_t last = text.find_last_not_of(' ');
    if (last == std::string_view::npos || tokenizer_.is_control(id)) continue;
    const std::string_view end = text.substr(0, last + 1);
    const bool is_break =
        std::string_view("\n.!?").find(end.back()) != std::string_view::npos || end.ends_with("\u3002");
    if (is_break) (*bits)[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
  breaks_ = std::move(bits);
  return breaks_;
}

std::shared_ptr<const std::vector<std::vector<int32_t>>> ThinkingResolver::triggers(
    const std::vector<std::string>& words) const {
  std::set<std::vector<int32_t>> ids;
  for (const std::string& word : words) {
    for (const std::string& form : {word, with_first(word, std::tolower), with_first(word, std::toupper)}) {
      for (const char* before : {"", " "}) {
        std::vector<int32_t> tokens = tokenizer_.encode(before + form, EncodeMode::plain, false);
        if (!tokens.empty()) ids.insert(std::move(tokens));
      }
    }
  }
  return std::make_shared<const std::vector<std::vector<int32_t>>>(ids.begin(), ids.end());
}

}  // namespace chimere::orchestrator
