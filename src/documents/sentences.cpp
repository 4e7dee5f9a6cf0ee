#include "documents/sentences.h"

#include <cctype>

namespace chimere::documents {
namespace {

constexpr size_t kMaxTitleBytes = 3;  // "Mr", "Mrs", "Dr", "St", an initial
constexpr const char* kSpace = " \t\r\n";

bool ends_in_title(std::string_view text) {
  const size_t space = text.find_last_of(kSpace);
  const std::string_view word = space == std::string_view::npos ? text : text.substr(space + 1);
  return !word.empty() && word.size() <= kMaxTitleBytes && std::isupper(static_cast<unsigned char>(word[0])) != 0;
}

// Bytes of the mark of an end at `at`, 0: there is none.
size_t end_mark(std::string_view text, size_t at) {
  if (text[at] == '\n') return 1;
  if (text[at] == '.' || text[at] == '!' || text[at] == '?') {
    const bool is_last = at + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[at + 1])) != 0;
    return is_last && (text[at] != '.' || !ends_in_title(text.substr(0, at))) ? 1 : 0;
  }
  for (const std::string_view mark : {"\u3002", "\uff01", "\uff1f"}) {
    if (text.substr(at, mark.size()) == mark) return mark.size();
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  const auto add = [&](std::string_view part) {
    const size_t first = part.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return;
    sentences.push_back(part.substr(first, part.find_last_not_of(kSpace) - first + 1));
  };
  size_t start = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t mark = end_mark(text, at);
    if (mark == 0) continue;
    add(text.substr(start, at + mark - start));
    start = at + mark;
    at = start - 1;
  }
  add(text.substr(start));
  return sentences;
}

}  // namespace chimere::documents
