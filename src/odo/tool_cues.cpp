#include "odo/tool_cues.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace chimere::odo {
namespace {

constexpr size_t kMaxLookedAt = 8 << 10;  // of a question; a long one is a text with a question at one of its ends

// Small letters and digits with single spaces between them; what is no letter of ASCII ends a word, but bytes of other
// letters stay, so that é is part of its word.
std::string spaced_words(std::string_view text) {
  std::string words = " ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) {
      words += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  return words + " ";
}

bool has_one_of(const std::string& words, const std::vector<std::string_view>& cues) {
  return std::any_of(cues.begin(), cues.end(), [&](std::string_view cue) {
    return words.find(" " + std::string(cue) + " ") != std::string::npos;
  });
}

// Two numbers with a sign of arithmetic between them, or a sign and digits that a sum has: 12 * 7, 3^4, 15 %.
bool has_arithmetic(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    size_t at = i;
    while (at < text.size() && (is_digit(text[at]) || text[at] == '.' || text[at] == ',')) ++at;
    while (at < text.size() && (text[at] == ' ' || text[at] == ')')) ++at;
    const std::string_view rest = text.substr(std::min(at, text.size()));
    const bool is_operator = std::any_of(std::begin("+-*/^%x"), std::end("+-*/^%x") - 1,
                                         [&](char sign) { return rest.starts_with(sign); }) ||
                             rest.starts_with("×") || rest.starts_with("÷") || rest.starts_with("−");
    if (is_operator) {
      size_t next = 1;
      while (next < rest.size() && !is_digit(rest[next]) &&
             (rest[next] == ' ' || rest[next] == '(' || static_cast<unsigned char>(rest[next]) >= 0x80)) {
        ++next;
      }
      if (rest[0] == '%' || (next < rest.size() && is_digit(rest[next]))) return true;
    }
    i = std::max(i, at > 0 ? at - 1 : 0);
  }
  return false;
}

size_t count_numbers(const std::string& words) {
  size_t n = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    n += words[i - 1] == ' ' && words[i] >= '0' && words[i] <= '9';
  }
  return n;
}

bool sounds_like_sums(std::string_view text, const std::string& words) {
  // Operations by name. Words of a story ("how many are left") are none: the model thinks such a problem through, and a
  // tool at hand keeps the small one from that.
  static const std::vector<std::string_view> kOperations = {
      "plus",      "minus",      "times",       "divided",  "multiplied", "multiply",  "product",   "sum",
      "percent",   "percentage", "square root", "squared",  "cubed",      "factorial", "calculate", "compute",
      "modulo",    "average",    "moins",       "fois",     "divisé",     "multiplié", "somme",     "produit",
      "pour cent", "racine",     "calcule",     "calculer", "moyenne"};
  if (has_arithmetic(text)) return true;
  return count_numbers(words) >= 2 && has_one_of(words, kOperations);
}

bool sounds_like_dates(const std::string& words) {
  static const std::vector<std::string_view> kDates = {
      "what time",    "what day",  "what date",   "which day",    "today s date", "the date",    "current time",
      "time is it",   "day is it", "days until",  "days between", "days since",   "weeks until", "day of the week",
      "quelle heure", "quel jour", "quelle date", "jours jusqu",  "jours entre",  "jours avant", "jours depuis"};
  return has_one_of(words, kDates);
}

}  // namespace

std::vector<std::string> cued_tools(std::string_view question, const std::vector<std::string>& tools) {
  const std::string_view text = question.substr(question.size() - std::min(question.size(), kMaxLookedAt));
  const std::string words = spaced_words(text);
  std::vector<std::string> cued;
  for (const std::string& tool : tools) {
    const bool is_cued =
        (tool == "calculator" && sounds_like_sums(text, words)) || (tool == "clock" && sounds_like_dates(words));
    if (is_cued) cued.push_back(tool);
  }
  return cued;
}

}  // namespace chimere::odo
