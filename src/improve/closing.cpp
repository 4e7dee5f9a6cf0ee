#include "improve/closing.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr size_t kNewest = 60, kFewest = 8;  // answers that are looked at; fewer tell nothing
constexpr double kShare = 0.8;
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed_end(std::string_view text) {
  const size_t end = text.find_last_not_of(kBlanks);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

// Where something new begins in a text: behind the end of a sentence and blanks, or at the beginning of a line.
std::vector<size_t> beginnings(std::string_view text) {
  std::vector<size_t> all;
  for (size_t i = 1; i < text.size(); ++i) {
    if (kBlanks.find(text[i]) != std::string_view::npos || kBlanks.find(text[i - 1]) == std::string_view::npos)
      continue;
    const size_t before = text.find_last_not_of(kBlanks, i - 1);
    if (before == std::string_view::npos) continue;
    const bool is_line = text.substr(before + 1, i - before - 1).find('\n') != std::string_view::npos;
    if (is_line || std::string_view(".!?:;)\"").find(text[before]) != std::string_view::npos) all.push_back(i);
  }
  return all;
}

}  // namespace

std::string closing_of(const std::vector<TaughtAnswer>& train) {
  std::vector<std::string_view> texts;
  for (auto example = train.rbegin(); example != train.rend() && texts.size() < kNewest; ++example) {
    if (example->wanted.calls.empty()) texts.push_back(trimmed_end(example->wanted.text));
  }
  if (texts.size() < kFewest) return {};
  std::map<std::string_view, size_t> counts;  // of ends
  std::map<std::string_view, std::map<std::string, size_t>> blanks;
  for (const std::string_view text : texts) {
    for (const size_t begin : beginnings(text)) {
      const std::string_view end = text.substr(begin);
      if (end.size() > kMaxClosingBytes) continue;
      ++counts[end];
      const size_t before = text.find_last_not_of(kBlanks, begin - 1) + 1;
      ++blanks[end][std::string(text.substr(before, begin - before))];
    }
  }
  std::string_view best;
  for (const auto& [end, n] : counts) {
    const bool is_often = static_cast<double>(n) >= kShare * static_cast<double>(texts.size());
    if (is_often && end.size() > best.size() && end.find(' ') != std::string_view::npos) best = end;
  }
  if (best.empty()) return {};
  const auto& before = blanks[best];
  const auto usual =
      std::max_element(before.begin(), before.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return usual->first + std::string(best);
}

std::string closing_bytes(const std::string& closing) { return to_text(Json{{"closing", closing}}) + "\n"; }

Result<std::string> read_closing(std::string_view bytes) {
  TRY_ASSIGN(const Json json, parse_json(bytes));
  if (!json.is_object() || !json.contains("closing") || !json["closing"].is_string()) {
    return Error{Code::corrupt, "a closing: expected {\"closing\": TEXT}"};
  }
  std::string closing = json["closing"].get<std::string>();
  if (closing.size() > 2 * kMaxClosingBytes) return Error{Code::corrupt, "a closing: it is too long"};
  return closing;
}

std::string without_closing(std::string_view answer, std::string_view closing) {
  const std::string_view text = trimmed_end(answer);
  const size_t begin = closing.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos || !text.ends_with(closing.substr(begin))) return std::string(answer);
  return std::string(trimmed_end(text.substr(0, text.size() - (closing.size() - begin))));
}

}  // namespace chimere::improve
