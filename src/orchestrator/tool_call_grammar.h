// tool_call_grammar.h  Calls of declared tools in the form that a model's template shows, as a grammar.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/tool_format.h"
#include "grammar/expression.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

// Calls in one answer, where several are allowed: a model that never stops calling is of no use.
inline constexpr int kMaxToolCalls = 16;

struct ToolCallForm {
  chat::ToolFormat format = chat::ToolFormat::none;
  std::string only_tool;  // empty: any of them
  bool allows_several = true;
};

// One call or several, nothing before or behind. Refuses declarations whose parameters can not be a grammar, with the
// tool and the place.
Result<grammar::ExprId> tool_calls(const std::vector<chat::Tool>& tools, const ToolCallForm& form,
                                   const Tokenizer& tokenizer, grammar::Grammar& grammar);

// The text that calls begin with; empty where they begin with their JSON.
std::string_view tool_call_opening(chat::ToolFormat format);

}  // namespace chimere::orchestrator
