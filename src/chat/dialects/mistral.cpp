// mistral.cpp  Mistral's models, in two forms.
//
//   [TOOL_CALLS][{"name": NAME, "arguments": {...}}]
//   [TOOL_CALLS]NAME[ARGS]{...}                        [CALL_ID]ID may stand before [ARGS]
#include "chat/dialects/bare_calls.h"
#include "chat/dialects/call_grammar.h"
#include "chat/markers.h"
#include "chat/text_scan.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kArgs = "[ARGS]";
constexpr std::string_view kCallId = "[CALL_ID]";
constexpr std::string_view kMistralWords[] = {kToolCalls, kCallId, kArgs};
constexpr size_t kMaxBareHeadBytes = 512;

bool is_mistral(std::string_view source) { return source.find(kToolCalls) != std::string_view::npos; }

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// NAME[CALL_ID]ID[ARGS]{ with the parts in brackets left out at will.
BareHead read_name(std::string_view text, size_t at) {
  using Kind = BareHead::Kind;
  size_t end = at;
  while (end < text.size() && is_name_char(text[end])) ++end;
  BareHead head{Kind::none, std::string(text.substr(at, end - at)), 0};
  if (head.name.empty()) return head;
  size_t next = skip_blank(text, end);
  std::string_view rest = text.substr(next);
  if (is_prefix_of(rest, kArgs) || is_prefix_of(rest, kCallId)) return {Kind::incomplete};
  if (rest.starts_with(kCallId)) {
    const size_t args = text.find(kArgs, next);
    if (args == std::string_view::npos) return {text.size() < kMaxBareHeadBytes ? Kind::incomplete : Kind::none};
    next = args;
    rest = text.substr(next);
  }
  if (rest.starts_with(kArgs)) next = skip_blank(text, next + kArgs.size());
  if (next >= text.size()) return {Kind::incomplete};
  if (text[next] != '{') return head;
  head.kind = Kind::found;
  head.json_begin = next;
  return head;
}

std::unique_ptr<CallReader> mistral_reader() {
  return std::make_unique<BareCalls>(BareForm{kToolCalls, /*may_lack_marker=*/false, read_name});
}

// The newer of the two forms has a token between name and arguments.
bool names_calls(const CallGrammar& grammar) { return grammar.has_token(kArgs); }

Result<grammar::ExprId> mistral_call(const DeclaredTool& tool, CallGrammar& grammar) {
  if (!names_calls(grammar)) return grammar.json_call(tool, "arguments");
  TRY_ASSIGN(const grammar::ExprId arguments, grammar.arguments(tool));
  return grammar.g.sequence({grammar.word(kToolCalls), grammar.g.bytes(tool.name), grammar.word(kArgs), arguments});
}

grammar::ExprId mistral_calls(grammar::ExprId call, int most, CallGrammar& grammar) {
  grammar::Grammar& g = grammar.g;
  if (names_calls(grammar)) return g.repeat(call, 1, most);
  const grammar::ExprId more = g.repeat(g.sequence({grammar.json.comma(), call}), 0, most - 1);
  return g.sequence({grammar.word(kToolCalls), grammar.json.brackets(g.sequence({call, more}))});
}

}  // namespace

extern const Dialect kMistral = {.name = "mistral",
                                 .is_shown_by = is_mistral,
                                 .marker = kToolCalls,
                                 .may_lack_marker = false,
                                 .is_framed = false,
                                 .words = kMistralWords,
                                 .make_reader = mistral_reader,
                                 .call = mistral_call,
                                 .calls = mistral_calls};

}  // namespace chimere::chat
