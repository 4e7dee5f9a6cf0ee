// response_writer.cpp  What all protocols do alike.
#include "server/protocols/shared/response_writer.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::TokenInfo;
using orchestrator::ToolCallDelta;

void append(ChatChunk& sum, ChatChunk chunk) {
  sum.reasoning += chunk.reasoning;
  sum.content += chunk.content;
  for (TokenInfo& token : chunk.tokens) sum.tokens.push_back(std::move(token));
  for (ToolCallDelta& delta : chunk.tool_calls) {
    // Calls come one after the other, numbered from 0.
    while (static_cast<int>(sum.tool_calls.size()) <= delta.index) {
      sum.tool_calls.push_back({static_cast<int>(sum.tool_calls.size()), {}, {}, {}});
    }
    ToolCallDelta& call = sum.tool_calls[static_cast<size_t>(delta.index)];
    if (!delta.id.empty()) call.id = std::move(delta.id);
    call.name += delta.name;
    call.arguments += delta.arguments;
  }
  if (chunk.kind == ChatChunk::Kind::finished) {
    sum.finish = chunk.finish;
    sum.stop_text = std::move(chunk.stop_text);
    sum.usage = chunk.usage;
    sum.passages = std::move(chunk.passages);
    sum.prompt = std::move(chunk.prompt);
    sum.run = std::move(chunk.run);
    sum.citations = std::move(chunk.citations);
  }
}

engine::Usage total_usage(const std::vector<engine::Usage>& choices, size_t choices_per_prompt) {
  engine::Usage total;
  for (size_t i = 0; i < choices.size(); ++i) {
    const engine::Usage& usage = choices[i];
    if (i % choices_per_prompt == 0) {
      total.prompt_tokens += usage.prompt_tokens;
      total.cached_tokens += usage.cached_tokens;
      total.queue_seconds = std::max(total.queue_seconds, usage.queue_seconds);
      total.prefill_seconds = std::max(total.prefill_seconds, usage.prefill_seconds);
    }
    total.completion_tokens += usage.completion_tokens;
    total.reasoning_tokens += usage.reasoning_tokens;
    total.drafts += usage.drafts;
    total.draft_tokens += usage.draft_tokens;
    total.draft_tokens_accepted += usage.draft_tokens_accepted;
    total.draft_times.add(usage.draft_times);
    total.decode_seconds = std::max(total.decode_seconds, usage.decode_seconds);
  }
  return total;
}

std::string new_object_id(const char* prefix) {
  static const std::string run = [] {
    std::random_device device;
    return std::to_string(device());
  }();
  static std::atomic<uint64_t> count{0};
  return prefix + run + "-" + std::to_string(++count);
}

std::string sse(const std::string& json, const char* name) {
  return (name ? "event: " + std::string(name) + "\n" : std::string()) + "data: " + json + "\n\n";
}

}  // namespace chimere::server
