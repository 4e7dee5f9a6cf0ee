#include "store/journal_rows.h"

#include "base/hash.h"
#include "store/masking.h"
#include "text/json.h"

namespace chimere::store {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE agreements(owner TEXT PRIMARY KEY, agreed INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE answers(
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, request_id TEXT NOT NULL, answer_id TEXT NOT NULL,
  conversation TEXT NOT NULL, created INTEGER NOT NULL, model TEXT NOT NULL, route TEXT NOT NULL,
  artefacts TEXT NOT NULL, sources TEXT NOT NULL, messages TEXT NOT NULL, answer TEXT NOT NULL,
  tool_calls TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  milliseconds INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE INDEX answers_by_request ON answers(owner, request_id);
CREATE INDEX answers_by_answer ON answers(owner, answer_id);
CREATE INDEX answers_by_conversation ON answers(owner, conversation);
CREATE INDEX answers_by_age ON answers(created);
CREATE TABLE feedback(
  id INTEGER PRIMARY KEY AUTOINCREMENT, answer INTEGER NOT NULL REFERENCES answers(id) ON DELETE CASCADE,
  at INTEGER NOT NULL, kind TEXT NOT NULL, rating INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX feedback_by_answer ON feedback(answer);
)";

constexpr int64_t kApplicationId = 0x43484a52;  // "CHJR"

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

}  // namespace

const Schema kJournalSchema{"answers", kApplicationId, 1, kTables};

const char* const kScoreTable =
    "CREATE TABLE IF NOT EXISTS scores(answer INTEGER PRIMARY KEY REFERENCES answers(id) ON DELETE CASCADE, "
    "at INTEGER NOT NULL, score INTEGER NOT NULL, scorer TEXT NOT NULL, reason TEXT NOT NULL)";

const char* const kToolTable =
    "CREATE TABLE IF NOT EXISTS tools(answer INTEGER PRIMARY KEY REFERENCES answers(id) ON DELETE CASCADE, "
    "tools TEXT NOT NULL)";

const char* const kAnswerColumns =
    "id, request_id, answer_id, conversation, created, model, route, artefacts, sources, messages, answer, tool_calls, "
    "finish, prompt_tokens, completion_tokens, milliseconds, "
    "(SELECT score FROM scores WHERE scores.answer=answers.id), "
    "(SELECT scorer FROM scores WHERE scores.answer=answers.id), "
    "(SELECT reason FROM scores WHERE scores.answer=answers.id), "
    "(SELECT tools FROM tools WHERE tools.answer=answers.id)";

KeptAnswer read_answer(const Statement& row) {
  KeptAnswer kept;
  kept.id = row.integer(0);
  kept.request_id = row.text(1);
  kept.answer_id = row.text(2);
  kept.conversation = row.text(3);
  kept.created = row.integer(4);
  kept.model = row.text(5);
  kept.route = row.text(6);
  kept.artefacts = row.text(7);
  kept.foreign = row.text(8);
  kept.messages = row.text(9);
  kept.answer = row.text(10);
  kept.tool_calls = row.text(11);
  kept.finish = row.text(12);
  kept.prompt_tokens = row.integer(13);
  kept.completion_tokens = row.integer(14);
  kept.milliseconds = row.integer(15);
  kept.scored = row.integer(16);
  kept.scorer = row.text(17);
  kept.score_reason = row.text(18);
  kept.tools = row.text(19);
  return kept;
}

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
