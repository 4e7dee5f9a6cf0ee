#include "improve/examples/example_file.h"

#include <cmath>
#include <fstream>

#include "gguf/value.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr JsonLimits kLineLimits{.depth = 32, .values = 100'000, .key_comparisons = 1'000'000};
constexpr size_t kMaxMessages = 1000;

Error expected(const std::string& what) { return Error{Code::invalid_argument, "expected " + what}; }

Status take_text(const Json& from, const char* key, std::optional<std::string>& to) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return Ok{};
  if (!found->is_string()) return expected(std::string("\"") + key + "\" to be a string");
  to = found->get<std::string>();
  return Ok{};
}

Result<chat::ToolCall> parse_call(const Json& call) {
  const Json& body = call.is_object() && call.contains("function") ? call["function"] : call;
  if (!body.is_object() || !body.contains("name") || !body["name"].is_string()) {
    return expected("a tool call with a \"name\"");
  }
  chat::ToolCall made;
  made.name = body["name"].get<std::string>();
  made.arguments_json = "{}";
  if (const auto arguments = body.find("arguments"); arguments != body.end()) {
    if (!arguments->is_object()) return expected("\"arguments\" of a tool call to be an object");
    made.arguments_json = arguments->dump();
  }
  return Result<chat::ToolCall>{std::move(made)};
}

Result<chat::Message> parse_message(const Json& from) {
  if (!from.is_object()) return expected("a message to be an object");
  std::optional<std::string> role;
  TRY(take_text(from, "role", role));
  if (!role) return expected("a message to have a \"role\"");
  chat::Message message;
  message.role = *role;
  TRY(take_text(from, "content", message.content));
  TRY(take_text(from, "reasoning_content", message.reasoning_content));
  if (const auto calls = from.find("tool_calls"); calls != from.end()) {
    if (!calls->is_array()) return expected("\"tool_calls\" to be an array");
    for (const Json& call : *calls) {
      TRY_ASSIGN(chat::ToolCall made, parse_call(call));
      message.tool_calls.push_back(std::move(made));
    }
  }
  return Result<chat::Message>{std::move(message)};
}

Status parse_conversation(const Json& json, chat::ChatInput& to) {
  const Json& messages = json["messages"];
  if (!messages.is_array() || messages.size() < 2 || messages.size() > kMaxMessages) {
    return expected("\"messages\" to be an array of 2 to " + std::to_string(kMaxMessages));
  }
  for (const Json& message : messages) {
    TRY_ASSIGN(chat::Message made, parse_message(message));
    to.messages.push_back(std::move(made));
  }
  if (const auto tools = json.find("tools"); tools != json.end()) {
    if (!tools->is_array()) return expected("\"tools\" to be an array");
    for (const Json& tool : *tools) to.tools.push_back({tool.dump()});
  }
  return Ok{};
}

std::vector<int32_t> encode_part(const Tokenizer& tokenizer, const chat::Rendered& rendered, size_t from) {
  std::vector<TextSpan> spans;
  for (const chat::Span& span : rendered.spans) {
    const size_t begin = std::max(span.begin, from);
    if (begin >= span.end) continue;
    spans.push_back({std::string_view(rendered.text).substr(begin, span.end - begin),
                     span.is_input ? EncodeMode::plain : EncodeMode::special});
  }
  return tokenizer.encode_spans(spans, false);
}

}  // namespace

Result<ExampleLine> parse_example(std::string_view line) {
  if (line.size() > kMaxExampleLine) {
    return expected("at most " + std::to_string(kMaxExampleLine) + " bytes, found " + std::to_string(line.size()));
  }
  TRY_ASSIGN(const Json json, parse_json(line, kLineLimits));
  if (!json.is_object()) return expected("an object");
  ExampleLine made;
  std::optional<std::string> text, prompt, answer;
  TRY(take_text(json, "text", text));
  TRY(take_text(json, "prompt", prompt));
  TRY(take_text(json, "answer", answer));
  const int n_kinds = (text ? 1 : 0) + (prompt || answer ? 1 : 0) + (json.contains("messages") ? 1 : 0);
  if (n_kinds != 1 || prompt.has_value() != answer.has_value()) {
    return expected("either \"messages\", or \"prompt\" and \"answer\", or \"text\"");
  }
  if (text) made.text = std::move(*text);
  if (prompt) {
    for (const auto& [role, content] : {std::pair{"user", &prompt}, std::pair{"assistant", &answer}}) {
      chat::Message message;
      message.role = role;
      message.content = **content;
      made.conversation.messages.push_back(std::move(message));
    }
  }
  if (json.contains("messages")) TRY(parse_conversation(json, made.conversation));
  if (!text && made.conversation.messages.back().role != "assistant") {
    return expected("the last message to be the assistant's, found the role " +
                    gguf::quoted(made.conversation.messages.back().role));
  }
  if (const auto weight = json.find("weight"); weight != json.end()) {
    if (!weight->is_number()) return expected("\"weight\" to be a number");
    made.weight = weight->get<float>();
  }
  if (const auto keep = json.find("keep"); keep != json.end()) {
    if (!keep->is_boolean()) return expected("\"keep\" to be true or false");
    made.is_kept = keep->get<bool>();
  }
  if (!(made.weight > 0) || !(made.weight <= 1000)) return expected("\"weight\" to be above 0 and at most 1000");
  return Result<ExampleLine>{std::move(made)};
}

Result<Example> tokens_of(const ExampleLine& line, const Tokenizer& tokenizer,
                          const chat::ChatTemplate& chat_template) {
  Example example;
  example.weight = line.weight;
  example.is_kept = line.is_kept;
  const int32_t bos = tokenizer.special_ids().bos;
  if (line.conversation.messages.empty()) {
    example.tokens = tokenizer.encode(line.text, EncodeMode::plain, true);
    if (example.tokens.size() < 2) return expected("a text of two tokens or more");
    return Result<Example>{std::move(example)};
  }
  chat::ChatInput whole = line.conversation;
  whole.add_generation_prompt = false;
  chat::ChatInput asked = line.conversation;
  const chat::Message& answer = whole.messages.back();
  asked.messages.pop_back();
  if (!answer.reasoning_content) asked.enable_thinking = false;
  TRY_ASSIGN(const chat::Rendered prompt, chat_template.render(asked));
  TRY_ASSIGN(const chat::Rendered all, chat_template.render(whole));
  if (!std::string_view(all.text).starts_with(prompt.text)) {
    return Error{
        Code::unsupported,
        "the model's template shows an answer in another form than the model begins it: nothing can be learned "
        "from conversations"};
  }
  example.tokens = encode_part(tokenizer, prompt, 0);
  if (tokenizer.adds_bos() && bos >= 0 && (example.tokens.empty() || example.tokens.front() != bos)) {
    example.tokens.insert(example.tokens.begin(), bos);
  }
  example.answer_from = static_cast<int32_t>(example.tokens.size());
  std::vector<int32_t> written = encode_part(tokenizer, all, prompt.text.size());
  // What the template writes behind the end of the turn is not the model's.
  for (size_t i = written.size(); i > 0; --i) {
    if (tokenizer.is_eog(written[i - 1])) {
      written.resize(i);
      break;
    }
  }
  if (written.empty() || example.tokens.empty()) return expected("a question and an answer that are not empty");
  example.tokens.insert(example.tokens.end(), written.begin(), written.end());
  return Result<Example>{std::move(example)};
}

Result<chat::ChatTemplate> template_of(const models::Model& model, const Tokenizer& tokenizer) {
  TRY_ASSIGN(const std::string_view source, model.metadata().get_string("tokenizer.chat_template"));
  const SpecialIds& ids = tokenizer.special_ids();
  return chat::ChatTemplate::create(source, std::string(tokenizer.token_text(ids.bos)),
                                    std::string(tokenizer.token_text(ids.eos)));
}

Result<std::vector<Example>> read_examples_file(const std::string& path, const models::Model& model) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model.metadata()));
  TRY_ASSIGN(const chat::ChatTemplate chat_template, template_of(model, tokenizer));
  std::vector<Example> examples;
  uint64_t n_bytes = 0;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    n_bytes += line.size() + 1;
    const auto wrong = [&](const Error& e) {
      return Error{e.code, path + ":" + std::to_string(number) + ": " + e.message};
    };
    if (n_bytes > kMaxExampleFile) {
      return wrong(expected("a file of at most " + std::to_string(kMaxExampleFile >> 20) + " MiB"));
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto parsed = parse_example(line);
    if (!parsed) return wrong(parsed.error());
    auto example = tokens_of(*parsed, tokenizer, chat_template);
    if (!example) return wrong(example.error());
    if (example->tokens.size() > kMaxExampleTokens) {
      return wrong(expected("at most " + std::to_string(kMaxExampleTokens) + " tokens, found " +
                            std::to_string(example->tokens.size())));
    }
    if (examples.size() == kMaxExamples) return wrong(expected("at most " + std::to_string(kMaxExamples) + " lines"));
    examples.push_back(std::move(*example));
  }
  if (examples.empty()) return Error{Code::invalid_argument, path + ": expected examples, found none"};
  return Result<std::vector<Example>>{std::move(examples)};
}

}  // namespace chimere::improve
