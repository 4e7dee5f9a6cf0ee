#include "grammar/gbnf.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/escapes.h"

namespace chimere::grammar {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, Grammar& grammar) : text_(text), grammar_(grammar) {}

  Result<ExprId> run() {
    skip(true);
    while (pos_ < text_.size()) TRY(rule());
    for (const auto& [name, known] : rules_) {
      if (!grammar_.definition(known.rule)) {
        return Error{Code::invalid_argument,
                     "grammar, line " + std::to_string(known.line) + ": rule " + name + " is used but not defined"};
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) return Error{Code::invalid_argument, "grammar: expected a rule named root"};
    return grammar_.call(root->second.rule);
  }

 private:
  struct Known {
    RuleId rule;
    int line;  // of its first use
  };

  Error error(const std::string& message) const {
    return {Code::invalid_argument, "grammar, line " + std::to_string(line()) + ": " + message};
  }
  int line() const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<int64_t>(pos_), '\n'));
  }
  bool at(char c) const { return pos_ < text_.size() && text_[pos_] == c; }
  bool take(std::string_view word) {
    if (!text_.substr(pos_).starts_with(word)) return false;
    pos_ += word.size();
    return true;
  }
  // Blanks and comments, and ends of lines where they mean nothing.
  void skip(bool over_lines) {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '#') {
        pos_ = std::min(text_.find('\n', pos_), text_.size());
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        ++pos_;
      } else {
        return;
      }
    }
  }

  std::string name() {
    const size_t begin = pos_;
    while (pos_ < text_.size() && is_name_char(text_[pos_])) ++pos_;
    return std::string(text_.substr(begin, pos_ - begin));
  }
  RuleId rule_of(const std::string& name) {
    const auto [known, is_new] = rules_.try_emplace(name, Known{0, 0});
    if (is_new) known->second = {grammar_.add_rule(name), line()};
    return known->second.rule;
  }

  Status rule() {
    const std::string own = name();
    if (own.empty()) return error("expected the name of a rule");
    skip(false);
    if (!take("::=")) return error("expected ::= after " + own);
    const RuleId id = rule_of(own);
    if (grammar_.definition(id)) return error("rule " + own + " is defined twice");
    skip(true);
    TRY_ASSIGN(const ExprId expr, alternatives(0));
    grammar_.define(id, expr);
    if (pos_ < text_.size() && !at('\n') && !at('\r')) return error("expected the end of rule " + own);
    skip(true);
    return Ok{};
  }

  Result<ExprId> alternatives(int depth) {
    std::vector<ExprId> ways;
    while (true) {
      TRY_ASSIGN(const ExprId way, sequence(depth));
      ways.push_back(way);
      TRY(grammar_.check_size());
      if (!next_alternative(depth > 0)) return grammar_.choice(std::move(ways));
    }
  }
  // A line may also begin with the | that goes on with the rule before.
  bool next_alternative(bool is_nested) {
    const size_t begin = pos_;
    skip(true);
    if (take("|")) {
      skip(true);
      return true;
    }
    if (!is_nested) pos_ = begin;
    return false;
  }

  Result<ExprId> sequence(int depth) {
    std::vector<ExprId> parts;
    while (true) {
      skip(depth > 0);
      const bool is_start =
          at('"') || at('[') || at('(') || at('.') || (pos_ < text_.size() && is_name_char(text_[pos_]));
      if (!is_start) return grammar_.sequence(std::move(parts));
      TRY_ASSIGN(const ExprId part, repeated(depth));
      parts.push_back(part);
    }
  }

  Result<ExprId> repeated(int depth) {
    TRY_ASSIGN(ExprId part, atom(depth));
    while (true) {
      skip(depth > 0);
      if (take("*")) {
        part = grammar_.repeat(part, 0, kUnbounded);
      } else if (take("+")) {
        part = grammar_.repeat(part, 1, kUnbounded);
      } else if (take("?")) {
        part = grammar_.repeat(part, 0, 1);
      } else if (take("{")) {
        TRY_ASSIGN(const int min, number());
        int max = min;
        skip(false);
        if (take(",")) {
          skip(false);
          max = kUnbounded;
          if (!at('}')) {
            TRY_ASSIGN(max, number());
          }
          skip(false);
        }
        if (!take("}")) return error("expected } behind a repetition");
        if (max != kUnbounded && max < min) return error("a repetition whose smallest number is the larger");
        part = grammar_.repeat(part, min, max);
      } else {
        return part;
      }
      TRY(grammar_.check_size());
    }
  }
  Result<int> number() {
    skip(false);
    const size_t begin = pos_;
    int value = 0;
    for (; pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9'; ++pos_) {
      value = value * 10 + (text_[pos_] - '0');
      if (value > kMaxRepeat) return error("a repetition of more than " + std::to_string(kMaxRepeat) + " times");
    }
    if (pos_ == begin) return error("expected a number in a repetition");
    return value;
  }

  Result<ExprId> atom(int depth) {
    if (depth >= kMaxNesting) return error("more than " + std::to_string(kMaxNesting) + " nested groups");
    if (take("\"")) return literal();
    if (take("[")) return char_class();
    if (take(".")) return grammar_.chars(CharSet::all());
    if (take("(")) {
      TRY_ASSIGN(const ExprId inner, alternatives(depth + 1));
      skip(true);
      if (!take(")")) return error("expected ) at the end of a group");
      return inner;
    }
    const std::string called = name();
    const size_t behind = pos_;
    skip(false);
    if (text_.substr(pos_).starts_with("::=")) return error("expected a new line before rule " + called);
    pos_ = behind;
    return grammar_.call(rule_of(called));
  }

  Result<ExprId> literal() {
    std::string bytes;
    while (!at('"')) {
      if (pos_ >= text_.size() || at('\n')) return error("a text without its closing \"");
      const size_t begin = pos_;
      if (!at('\\')) {
        if (next_char(text_, pos_) == kInvalidChar) return error("bytes that are no UTF-8");
        bytes += text_.substr(begin, pos_ - begin);
        continue;
      }
      TRY_ASSIGN(const char32_t c, character());
      append_utf8(c, bytes);
    }
    ++pos_;
    return grammar_.bytes(std::move(bytes));
  }

  Result<ExprId> char_class() {
    const bool is_negated = take("^");
    CharSet set;
    while (!at(']')) {
      if (pos_ >= text_.size() || at('\n')) return error("a class without its closing ]");
      TRY_ASSIGN(const char32_t first, character());
      char32_t last = first;
      if (at('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']') {
        ++pos_;
        TRY_ASSIGN(last, character());
      }
      if (last < first) return error("a range whose end comes before its beginning");
      set.add(first, last);
    }
    ++pos_;
    return grammar_.chars(is_negated ? set.inverted() : set);
  }

  Result<char32_t> character() {
    if (!take("\\")) {
      const char32_t c = next_char(text_, pos_);
      if (c == kInvalidChar) return error("bytes that are no UTF-8");
      return c;
    }
    if (pos_ >= text_.size()) return error("a \\ at the end");
    const char c = text_[pos_++];
    char32_t coded = kInvalidChar;
    switch (c) {
      case 'n': return char32_t{'\n'};
      case 'r': return char32_t{'\r'};
      case 't': return char32_t{'\t'};
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return static_cast<char32_t>(c);
      case 'x': coded = hex_number(text_, pos_, 2); break;
      case 'u': coded = hex_number(text_, pos_, 4); break;
      case 'U': coded = hex_number(text_, pos_, 8); break;
      default: return error(std::string("unknown escape \\") + c);
    }
    if (coded > kLastChar || (coded >= 0xD800 && coded < 0xE000)) return error("an escape that is no character");
    return coded;
  }

  std::string_view text_;
  size_t pos_ = 0;
  Grammar& grammar_;
  std::map<std::string, Known> rules_;
};

}  // namespace

Result<ExprId> parse_gbnf(std::string_view text, Grammar& grammar) {
  if (text.size() > kMaxTextBytes) {
    return Error{Code::invalid_argument, "grammar: expected at most " + std::to_string(kMaxTextBytes) +
                                             " bytes, found " + std::to_string(text.size())};
  }
  return Parser(text, grammar).run();
}

}  // namespace chimere::grammar
