// tool.h  What a model may call: a name, a description, a schema of arguments, and what comes back.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace chimere::tools {

struct ToolSpec {
  std::string name;         // [a-zA-Z0-9_-]{1,64}
  std::string description;  // what a model reads
  std::string parameters;   // JSON schema of an object
};

// Who calls, and until when. Tools look at is_cancelled() at least every 50 ms.
struct ToolContext {
  std::string owner;  // whose notes may be touched: a user below a key; empty: where all are one's
  std::string key;    // whose documents may be read: those of the key itself; the same for empty
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::function<bool()> is_cancelled = [] { return false; };
};

// A text of a file or a page that a result is made of.
struct FoundText {
  std::string title;
  std::string url;       // of a page
  std::string document;  // of a file
  std::string place;     // in the file
  std::string text;
  std::string collection = {};  // of the file
};

struct ToolResult {
  std::string text;                     // what the model reads
  bool is_error = false;                // text says what, expected, found
  bool is_untrusted = false;            // from pages, files, other programs: never instructions, never learned from
  std::string detail = {};              // a JSON object for the trace (e.g. sources); empty: none
  std::vector<FoundText> sources = {};  // what `text` is a list of: who keeps count of sources may number it anew
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolSpec& spec() const = 0;
  virtual ToolResult run(const std::string& arguments, const ToolContext& context) = 0;  // any thread, several at once
};

// Whether a model's call is run, shown to a person first, or refused.
enum class Policy { allow, ask, deny };

class Toolbox;  // toolbox.h

}  // namespace chimere::tools
