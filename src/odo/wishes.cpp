#include "odo/wishes.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using orchestrator::ThinkingMode;

template <class T>
void take(std::optional<T>& mine, const std::optional<T>& lower) {
  if (!mine) mine = lower;
}

template <class T, class U>
void put(const std::optional<T>& wish, U& out) {
  if (wish) out = *wish;
}

Wishes thoughts(ThinkingMode mode, int32_t limit) {
  Wishes wishes;
  wishes.thinking_mode = mode;
  wishes.thinking_limit = limit;
  return wishes;
}

const std::array<Mode, 3>& modes() {
  static const std::array<Mode, 3> kModes = {{
      {"fast", thoughts(ThinkingMode::fast, 256), false, false, false, true},
      {"quality", thoughts(ThinkingMode::quality, 1024), false, true, true, true},
      {"ultra", thoughts(ThinkingMode::ultra, 4096), true, true, true, false},
  }};
  return kModes;
}

}  // namespace

Wishes Wishes::over(const Wishes& lower) const {
  Wishes all = *this;
  take(all.temperature, lower.temperature);
  take(all.top_p, lower.top_p);
  take(all.top_k, lower.top_k);
  take(all.min_p, lower.min_p);
  take(all.presence_penalty, lower.presence_penalty);
  take(all.max_tokens, lower.max_tokens);
  take(all.thinking, lower.thinking);
  take(all.thinking_mode, lower.thinking_mode);
  take(all.thinking_limit, lower.thinking_limit);
  take(all.tables, lower.tables);
  take(all.alpha, lower.alpha);
  take(all.adapters, lower.adapters);
  return all;
}

void Wishes::apply_to(ChatRequest& request) const {
  put(temperature, request.sampling.temperature);
  put(top_p, request.sampling.top_p);
  put(top_k, request.sampling.top_k);
  put(min_p, request.sampling.min_p);
  put(presence_penalty, request.sampling.presence_penalty);
  put(max_tokens, request.max_tokens);
  put(thinking, request.enable_thinking);
  put(thinking_mode, request.thinking.mode);
  put(thinking_limit, request.thinking_limit);
  put(tables, request.memory.tables);
  put(alpha, request.memory.alpha);
  put(adapters, request.adapters);
}

Wishes wishes_of(const ChatRequest& request) {
  const auto said = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(request.given.begin(), request.given.end(), [&](const std::string& given) {
      return std::find(names.begin(), names.end(), given) != names.end();
    });
  };
  Wishes wishes;
  const SamplingParams& s = request.sampling;
  if (said({"temperature"})) wishes.temperature = s.temperature;
  if (said({"top_p"})) wishes.top_p = s.top_p;
  if (said({"top_k"})) wishes.top_k = s.top_k;
  if (said({"min_p"})) wishes.min_p = s.min_p;
  if (said({"presence_penalty"})) wishes.presence_penalty = s.presence_penalty;
  if (said({"max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict"})) {
    wishes.max_tokens = request.max_tokens;
  }
  // Every protocol has its own word for a thought, and none of them sets this one by itself.
  const bool about_thoughts = said({"enable_thinking", "chat_template_kwargs", "reasoning_effort", "reasoning", "think",
                                    "thinking", "thinking_budget"});
  if (about_thoughts) wishes.thinking = request.enable_thinking;
  if (about_thoughts) wishes.thinking_limit = request.thinking_limit;
  wishes.thinking_mode = request.thinking.mode;
  if (said({"engram", "engram_table", "engram_alpha"})) {
    wishes.tables = request.memory.tables;
    wishes.alpha = request.memory.alpha;
  }
  if (said({"lora"})) wishes.adapters = request.adapters;
  return wishes;
}

const Mode* mode_named(std::string_view name) {
  const auto found = std::find_if(modes().begin(), modes().end(), [&](const Mode& m) { return m.name == name; });
  return found == modes().end() ? nullptr : &*found;
}

std::vector<std::string> list_of_modes() {
  std::vector<std::string> names;
  for (const Mode& mode : modes()) names.emplace_back(mode.name);
  return names;
}

std::string mode_names() {
  std::string text;
  for (const Mode& mode : modes()) text += (text.empty() ? "" : ", ") + std::string(mode.name);
  return text;
}

}  // namespace chimere::odo
