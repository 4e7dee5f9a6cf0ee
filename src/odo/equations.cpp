#include "odo/equations.h"

#include <utility>

#include "tools/expression.h"

namespace chimere::odo {
namespace {

constexpr size_t kMaxEquations = 64;
constexpr size_t kMaxSideBytes = 200;

bool is_digit_at(std::string_view text, size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// × ÷ − · as UTF-8: their bytes are in no other sign that a sum has.
bool is_sign_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0xC3 || byte == 0x97 || byte == 0xB7 || byte == 0xE2 || byte == 0x88 || byte == 0x92 || byte == 0xC2;
}

// Whether the byte can stand inside a sum.
bool is_of_sum(std::string_view text, size_t i) {
  const char c = text[i];
  if (is_digit_at(text, i) || is_sign_byte(c)) return true;
  if (c == '.' || c == ',') return is_digit_at(text, i + 1) && i > 0 && is_digit_at(text, i - 1);
  if (c == 'x') {  // between numbers it is a sign
    const bool is_apart = i > 0 && text[i - 1] == ' ' && i + 1 < text.size() && text[i + 1] == ' ';
    return is_apart && is_digit_at(text, i + 2) && i > 1 && (is_digit_at(text, i - 2) || text[i - 2] == ')');
  }
  return std::string_view("+-*/() ").find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// The sum before the equals sign at `at`; empty: none.
std::string_view left_of(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && at - begin < kMaxSideBytes && is_of_sum(text, begin - 1)) --begin;
  if (begin > 0 && is_letter(text[begin - 1]) && begin < at && text[begin] != ' ') return {};  // f(2), m2
  const std::string_view left = trimmed(text.substr(begin, at - begin));
  const bool begins_well = !left.empty() && (is_digit_at(left, 0) || left[0] == '(');
  // An operation: something that is no digit, blank or point behind the first number.
  const bool has_operation = left.find_first_not_of("0123456789., ()") != std::string_view::npos;
  return begins_well && has_operation ? left : std::string_view();
}

// The number behind the equals sign; empty: none, or the sum goes on.
std::string_view right_of(std::string_view text, size_t at) {
  size_t begin = at + 1;
  while (begin < text.size() && text[begin] == ' ') ++begin;
  size_t end = begin;
  if (end < text.size() && text[end] == '-') ++end;
  if (!is_digit_at(text, end)) return {};
  const auto is_of_number = [&](size_t i) {
    return is_digit_at(text, i) || (i < text.size() && (text[i] == '.' || text[i] == ',') && is_digit_at(text, i + 1));
  };
  while (is_of_number(end)) ++end;
  size_t next = end;
  while (next < text.size() && text[next] == ' ') ++next;
  const bool goes_on = next < text.size() && (std::string_view("+-*/^%(").find(text[next]) != std::string_view::npos ||
                                              is_sign_byte(text[next]) || (text[next] == 'x' && is_of_sum(text, next)));
  const bool is_word = end < text.size() && is_letter(text[end]);
  return goes_on || is_word ? std::string_view() : text.substr(begin, end - begin);
}

}  // namespace

std::vector<std::string> numbers_in(std::string_view text) {
  std::vector<std::string> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit_at(text, i)) continue;
    std::string number;
    for (; is_digit_at(text, i) || (i < text.size() && (text[i] == ',' || text[i] == '.') && is_digit_at(text, i + 1));
         ++i) {
      if (text[i] != ',') number += text[i];
    }
    found.push_back(std::move(number));
  }
  return found;
}

std::vector<Equation> equations_in(std::string_view text) {
  std::vector<Equation> found;
  for (size_t at = text.find('='); at != std::string_view::npos && found.size() < kMaxEquations;
       at = text.find('=', at + 1)) {
    const std::string_view left = left_of(text, at), right = right_of(text, at);
    if (left.empty() || right.empty()) continue;
    const std::string equation = std::string(left) + " = " + std::string(right);
    const auto value = tools::evaluate(equation);
    if (!value) continue;
    const bool holds = value->text == "true";
    // 3.33 may be what is left of a longer number.
    if (!holds && right.find('.') != std::string_view::npos) continue;
    Equation read = {equation, holds, static_cast<size_t>(right.data() - text.data()), right.size(), ""};
    const auto sum = holds ? value : tools::evaluate(std::string(left));
    const bool is_plain = !holds && sum && sum->text.find_first_not_of("-0123456789") == std::string::npos;
    if (is_plain) read.right_result = sum->text;
    found.push_back(std::move(read));
  }
  return found;
}

std::string with_right_results(std::string_view text) {
  std::string mended;
  size_t from = 0;
  for (const Equation& equation : equations_in(text)) {
    if (equation.right_result.empty()) continue;
    mended += std::string(text.substr(from, equation.result_at - from)) + equation.right_result;
    from = equation.result_at + equation.result_bytes;
  }
  return mended + std::string(text.substr(from));
}

}  // namespace chimere::odo
