#include "odo/routing/model_choice.h"

#include <string>
#include <utility>

#include "odo/word_chances.h"
#include "text/utf8.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;

constexpr size_t kMaxAskedBytes = 1500;                 // of a question: what decides stands at its beginning
constexpr uint64_t kRoutingScope = 0x6f646f20726f7574;  // "odo rout"

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

}  // namespace

ChatRequest route_question(const std::vector<NamedRules>& routes, std::string_view question) {
  std::string task = "Name the topic of the message. The topics are:\n";
  for (const auto& [name, rules] : routes) task += "- " + name + ": " + rules.describes + "\n";
  task += "Answer with the name of one topic and nothing else.";
  return word_question({message("system", std::move(task)),
                        message("user", "Message:\n" + std::string(beginning(question)) + "\n\nTopic:")},
                       kRoutingScope);
}

Result<std::vector<double>> ask_model(orchestrator::ChatService& service, const std::vector<NamedRules>& routes,
                                      std::string_view question, const ModelCall& call) {
  ChatRequest request = route_question(routes, question);
  request.owner = call.owner;
  request.deadline = call.deadline;
  std::vector<std::string> names;
  for (const auto& [name, rules] : routes) names.push_back(name);
  return word_chances(service, request, names, "names of routes");
}

}  // namespace chimere::odo
