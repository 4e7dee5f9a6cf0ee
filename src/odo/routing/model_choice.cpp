#include "odo/routing/model_choice.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "text/utf8.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatChunk;
using orchestrator::ChatRequest;
using orchestrator::ChatStream;

constexpr size_t kMaxAskedBytes = 1500;                 // of a question: what decides stands at its beginning
constexpr size_t kNamesAtOnce = 8;                      // requests that run beside each other
constexpr uint64_t kRoutingScope = 0x6f646f20726f7574;  // "odo rout"

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

chat::Message message(const char* role, std::string text) {
  chat::Message m;
  m.role = role;
  m.content = std::move(text);
  return m;
}

std::string_view beginning(std::string_view text) {
  if (text.size() <= kMaxAskedBytes) return text;
  size_t end = kMaxAskedBytes;
  while (end > 0 && is_continuation(text[end])) --end;
  return text.substr(0, end);
}

std::unique_ptr<ChatStream> start_name(orchestrator::ChatService& service, ChatRequest request,
                                       const std::string& name) {
  request.form.regex = escaped(name);
  return service.start(std::move(request));
}

Result<double> logprob_of(ChatStream& stream, const std::string& name) {
  double sum = 0;
  std::string written;
  for (;;) {
    const std::optional<ChatChunk> chunk = stream.wait(std::chrono::milliseconds(1000));
    if (!chunk) continue;
    for (const orchestrator::TokenInfo& token : chunk->tokens) sum += token.token.logprob;
    written += chunk->content;
    if (!chunk->is_terminal()) continue;
    if (chunk->error) return Error{chunk->error->code, "names of routes: " + chunk->error->message};
    if (written != name) return Error{Code::cancelled, "names of routes: the time was up"};
    return sum;
  }
}

}  // namespace

ChatRequest route_question(const std::vector<NamedRules>& routes, std::string_view question) {
  std::string task = "Name the topic of the message. The topics are:\n";
  for (const auto& [name, rules] : routes) task += "- " + name + ": " + rules.describes + "\n";
  task += "Answer with the name of one topic and nothing else.";
  ChatRequest request;
  request.messages = {message("system", std::move(task)),
                      message("user", "Message:\n" + std::string(beginning(question)) + "\n\nTopic:")};
  request.enable_thinking = false;
  request.sampling.temperature = 0;
  request.seed = 0;
  request.logprobs = true;
  request.memory.notes = 0;
  request.speculation = speculative::Mode::off;
  request.cache_scope = kRoutingScope;
  return request;
}

Result<std::vector<double>> ask_model(orchestrator::ChatService& service, const std::vector<NamedRules>& routes,
                                      std::string_view question, const ModelCall& call) {
  ChatRequest request = route_question(routes, question);
  request.owner = call.owner;
  request.deadline = call.deadline;
  std::vector<double> logprobs;
  for (size_t begin = 0; begin < routes.size();) {
    // The first alone: it reads the prompt for all.
    const size_t end = begin == 0 ? 1 : std::min(routes.size(), begin + kNamesAtOnce);
    std::vector<std::unique_ptr<ChatStream>> streams;
    for (size_t i = begin; i < end; ++i) streams.push_back(start_name(service, request, routes[i].first));
    for (size_t i = begin; i < end; ++i) {
      TRY_ASSIGN(const double logprob, logprob_of(*streams[i - begin], routes[i].first));
      logprobs.push_back(logprob);
    }
    begin = end;
  }
  return Result<std::vector<double>>{std::move(logprobs)};
}

}  // namespace chimere::odo
