// snapshot_points.h  Where in a prompt other prompts will part from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

// Prompt lengths before each turn: behind the system prompt, before every message, before the answer. A turn begins
// with the control token that the generation prompt begins with; where a template has none, every control token counts.
// What came from outside is never a control token, so nobody can write a turn.
std::vector<int32_t> snapshot_points(const Tokenizer& tokenizer, std::string_view generation_prompt,
                                     std::span<const int32_t> prompt);

}  // namespace chimere::orchestrator
