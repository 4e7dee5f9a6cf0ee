// dialect.h  How a family of models writes its tool calls: found in the chat template, read from the output, and as a
// grammar that forces them. A new dialect is one file here and one line in dialects.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/output_text.h"
#include "grammar/expression.h"

namespace chimere {
class Tokenizer;
}

namespace chimere::chat {

class CallGrammar;
struct DeclaredTool;

// Where a call begins in a text.
struct CallPlace {
  size_t at = std::string_view::npos;
  size_t held = 0;  // bytes at the end that may become the start of one
};
CallPlace find_marker(std::string_view text, std::string_view marker);

// Reads calls out of a text that is still being written. One reader serves all calls of an answer.
class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual std::unique_ptr<CallReader> clone() const = 0;

  // The first call in content.
  virtual CallPlace find(const OutputText& out) const = 0;
  // Reading begins: at what find() found, at the marker inside a thought, or, in dialects whose calls may lack it, at
  // the start of an answer.
  virtual void open(OutputText& out) = 0;
  // Instead of open(), in dialects with frames. `in_content`: the prompt began a frame of content.
  virtual void begin_frames(bool /*in_content*/) {}

  enum class Step {
    wait,  // nothing more to do with the text at hand
    again,
    content,  // calls are over, or there was none: content follows
  };
  virtual Step step(OutputText& out, bool is_final) = 0;

  // What the text is that is not consumed at the end of the generation.
  enum class Rest { none, content, reasoning };
  virtual Rest finish(OutputText& out, bool is_cut) = 0;
};

// A reader as a value: parsers are copied.
class CopiedReader {
 public:
  explicit CopiedReader(std::unique_ptr<CallReader> reader) : reader_(std::move(reader)) {}
  CopiedReader(const CopiedReader& other) : reader_(other.reader_->clone()) {}
  CopiedReader(CopiedReader&&) = default;
  CopiedReader& operator=(CopiedReader other) {
    reader_ = std::move(other.reader_);
    return *this;
  }
  CallReader* operator->() { return reader_.get(); }

 private:
  std::unique_ptr<CallReader> reader_;
};

struct Dialect {
  std::string_view name;
  bool (*is_shown_by)(std::string_view template_source);

  std::string_view marker;  // what calls begin with
  bool may_lack_marker;     // at the start of an answer
  bool is_framed;           // whatever the model writes stands in frames, its thoughts and its text too
  // What the reader must see even in vocabularies that make control tokens of it.
  std::span<const std::string_view> words;

  std::unique_ptr<CallReader> (*make_reader)();

  // One call of a tool, and from one to `most` such calls.
  Result<grammar::ExprId> (*call)(const DeclaredTool& tool, CallGrammar& grammar);
  grammar::ExprId (*calls)(grammar::ExprId call, int most, CallGrammar& grammar);
};

// In the order in which templates are searched for them.
std::span<const Dialect* const> dialects();
// REQUIRES: there is one of this name.
const Dialect& dialect_named(std::string_view name);
// Of models whose templates show none: they are told to write this one.
const Dialect& default_dialect();
const Dialect& detect_dialect(std::string_view template_source);

// Calls in one answer, where several are allowed: a model that never stops calling is of no use.
inline constexpr int kMaxToolCalls = 16;

struct ToolCallForm {
  const Dialect* dialect = &default_dialect();
  std::string only_tool;  // empty: any of them
  bool allows_several = true;
};

// One call or several, nothing before or behind. Refuses declarations whose parameters can not be a grammar, with the
// tool and the place.
Result<grammar::ExprId> tool_calls(const std::vector<Tool>& tools, const ToolCallForm& form, const Tokenizer& tokenizer,
                                   grammar::Grammar& grammar);

// Whether a token is a word of thoughts or calls, which the output parser needs to see.
bool is_output_marker(std::string_view token_text, const Dialect& dialect);

}  // namespace chimere::chat
