// json_call.h  A tool call written as JSON, whose arguments go out while they are written.
//
//   {"name": NAME, "arguments": {...}}, or the arguments alone where the name stands before them
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "chat/json_stream.h"
#include "chat/output_text.h"

namespace chimere::chat {

class JsonCallReader {
 public:
  JsonCallReader() = default;
  // With a name, the JSON is the arguments and nothing else. `only_declared`: calls of other functions are none.
  explicit JsonCallReader(std::string name, bool only_declared = false)
      : name_(std::move(name)), only_declared_(only_declared) {}

  enum class Progress { open, done, none };  // none: it was no call, and nothing is consumed
  // Reads on in the call that begins the text, of which the first `size` bytes are its own. `is_closed`: nothing of it
  // follows them; then a call is `open` only when its arguments lack their end.
  Progress read(OutputText& out, size_t size, bool is_closed);
  // Nothing follows. A call whose arguments have not begun is one all the same if it names a tool; false when it was
  // none, and otherwise everything is consumed.
  bool finish(OutputText& out, bool is_cut);

 private:
  enum class Part {
    head,       // up to the arguments
    arguments,  // which go out
    rest,       // from their end to that of the call
    whole,      // nothing goes out before the call is complete
    end,
  };
  Progress read_whole(OutputText& out, std::string_view json, bool is_closed);

  std::string name_;
  bool only_declared_ = false;
  Part part_ = Part::head;
  JsonCopy copy_;
  JsonExtent extent_;
};

}  // namespace chimere::chat
