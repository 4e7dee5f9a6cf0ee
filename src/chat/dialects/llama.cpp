// llama.cpp  Llama 3.1 to 3.3.
//
//   {"name": NAME, "parameters": {...}}   at the start of an answer, perhaps behind <|python_tag|>
#include "chat/dialects/bare_calls.h"
#include "chat/dialects/call_grammar.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";
constexpr std::string_view kLlamaWords[] = {kPythonTag};

// The templates show the form in words; the role of results is in all of them.
bool is_llama(std::string_view source) {
  return source.find(kPythonTag) != std::string_view::npos || source.find("ipython") != std::string_view::npos;
}

std::unique_ptr<CallReader> llama_reader() {
  return std::make_unique<BareCalls>(BareForm{kPythonTag, /*may_lack_marker=*/true, nullptr});
}

Result<grammar::ExprId> llama_call(const DeclaredTool& tool, CallGrammar& grammar) {
  return grammar.json_call(tool, "parameters");
}

// The form has no place for a second one.
grammar::ExprId llama_calls(grammar::ExprId call, int, CallGrammar&) { return call; }

}  // namespace

extern const Dialect kLlama = {.name = "llama",
                               .is_shown_by = is_llama,
                               .marker = kPythonTag,
                               .may_lack_marker = true,
                               .is_framed = false,
                               .words = kLlamaWords,
                               .make_reader = llama_reader,
                               .call = llama_call,
                               .calls = llama_calls};

}  // namespace chimere::chat
