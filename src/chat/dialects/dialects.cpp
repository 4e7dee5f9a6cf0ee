// dialects.cpp  The dialects there are.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "chat/dialects/dialect.h"
#include "chat/text_scan.h"

namespace chimere::chat {

extern const Dialect kHarmony;
extern const Dialect kHermes;
extern const Dialect kLlama;
extern const Dialect kMistral;
extern const Dialect kQwenXml;

namespace {

constexpr const Dialect* kDialects[] = {&kHarmony, &kQwenXml, &kMistral, &kHermes, &kLlama};

bool is_word_of(std::string_view text, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

CallPlace find_marker(std::string_view text, std::string_view marker) {
  return {text.find(marker), held_suffix(text, marker)};
}

std::span<const Dialect* const> dialects() { return kDialects; }

const Dialect& dialect_named(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kDialects), std::end(kDialects),
                                         [&](const Dialect* dialect) { return dialect->name == name; });
  CHECK(found != std::end(kDialects));
  return **found;
}

const Dialect& default_dialect() { return kHermes; }

const Dialect& detect_dialect(std::string_view template_source) {
  for (const Dialect* dialect : kDialects) {
    if (dialect->is_shown_by(template_source)) return *dialect;
  }
  return default_dialect();
}

bool is_output_marker(std::string_view token_text, const Dialect& dialect) {
  constexpr std::array<std::string_view, 4> kThoughts = {"<think>", "</think>", "[THINK]", "[/THINK]"};
  return is_word_of(token_text, kThoughts) ||
         std::any_of(std::begin(kDialects), std::end(kDialects), [&](const Dialect* one) {
           // Other models use the words of frames for other things.
           return (!one->is_framed || one == &dialect) && is_word_of(token_text, one->words);
         });
}

}  // namespace chimere::chat
