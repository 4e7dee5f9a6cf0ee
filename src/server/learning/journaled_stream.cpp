#include "server/learning/journaled_stream.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;

void add_once(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

class JournaledStream : public orchestrator::AnswerStream {
 public:
  JournaledStream(std::unique_ptr<AnswerStream> stream, std::shared_ptr<store::Journal> journal,
                  store::JournalAnswer entry)
      : stream_(std::move(stream)), journal_(std::move(journal)), entry_(std::move(entry)) {}

  std::optional<ChatChunk> poll() override {
    std::optional<ChatChunk> chunk = stream_->poll();
    if (chunk && !is_over_) take(*chunk);
    return chunk;
  }
  void cancel() override { stream_->cancel(); }
  void stop_thinking() override { stream_->stop_thinking(); }
  engine::RequestId engine_id() const override { return stream_->engine_id(); }
  engine::Usage seen() const override { return stream_->seen(); }
  std::optional<std::chrono::steady_clock::time_point> first_token_time() const override {
    return stream_->first_token_time();
  }

 private:
  void take(const ChatChunk& chunk) {
    // Of what is longer than the journal takes, enough for it to see that.
    if (entry_.answer.size() <= journal_->limits().answer_bytes) entry_.answer += chunk.content;
    for (const orchestrator::ToolCallDelta& delta : chunk.tool_calls) add_call(delta);
    if (chunk.kind == ChatChunk::Kind::finished) finish(chunk);
  }

  void add_call(const orchestrator::ToolCallDelta& delta) {
    if (delta.index < 0 || delta.index > kMaxCalls) return;
    const auto index = static_cast<size_t>(delta.index);
    if (entry_.tool_calls.size() <= index) entry_.tool_calls.resize(index + 1);
    chat::ToolCall& call = entry_.tool_calls[index];
    call.id += delta.id;
    call.name += delta.name;
    call.arguments_json += delta.arguments;
  }

  void finish(const ChatChunk& chunk) {
    is_over_ = true;
    if (chunk.finish == orchestrator::Finish::cancelled) return;
    entry_.finish = orchestrator::finish_name(chunk.finish);
    entry_.prompt_tokens = chunk.usage.prompt_tokens;
    entry_.completion_tokens = chunk.usage.completion_tokens;
    entry_.seconds = chunk.usage.prefill_seconds + chunk.usage.decode_seconds;
    for (const orchestrator::UsedPassage& passage : chunk.passages) {
      if (passage.note != 0) {
        add_once(entry_.artefacts, "notes");
      } else {
        add_once(entry_.foreign, "document");
      }
    }
    if (chunk.run) take_run(*chunk.run);
    journal_->add(std::move(entry_));
  }

  void take_run(const orchestrator::RunReport& run) {
    entry_.route = run.route;
    for (const orchestrator::StepReport& step : run.steps) {
      if (step.state != orchestrator::StepReport::State::done) continue;
      if (step.stage == "tool") add_once(entry_.foreign, "tool");
      if (step.stage == "web") add_once(entry_.foreign, "web");
      if (step.stage == "retrieve") add_once(entry_.foreign, "document");
    }
  }

  static constexpr int kMaxCalls = 1'000;

  const std::unique_ptr<AnswerStream> stream_;
  const std::shared_ptr<store::Journal> journal_;
  store::JournalAnswer entry_;
  bool is_over_ = false;
};

}  // namespace

store::JournalAnswer journal_entry(const orchestrator::ChatRequest& request, std::string model, std::string request_id,
                                   std::string answer_id) {
  store::JournalAnswer entry;
  entry.request_id = std::move(request_id);
  entry.answer_id = std::move(answer_id);
  entry.owner = request.memory.owner;
  entry.created = static_cast<int64_t>(std::time(nullptr));
  entry.model = std::move(model);
  for (const orchestrator::AdapterUse& adapter : request.adapters) entry.artefacts.push_back("lora:" + adapter.name);
  for (const auto& table : request.memory.tables) entry.artefacts.push_back("engram:" + table.name);
  entry.messages = request.messages;
  entry.tools = request.tools;
  for (const chat::Message& message : entry.messages) {
    if (message.role == "tool") add_once(entry.foreign, "tool");
  }
  if (!request.looked_up.empty()) add_once(entry.foreign, "document");
  return entry;
}

std::unique_ptr<orchestrator::AnswerStream> journaled(std::unique_ptr<orchestrator::AnswerStream> stream,
                                                      std::shared_ptr<store::Journal> journal,
                                                      store::JournalAnswer entry) {
  return std::make_unique<JournaledStream>(std::move(stream), std::move(journal), std::move(entry));
}

}  // namespace chimere::server
