// robots.cpp  Lines of robots.txt to rules, and rules against paths.
#include "web/robots.h"

#include <algorithm>
#include <cctype>

namespace chimere::web {
namespace {

bool same_without_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
         });
}

std::string_view without_space(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// One spelling for a path: letters, digits and "-._~" as themselves, bytes beyond ASCII as %XX in capital letters.
std::string one_spelling(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    auto byte = static_cast<unsigned char>(path[i]);
    const int high = byte == '%' && i + 2 < path.size() ? hex_digit(path[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(path[i + 2]) : -1;
    const bool was_encoded = low >= 0;
    if (was_encoded) {
      byte = static_cast<unsigned char>(high * 16 + low);
      i += 2;
    }
    const bool is_plain =
        byte < 0x80 && (std::isalnum(byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~');
    if (is_plain || (!was_encoded && byte < 0x80)) {
      out += static_cast<char>(byte);
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

// Pieces between stars are looked for from left to right: the first place is always a good one, except for a piece that
// must end the text.
bool fits(std::string_view pattern, std::string_view path) {
  const bool to_end = !pattern.empty() && pattern.back() == '$';
  if (to_end) pattern.remove_suffix(1);
  size_t star = std::min(pattern.find('*'), pattern.size());
  if (path.substr(0, star) != pattern.substr(0, star)) return false;
  path.remove_prefix(star);
  pattern.remove_prefix(star);
  if (pattern.empty()) return !to_end || path.empty();
  while (!pattern.empty()) {
    pattern.remove_prefix(1);  // the star
    star = std::min(pattern.find('*'), pattern.size());
    const std::string_view piece = pattern.substr(0, star);
    pattern.remove_prefix(star);
    if (pattern.empty() && to_end)
      return path.size() >= piece.size() && path.substr(path.size() - piece.size()) == piece;
    const size_t at = path.find(piece);
    if (at == std::string_view::npos) return false;
    path.remove_prefix(at + piece.size());
  }
  return true;
}

// "Chimere" of "Chimere/1.0 (+https://...)".
std::string_view product_of(std::string_view agent) {
  size_t end = 0;
  while (end < agent.size() &&
         (std::isalpha(static_cast<unsigned char>(agent[end])) || agent[end] == '-' || agent[end] == '_')) {
    ++end;
  }
  return agent.substr(0, end);
}

}  // namespace

size_t Robots::n_bytes() const {
  size_t n = 0;
  for (const Rule& rule : rules_) n += sizeof(Rule) + rule.pattern.size();
  return n;
}

Robots Robots::parse(std::string_view text, std::string_view agent) {
  text = text.substr(0, kMaxRobotsBytes);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  Robots ours(true), of_everybody(true);
  bool is_named = false;  // some group is for us, even one without rules
  bool for_us = false, for_all = false, in_names = false;
  size_t our_bytes = 0, bytes_of_all = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = without_space(line.substr(0, colon)), value = without_space(line.substr(colon + 1));
    if (same_without_case(key, "user-agent")) {
      if (!in_names) for_us = for_all = false;
      in_names = true;
      const bool is_us = same_without_case(product_of(value), agent);
      for_us = for_us || is_us;
      is_named = is_named || is_us;
      for_all = for_all || value == "*";
      continue;
    }
    const bool allows = same_without_case(key, "allow");
    if (!allows && !same_without_case(key, "disallow")) continue;  // sitemaps and other words of their own end no group
    in_names = false;
    if (value.empty() || (!for_us && !for_all)) continue;
    const Rule rule{one_spelling(value), allows};
    const auto add = [&rule](Robots& robots, size_t& n_bytes) {
      n_bytes += sizeof(Rule) + rule.pattern.size();
      if (n_bytes <= kMaxRobotsRuleBytes) robots.rules_.push_back(rule);
    };
    if (for_us) add(ours, our_bytes);
    if (for_all) add(of_everybody, bytes_of_all);
  }
  const size_t n_bytes = is_named ? our_bytes : bytes_of_all;
  if (n_bytes > kMaxRobotsRuleBytes) return allow_nothing();
  return is_named ? ours : of_everybody;
}

bool Robots::allows(std::string_view target) const {
  const std::string path = one_spelling(target);
  if (path == "/robots.txt") return true;
  size_t longest = 0;
  bool result = by_default_;
  for (const Rule& rule : rules_) {
    if (rule.pattern.size() < longest || !fits(rule.pattern, path)) continue;
    result = rule.allows || (rule.pattern.size() == longest && result);
    longest = rule.pattern.size();
  }
  return result;
}

}  // namespace chimere::web
