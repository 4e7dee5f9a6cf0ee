// json_stream.h  JSON that a model is writing, read before it is complete.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace chimere::chat {

// Copies one JSON object or array while it grows, without the space between its tokens. What models get wrong inside
// strings is mended: raw control characters, and escapes that JSON does not have. Nothing else is checked.
class JsonCopy {
 public:
  explicit JsonCopy(int depth = 0) : depth_(depth) {}  // brackets that are open already

  // `text` goes on where the last one ended. Appends what is certain to `out`. Returns the bytes used: all of them,
  // unless the value ended before.
  size_t read(std::string_view text, std::string& out);
  bool is_complete() const { return is_complete_; }

 private:
  void read_in_string(char c, std::string& out);

  int depth_;
  bool in_string_ = false;
  bool after_space_ = false, after_literal_ = false;
  bool is_complete_ = false;
  std::string escape_;  // from its backslash on
};

// The extent of one JSON object or array in a text that grows; each byte is looked at once.
class JsonExtent {
 public:
  // `text` begins with the same bytes as in the last call. Its size once the value is complete.
  std::optional<size_t> end(std::string_view text);

 private:
  size_t seen_ = 0;
  int depth_ = 0;
  bool in_string_ = false, after_backslash_ = false;
};

// The start of {"name": NAME, "arguments": {...}}.
struct JsonCallHead {
  enum class Kind {
    incomplete,  // too short to tell
    found,       // the arguments begin at arguments_begin
    whole,       // can only be read when it is complete: no arguments, arguments before the name, or no call at all
  };
  Kind kind = Kind::incomplete;
  std::string name;  // as soon as it is known
  size_t arguments_begin = 0;
};
// With a `name`, the text is the arguments alone.
JsonCallHead read_call_head(std::string_view text, const std::string& name = {});

// The JSON object of a text that was cut off: open strings and brackets are closed, and a last member that has no whole
// value is left out. "{}" when there is nothing to save.
std::string closed_json(std::string_view cut);

}  // namespace chimere::chat
