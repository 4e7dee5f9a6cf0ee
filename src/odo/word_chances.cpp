#include "odo/word_chances.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace chimere::odo {
namespace {

using orchestrator::ChatChunk;
using orchestrator::ChatRequest;
using orchestrator::ChatStream;

constexpr size_t kWordsAtOnce = 8;  // requests that run beside each other

std::string escaped(const std::string& word) {
  std::string out;
  for (const char c : word) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::unique_ptr<ChatStream> start_word(orchestrator::ChatService& service, ChatRequest request,
                                       const std::string& word) {
  request.form.regex = escaped(word);
  return service.start(std::move(request));
}

Result<double> logprob_of(ChatStream& stream, const std::string& word, const std::string& what) {
  double sum = 0;
  std::string written;
  for (;;) {
    const std::optional<ChatChunk> chunk = stream.wait(std::chrono::milliseconds(1000));
    if (!chunk) continue;
    for (const orchestrator::TokenInfo& token : chunk->tokens) sum += token.token.logprob;
    written += chunk->content;
    if (!chunk->is_terminal()) continue;
    if (chunk->error) return Error{chunk->error->code, what + ": " + chunk->error->message};
    if (written != word) return Error{Code::cancelled, what + ": the time was up"};
    return sum;
  }
}

}  // namespace

ChatRequest word_question(std::vector<chat::Message> messages, uint64_t cache_scope) {
  ChatRequest request;
  request.messages = std::move(messages);
  request.enable_thinking = false;
  request.sampling.temperature = 0;
  request.seed = 0;
  request.logprobs = true;
  request.memory.notes = 0;
  request.speculation = speculative::Mode::off;
  request.cache_scope = cache_scope;
  return request;
}

Result<std::vector<double>> word_chances(orchestrator::ChatService& service, const ChatRequest& question,
                                         const std::vector<std::string>& words, const std::string& what) {
  std::vector<double> logprobs;
  for (size_t begin = 0; begin < words.size();) {
    // The first alone: it reads the prompt for all.
    const size_t end = begin == 0 ? 1 : std::min(words.size(), begin + kWordsAtOnce);
    std::vector<std::unique_ptr<ChatStream>> streams;
    for (size_t i = begin; i < end; ++i) streams.push_back(start_word(service, question, words[i]));
    for (size_t i = begin; i < end; ++i) {
      TRY_ASSIGN(const double logprob, logprob_of(*streams[i - begin], words[i], what));
      logprobs.push_back(logprob);
    }
    begin = end;
  }
  return Result<std::vector<double>>{std::move(logprobs)};
}

}  // namespace chimere::odo
