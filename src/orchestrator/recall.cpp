#include "orchestrator/recall.h"

#include <algorithm>
#include <cmath>

#include "chat/tool_schema.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxNoteBytes = 2000;  // of one message
// Tokens below this are bytes and the words of every sentence.
constexpr float kCommonTokens = 300;

constexpr const char* kFact = "Fact: ";
// A small model that answers in a word or two picks them anywhere in the fact. In a sentence it says the fact. Larger
// ones lose nothing by it: "at least" leaves them all that an answer may need.
constexpr const char* kSentence = "Write at least a full sentence.\n";

// Vocabularies are made in the order of frequency: a word that is one early token is common, one that takes several is
// a name or otherwise rare. Works for the language of the model, whichever that is.
float rarity_of(const Tokenizer& tokenizer, std::string_view word) {
  const std::vector<int32_t> ids = tokenizer.encode(" " + std::string(word), EncodeMode::plain, false);
  if (ids.size() > 1) return std::min(3.0f, 1 + 0.5f * static_cast<float>(ids.size() - 1));
  const float place = ids.empty() ? 0 : static_cast<float>(ids[0]) / kCommonTokens;
  const float places = static_cast<float>(tokenizer.n_vocab()) / kCommonTokens;
  return std::clamp(std::log(std::max(1.0f, place)) / std::log(std::max(2.0f, places)), 0.05f, 1.0f);
}

// A message that ends with its question wants to know something, and nothing behind the question says in which form.
bool is_plain_question(std::string_view message) {
  const size_t last = message.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && message[last] == '?';
}

}  // namespace

retrieval::Rarity rarity_by(const Tokenizer& tokenizer) {
  return [&tokenizer](std::string_view word) { return rarity_of(tokenizer, word); };
}

std::string question_of(const std::vector<chat::Message>& messages) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->role == "user") return chat::text_of(*message);
  }
  return {};
}

std::string as_told(const std::vector<std::string>& texts, std::string_view fact, bool wants_sentence) {
  std::string told = kFact + std::string(fact) + "\n";
  for (const std::string& text : texts) {
    if (text != fact) told += text + "\n";
  }
  return wants_sentence ? told + kSentence : told;
}

void put_before(chat::Message& message, const std::string& text) {
  if (message.content_parts_json.empty()) {
    message.content = text + message.content.value_or("");
    return;
  }
  // An array of parts; templates put each on a line of its own.
  const std::string part = R"({"type":"text","text":)" + chat::json_quoted(text) + "}";
  const bool is_empty =
      message.content_parts_json.find_first_not_of(" \t\r\n", 1) == message.content_parts_json.rfind(']');
  message.content_parts_json.insert(1, part + (is_empty ? "" : ","));
}

std::vector<UsedPassage> recall(const MemoryService& memory, const ChatRequest& request,
                                const std::vector<UsedPassage>& passages, int context_length,
                                std::vector<chat::Message>& messages) {
  const MemoryUse& use = request.memory;
  std::vector<UsedPassage> notes;
  const auto notebook = use.notes > 0 && use.alpha > 0 ? memory.notebook_of(use.owner) : nullptr;
  if (!notebook && passages.empty()) return notes;
  const retrieval::Rarity rarity = rarity_by(memory.tokenizer());
  const auto is_users = [](const chat::Message& message) { return message.role == "user"; };
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_users);
  const bool may_be_text = request.form.is_free() && request.tools.empty();
  for (chat::Message& message : messages) {
    if (!is_users(message)) continue;
    const std::string asked = chat::text_of(message);
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
      for (const auto& found : notebook->about(asked, static_cast<size_t>(use.notes), rarity)) {
        if (tell(found.text) && is_last) {
          notes.push_back({found.note->source, std::string(found.text), found.score, found.note->id});
        }
      }
    }
    if (texts.empty()) continue;
    std::string_view fact = retrieval::nearest_sentence(asked, texts, rarity);
    // Found by its meaning, without a word in common: the nearest text as it is.
    if (fact.empty()) fact = texts.front();
    put_before(message, as_told(texts, fact, may_be_text && is_plain_question(asked)));
  }
  return notes;
}

}  // namespace chimere::orchestrator
