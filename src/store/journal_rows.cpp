#include "store/journal_rows.h"

#include "base/hash.h"
#include "store/masking.h"
#include "text/json.h"

namespace chimere::store {
namespace {

Json message_json(const chat::Message& message) {
  Json json{{"role", message.role}};
  json["content"] = masked(text_of(message));
  if (!message.tool_calls.empty()) json["tool_calls"] = Json::array();
  for (const chat::ToolCall& call : message.tool_calls) {
    json["tool_calls"].push_back({{"name", call.name}, {"arguments", masked(call.arguments_json)}});
  }
  if (!message.name.empty()) json["name"] = message.name;
  return json;
}

// Masked.
std::string messages_json(const std::vector<chat::Message>& messages) {
  Json json = Json::array();
  for (const chat::Message& message : messages) json.push_back(message_json(message));
  return to_text(json);
}

std::string calls_json(const std::vector<chat::ToolCall>& calls) {
  Json json = Json::array();
  for (const chat::ToolCall& call : calls) {
    json.push_back({{"name", call.name}, {"arguments", masked(call.arguments_json)}});
  }
  return to_text(json);
}

std::string tools_json(const std::vector<chat::Tool>& tools) {
  Json json = Json::array();
  for (const chat::Tool& tool : tools) {
    auto parsed = parse_json(masked(tool.json));
    if (parsed) json.push_back(std::move(*parsed));
  }
  return to_text(json);
}

std::string names_json(const std::vector<std::string>& names) { return to_text(Json(names)); }

}  // namespace

JournalRow row_of(const JournalAnswer& answer) {
  JournalRow row;
  row.owner = answer.owner;
  row.request_id = answer.request_id;
  row.answer_id = answer.answer_id;
  row.conversation = conversation_of(answer.owner, answer.messages);
  row.created = answer.created;
  row.model = answer.model;
  row.route = answer.route;
  row.artefacts = names_json(answer.artefacts);
  row.foreign = names_json(answer.foreign);
  row.messages = messages_json(answer.messages);
  row.answer = masked(answer.answer);
  row.tool_calls = calls_json(answer.tool_calls);
  row.tools = answer.tools.empty() ? "" : tools_json(answer.tools);
  row.finish = answer.finish;
  row.prompt_tokens = answer.prompt_tokens;
  row.completion_tokens = answer.completion_tokens;
  row.milliseconds = static_cast<int64_t>(answer.seconds * 1000);
  row.bytes = static_cast<int64_t>(row.messages.size() + row.answer.size() + row.tool_calls.size() + row.tools.size());
  return row;
}

uint64_t bytes_of(const JournalAnswer& answer) {
  uint64_t bytes = 256 + answer.answer.size();
  for (const chat::Message& message : answer.messages) {
    bytes += 64 + (message.content ? message.content->size() : 0) + message.content_parts_json.size();
    for (const chat::ToolCall& call : message.tool_calls) bytes += call.arguments_json.size();
  }
  for (const chat::ToolCall& call : answer.tool_calls) bytes += call.arguments_json.size();
  for (const chat::Tool& tool : answer.tools) bytes += tool.json.size();
  return bytes;
}

std::string conversation_of(const std::string& owner, const std::vector<chat::Message>& messages) {
  uint64_t hash = hash64(owner);
  for (const chat::Message& message : messages) {
    if (message.role == "assistant") break;
    hash = hash_mix(hash ^ hash64(message.role)) ^ hash64(text_of(message));
    if (message.role == "user") break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string name(16, '0');
  for (size_t i = 0; i < name.size(); ++i) name[i] = kHex[(hash >> (4 * i)) & 15];
  return name;
}

}  // namespace chimere::store
