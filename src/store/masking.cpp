#include "store/masking.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace chimere::store {
namespace {

// Of ASCII alone: bytes of other characters are none of these.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_key_char(char c) { return is_word(c) || c == '_' || c == '-'; }
char lower(char c) { return is_upper(c) ? static_cast<char>(c + 'a' - 'A') : c; }

template <class Test>
size_t run_of(std::string_view text, size_t at, size_t limit, Test test) {
  size_t end = at;
  while (end < text.size() && end - at < limit && test(text[end])) ++end;
  return end - at;
}

struct Match {
  size_t keep = 0;  // bytes of it that stay, before
  size_t size = 0;  // bytes that go; 0: it is none
  const char* label = "";
};

constexpr size_t kMaxLocalPart = 64, kMaxDomain = 253;

// local@domain.tld
Match email(std::string_view text) {
  const auto in_local = [](char c) { return is_word(c) || c == '.' || c == '_' || c == '%' || c == '+' || c == '-'; };
  const size_t local = run_of(text, 0, kMaxLocalPart, in_local);
  if (local == 0 || local >= text.size() || text[local] != '@') return {};
  const auto in_domain = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  size_t domain = run_of(text, local + 1, kMaxDomain, in_domain);
  while (domain > 0 && !is_word(text[local + domain])) --domain;  // the full stop behind it is the sentence's
  const std::string_view name = text.substr(local + 1, domain);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name.size() - dot < 3) return {};
  if (!std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, name.end(), is_letter)) return {};
  return {0, local + 1 + domain, "[email]"};
}

// Digits with single separators between them: how far they go, and which they are.
struct Digits {
  std::array<char, 24> digits{};
  size_t n = 0;
  size_t size = 0;
  size_t groups = 1;
};
Digits digits_of(std::string_view text, std::string_view separators) {
  Digits found;
  for (size_t at = 0; at < text.size() && found.n < found.digits.size();) {
    if (is_digit(text[at])) {
      found.digits[found.n++] = text[at++];
      found.size = at;
    } else if (found.n > 0 && separators.find(text[at]) != std::string_view::npos && at + 1 < text.size() &&
               is_digit(text[at + 1])) {
      ++found.groups;
      ++at;
    } else {
      break;
    }
  }
  return found;
}

bool ends_number(std::string_view text, size_t at) { return at >= text.size() || !is_word(text[at]); }

// 13 to 19 digits whose last one checks the others (Luhn).
Match card(std::string_view text) {
  if (!is_digit(text[0])) return {};
  const Digits found = digits_of(text, " -");
  if (found.n < 13 || found.n > 19 || !ends_number(text, found.size)) return {};
  if (found.digits[0] < '2' || found.digits[0] > '6') return {};
  int sum = 0;
  for (size_t i = 0; i < found.n; ++i) {
    int digit = found.digits[found.n - 1 - i] - '0';
    if (i % 2 == 1) digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
    sum += digit;
  }
  return sum % 10 == 0 ? Match{0, found.size, "[card]"} : Match{};
}

// FR76 3000 6000 0112 3456 7890 189, by its remainder.
Match iban(std::string_view text) {
  constexpr size_t kMin = 15, kMax = 34;
  if (text.size() < kMin || !is_upper(text[0]) || !is_upper(text[1]) || !is_digit(text[2]) || !is_digit(text[3])) {
    return {};
  }
  std::string plain;
  size_t size = 0;
  for (size_t at = 0; at < text.size() && plain.size() < kMax; ++at) {
    if (is_upper(text[at]) || is_digit(text[at])) {
      plain += text[at];
      size = at + 1;
    } else if (text[at] != ' ' || plain.size() % 4 != 0) {
      break;
    }
  }
  if (plain.size() < kMin) return {};
  std::rotate(plain.begin(), plain.begin() + 4, plain.end());
  uint32_t rest = 0;
  for (const char c : plain)
    rest = is_digit(c) ? (rest * 10 + static_cast<uint32_t>(c - '0')) % 97
                       : (rest * 100 + static_cast<uint32_t>(c - 'A') + 10) % 97;
  return rest == 1 ? Match{0, size, "[iban]"} : Match{};
}

// +33 6 12 34 56 78, 06 12 34 56 78, 020 7946 0958, (212) 555-0123, 212-555-0123. A number without separators, and a
// sum of numbers, is none.
Match phone(std::string_view text) {
  constexpr size_t kMax = 15;
  if (text[0] == '+') {
    if (text.size() < 2 || !is_digit(text[1])) return {};
    const Digits found = digits_of(text.substr(1), " -.");
    if (found.n < 8 || found.n > kMax || !ends_number(text, 1 + found.size)) return {};
    return {0, 1 + found.size, "[phone]"};
  }
  if (text[0] == '(') {
    const size_t area = run_of(text, 1, 5, is_digit);
    if (area < 2 || area + 1 >= text.size() || text[area + 1] != ')') return {};
    const size_t gap = run_of(text, area + 2, 1, is_space);
    const size_t begin = area + 2 + gap;
    if (begin >= text.size()) return {};
    const Digits found = digits_of(text.substr(begin), " -.");
    if (found.n + area < 9 || found.n + area > kMax || found.groups < 2) return {};
    return ends_number(text, begin + found.size) ? Match{0, begin + found.size, "[phone]"} : Match{};
  }
  if (!is_digit(text[0])) return {};
  const Digits found = digits_of(text, " -.");
  if (!ends_number(text, found.size)) return {};
  const bool is_national = text[0] == '0' && found.groups >= 3 && found.n >= 9 && found.n <= 11;
  const bool is_american = found.groups == 3 && found.n == 10 && found.size == 12 && text[3] == text[7] &&
                           text[3] != ' ' && !is_digit(text[3]);
  return is_national || is_american ? Match{0, found.size, "[phone]"} : Match{};
}

struct KeyKind {
  std::string_view prefix;
  size_t min_behind;  // characters of a key behind it
};
constexpr KeyKind kKeys[] = {
    {"sk-", 20},   {"sk_live_", 16}, {"sk_test_", 16}, {"rk_live_", 16}, {"pk_live_", 16}, {"ghp_", 30},
    {"gho_", 30},  {"ghs_", 30},     {"ghu_", 30},     {"ghr_", 30},     {"glpat-", 18},   {"github_pat_", 30},
    {"xoxb-", 20}, {"xoxp-", 20},    {"xapp-", 20},    {"AKIA", 16},     {"ASIA", 16},     {"AIza", 30},
    {"hf_", 30},   {"npm_", 30},     {"pypi-", 30},    {"dop_v1_", 30},  {"SG.", 20},      {"whsec_", 20},
};

Match known_key(std::string_view text) {
  constexpr size_t kMax = 512;
  for (const KeyKind& kind : kKeys) {
    if (!text.starts_with(kind.prefix)) continue;
    const auto in_key = [](char c) { return is_key_char(c) || c == '.'; };
    size_t behind = run_of(text, kind.prefix.size(), kMax, in_key);
    while (behind > 0 && text[kind.prefix.size() + behind - 1] == '.') --behind;
    if (behind >= kind.min_behind) return {0, kind.prefix.size() + behind, "[key]"};
  }
  return {};
}

// Three parts of base64 with dots between them, the first of which begins as every JSON object does.
Match session_token(std::string_view text) {
  constexpr size_t kMaxPart = 4096;
  if (!text.starts_with("eyJ")) return {};
  size_t at = 0;
  for (int part = 0; part < 3; ++part) {
    const size_t n = run_of(text, at, kMaxPart, is_key_char);
    if (n < 8) return {};
    at += n;
    if (part < 2 && (at >= text.size() || text[at++] != '.')) return {};
  }
  return {0, at, "[key]"};
}

Match private_key(std::string_view text) {
  constexpr size_t kMax = 16 << 10, kMaxHead = 64;
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kKind = "PRIVATE KEY";
  if (!text.starts_with(kBegin) || text.substr(0, kMaxHead).find(kKind) == std::string_view::npos) return {};
  const std::string_view near = text.substr(0, kMax);
  const size_t end = near.find(kEnd);
  if (end == std::string_view::npos) return {0, near.size(), "[key]"};  // what there is of it
  const size_t dashes = near.find("-----", end + kEnd.size());
  return {0, dashes == std::string_view::npos ? near.size() : dashes + 5, "[key]"};
}

constexpr std::string_view kSecretNames[] = {"password", "passwd", "passphrase", "api_key",    "api-key",     "apikey",
                                             "secret",   "token",  "bearer",     "access_key", "mot de passe"};

// password: x, "api_key": "x", token=x, Bearer x.
Match named_secret(std::string_view text) {
  constexpr size_t kMaxValue = 512, kMinValue = 6;
  for (const std::string_view name : kSecretNames) {
    if (text.size() <= name.size()) continue;
    if (!std::equal(name.begin(), name.end(), text.begin(), [](char a, char b) { return a == lower(b); })) continue;
    size_t at = name.size();
    at += run_of(text, at, 1, [](char c) { return c == '"' || c == '\''; });
    at += run_of(text, at, 4, is_space);
    const bool is_bearer = name == "bearer" && at > name.size();
    if (at < text.size() && (text[at] == ':' || text[at] == '=')) {
      ++at;
    } else if (!is_bearer) {
      continue;
    }
    at += run_of(text, at, 4, is_space);
    at += run_of(text, at, 1, [](char c) { return c == '"' || c == '\''; });
    const auto in_value = [](char c) { return c > ' ' && c != '"' && c != '\'' && c != ',' && c != ';' && c != '<'; };
    const size_t value = run_of(text, at, kMaxValue, in_value);
    // A word, as in "token: which means", is more often prose than a secret.
    const std::string_view said = text.substr(at, value);
    const bool is_plain = std::all_of(said.begin(), said.end(), [](char c) { return is_letter(c) || c == '.'; });
    if (value >= kMinValue && !is_plain) return {at, value, "[secret]"};
  }
  return {};
}

// Where one of them may begin: not inside of a word or a number.
Match match_at(std::string_view text, char before) {
  if (is_word(before) || before == '_') return {};
  for (const auto find : {private_key, session_token, known_key, named_secret, email, iban, card, phone}) {
    if (const Match match = find(text); match.size > 0) return match;
  }
  return {};
}

}  // namespace

std::string masked(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char before = ' ';         // the last character
  char before_spaces = ' ';  // the last that was no space: "3 +12345678" is a sum
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool may_begin =
        is_word(c) || c == '-' || c == '(' || (c == '+' && !is_digit(before_spaces) && before_spaces != ')');
    const Match match = may_begin ? match_at(text.substr(at), before) : Match{};
    if (match.size > 0) {
      out.append(text.substr(at, match.keep)).append(match.label);
      at += match.keep + match.size;
      before = before_spaces = ']';
      continue;
    }
    // What could be the rest of an address or a number begins nothing by itself.
    const size_t step = is_word(c) ? run_of(text, at, text.size(), is_word) : 1;
    out.append(text.substr(at, step));
    at += step;
    before = text[at - 1];
    if (!is_space(before)) before_spaces = before;
  }
  return out;
}

}  // namespace chimere::store
