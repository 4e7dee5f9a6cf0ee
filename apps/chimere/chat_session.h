// chat_session.h  A model and the conversation with it: questions are asked, taken back, saved and loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat_options.h"
#include "chat_screen.h"
#include "orchestrator/chat_service.h"

namespace chimere::apps {

class ChatSession {
 public:
  explicit ChatSession(ChatOptions& options, ChatScreen& screen) : options_(options), screen_(screen) {}

  // Loads the model of the options. Warnings go to the screen.
  Status open();
  // Another model in its place, with the same conversation. When it can not be loaded, the one before is again.
  Status change_model(const std::string& path);

  // Asks, shows the answer as it comes, remembers both. Ctrl-C stops the answer; what came of it stays.
  Status ask(const std::string& question);
  // The last question, for another answer or another wording; nullopt when there was none. Both are forgotten.
  std::optional<std::string> take_back();
  std::optional<std::string> last_question() const;
  void clear() { messages_.clear(); }

  // As the messages of an API request, the system prompt first.
  Status save(const std::string& path) const;
  Status load(const std::string& path);

  size_t n_messages() const { return messages_.size(); }
  bool was_stopped() const { return was_stopped_; }  // the last answer, by Ctrl-C
  std::string facts() const;                         // the model, in a line
  std::string stats() const;
  orchestrator::ChatService& service() { return *service_; }

 private:
  orchestrator::ChatRequest request() const;
  void show_speed(const orchestrator::ChatChunk& end) const;

  ChatOptions& options_;
  ChatScreen& screen_;
  std::unique_ptr<orchestrator::ChatService> service_;
  std::vector<chat::Message> messages_;  // without the system prompt, which options_ has
  std::optional<engine::Usage> last_;
  int64_t n_answers_ = 0, n_tokens_ = 0;
  double decode_seconds_ = 0;
  bool was_stopped_ = false;
};

}  // namespace chimere::apps
