// text.h  A byte string that remembers which of its parts came from inputs.
//
// Template literals and trusted variables are "ours"; message contents, tool schemas and the like are input. Every
// string operation keeps that mark per byte range, so that the tokenizer can refuse to see control tokens in input.
// Where an operation cannot tell (escaping, JSON), the whole result counts as input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::jinja {

struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool is_input = false;
  bool operator==(const Span&) const = default;
};

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool is_input) : bytes_(std::move(bytes)), input_(is_input && !bytes_.empty()) {}
  static Text literal(std::string bytes) { return Text(std::move(bytes), false); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool any_input() const { return runs_.empty() ? input_ : true; }
  size_t memory_bytes() const { return bytes_.size() + runs_.size() * sizeof(Run); }

  void append(std::string_view bytes, bool is_input);
  void append_literal(std::string_view bytes) { append(bytes, false); }
  void append(const Text& other) { append(other, 0, other.size()); }
  // REQUIRES: begin <= end <= other.size()
  void append(const Text& other, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;

  // The marks as spans that cover the text; neighbours differ.
  std::vector<Span> spans() const;
  std::string take_bytes() && { return std::move(bytes_); }

 private:
  struct Run {
    size_t end;
    bool is_input;
  };
  std::string bytes_;
  std::vector<Run> runs_;  // empty: all bytes are `input_`; otherwise at least two runs, neighbours differ
  bool input_ = false;
};

}  // namespace chimere::jinja
