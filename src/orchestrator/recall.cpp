#include "orchestrator/recall.h"

#include <algorithm>
#include <cmath>

#include "chat/tool_schema.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxNoteBytes = 2000;  // of one message
// Tokens below this are bytes and the words of every sentence.
constexpr float kCommonTokens = 300;

// Vocabularies are made in the order of frequency: a word that is one early token is common, one that takes several is
// a name or otherwise rare. Works for the language of the model, whichever that is.
float rarity_of(const Tokenizer& tokenizer, std::string_view word) {
  const std::vector<int32_t> ids = tokenizer.encode(" " + std::string(word), EncodeMode::plain, false);
  if (ids.size() > 1) return std::min(3.0f, 1 + 0.5f * static_cast<float>(ids.size() - 1));
  const float place = ids.empty() ? 0 : static_cast<float>(ids[0]) / kCommonTokens;
  const float places = static_cast<float>(tokenizer.n_vocab()) / kCommonTokens;
  return std::clamp(std::log(std::max(1.0f, place)) / std::log(std::max(2.0f, places)), 0.05f, 1.0f);
}

}  // namespace

std::string question_of(const std::vector<chat::Message>& messages) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->role == "user") return chat::text_of(*message);
  }
  return {};
}

void put_before(chat::Message& message, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  // The placement and the word that the model in the box understands best (docs/engram.md has the others).
  std::string before;
  for (const std::string& text : texts) before += (before.empty() ? "Fact: " : "\nFact: ") + text;
  if (message.content_parts_json.empty()) {
    message.content = before + "\n" + message.content.value_or("");
    return;
  }
  // An array of parts; templates put each on a line of its own.
  const std::string part = R"({"type":"text","text":)" + chat::json_quoted(before + "\n") + "}";
  const bool is_empty =
      message.content_parts_json.find_first_not_of(" \t\r\n", 1) == message.content_parts_json.rfind(']');
  message.content_parts_json.insert(1, part + (is_empty ? "" : ","));
}

std::vector<UsedPassage> recall(const MemoryService& memory, const MemoryUse& use,
                                const std::vector<UsedPassage>& passages, int context_length,
                                std::vector<chat::Message>& messages) {
  std::vector<UsedPassage> notes;
  const auto notebook = use.notes > 0 && use.alpha > 0 ? memory.notebook_of(use.owner) : nullptr;
  if (!notebook && passages.empty()) return notes;
  const auto rarity = [&](std::string_view word) { return rarity_of(memory.tokenizer(), word); };
  const auto is_users = [](const chat::Message& message) { return message.role == "user"; };
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_users);
  for (chat::Message& message : messages) {
    if (!is_users(message)) continue;
    auto room = static_cast<size_t>(std::max(0, context_length));  // bytes; a token has about four
    std::vector<std::string> texts;
    const auto tell = [&](std::string_view text) {
      if (text.size() > room) return false;
      room -= text.size();
      texts.emplace_back(text);
      return true;
    };
    const bool is_last = &message == &*last;
    if (is_last) {
      for (const UsedPassage& passage : passages) tell(passage.text);
    }
    room = std::min(room, kMaxNoteBytes);
    if (notebook) {
      for (const auto& found : notebook->about(chat::text_of(message), static_cast<size_t>(use.notes), rarity)) {
        if (tell(found.text) && is_last) {
          notes.push_back({found.note->source, std::string(found.text), found.score, found.note->id});
        }
      }
    }
    put_before(message, texts);
  }
  return notes;
}

}  // namespace chimere::orchestrator
