// hermes.cpp  Hermes, Qwen 2.5 and 3, Granite 4 and many others.
//
//   <tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call>
#include "chat/dialects/call_grammar.h"
#include "chat/dialects/tagged_calls.h"

namespace chimere::chat {
namespace {

bool is_hermes(std::string_view source) { return source.find(kToolCallOpen) != std::string_view::npos; }

}  // namespace

Result<grammar::ExprId> hermes_call(const DeclaredTool& tool, CallGrammar& grammar) {
  TRY_ASSIGN(const grammar::ExprId call, grammar.json_call(tool, "arguments"));
  return grammar.tagged(call);
}

extern const Dialect kHermes = {.name = "hermes",
                                .is_shown_by = is_hermes,
                                .marker = kToolCallOpen,
                                .may_lack_marker = false,
                                .is_framed = false,
                                .words = kTaggedCallWords,
                                .make_reader = make_tagged_reader,
                                .call = hermes_call,
                                .calls = calls_on_lines};

}  // namespace chimere::chat
