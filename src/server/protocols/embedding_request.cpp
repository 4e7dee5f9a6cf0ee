// embedding_request.cpp  Inputs and documents: JSON to structs.
#include "server/protocols/embedding_request.h"

#include <algorithm>

#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::EmbedInput;

// Token ids, and texts among them, which become their tokens. False when it is no such list.
bool read_ids(const Json& list, const Tokenizer* tokenizer, std::vector<int32_t>& ids) {
  const auto is_piece = [](const Json& item) { return is_token_id(item) || item.is_string(); };
  if (!std::all_of(list.begin(), list.end(), is_piece)) return false;
  if (!std::any_of(list.begin(), list.end(), is_token_id)) return false;
  if (!tokenizer && !std::all_of(list.begin(), list.end(), is_token_id)) return false;
  for (const Json& item : list) {
    if (is_token_id(item)) {
      ids.push_back(item.get<int32_t>());
      continue;
    }
    const std::vector<int32_t> more = tokenizer->encode(item.get<std::string>(), EncodeMode::plain, false);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return true;
}

// {"prompt_string": TEXT} or {"content": [{"type": "text", "text": TEXT}, ...]}, as llama.cpp has them.
bool read_object(const Json& object, std::string& text) {
  if (object.contains("multimodal_data")) return false;
  if (const auto prompt = object.find("prompt_string"); prompt != object.end()) {
    if (prompt->is_string()) text = prompt->get<std::string>();
    return prompt->is_string();
  }
  const auto parts = object.find("content");
  if (parts == object.end() || !parts->is_array() || parts->empty()) return false;
  for (const Json& part : *parts) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" && part.contains("text");
    if (!is_text || !part["text"].is_string()) return false;
    text += part["text"].get<std::string>();
  }
  return true;
}

// One text in any of its shapes; false when it is none.
bool read_input(const Json& item, const Tokenizer* tokenizer, EmbedInput& to) {
  if (item.is_object()) return read_object(item, to.text);
  if (item.is_array()) return read_ids(item, tokenizer, to.ids);
  if (item.is_string()) to.text = item.get<std::string>();
  return item.is_string();
}

void read_inputs(JsonFields& fields, const Tokenizer* tokenizer, std::vector<EmbedInput>& inputs) {
  constexpr const char* kExpected =
      "a string, a list of strings, a list of token ids, which may have texts behind the first, or a list of such "
      "lists";
  const Json* input = fields.find("input");
  if (!input) input = fields.find("content");  // as llama.cpp calls it
  if (!input) return fields.fail("input", std::string("expected ") + kExpected + ", found none");
  if (!input->is_array()) {
    if (!read_input(*input, tokenizer, inputs.emplace_back())) fields.fail_type("input", kExpected, *input);
    return;
  }
  if (input->empty()) return fields.fail("input", std::string("expected ") + kExpected + ", found an empty list");
  // A number behind texts is more likely a mistake than a token of theirs.
  if (is_token_id(input->front())) {
    if (!read_ids(*input, tokenizer, inputs.emplace_back().ids)) {
      fields.fail("input", "expected token ids and texts, found something else");
    }
    return;
  }
  if (input->size() > kMaxEmbedInputs) {
    return fields.fail("input", "expected at most " + std::to_string(kMaxEmbedInputs) + " texts, found " +
                                    std::to_string(input->size()));
  }
  for (size_t i = 0; i < input->size(); ++i) {
    const Json& item = (*input)[i];
    if (!read_input(item, tokenizer, inputs.emplace_back())) {
      return fields.fail("input", "expected a string or a list of token ids and texts at " + std::to_string(i) +
                                      ", found " + (item.is_array() ? "another list" : describe(item)));
    }
  }
}

void read_documents(JsonFields& fields, const std::string& name, std::vector<std::string>& documents) {
  const Json* list = fields.array(name);
  if (!list || list->empty()) return fields.fail(name, "expected a list of at least 1 text, found none");
  if (list->size() >= kMaxEmbedInputs) {
    return fields.fail(name, "expected fewer than " + std::to_string(kMaxEmbedInputs) + " texts, found " +
                                 std::to_string(list->size()));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    const Json* text = item.is_object() && item.contains("text") ? &item["text"] : &item;
    if (!text->is_string()) {
      return fields.fail(
          name, "expected a string or {\"text\": string} at " + std::to_string(i) + ", found " + describe(*text));
    }
    documents.push_back(text->get<std::string>());
  }
}

}  // namespace

std::variant<EmbeddingCall, ApiError> parse_embedding_call(std::string_view body, const EmbeddingShapeOf& shape_of) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
  EmbeddingCall call;
  fields.string("model", call.model);
  fields.string("user", call.user);
  const auto [max_dimensions, tokenizer] = shape_of(call.model);
  read_inputs(fields, tokenizer, call.inputs);
  std::string format = "float";
  fields.string("encoding_format", format);
  if (format != "float" && format != "base64") {
    fields.fail("encoding_format", "expected \"float\" or \"base64\", found \"" + format.substr(0, 64) + "\"");
  }
  call.as_base64 = format == "base64";
  fields.integer("dimensions", call.dimensions, 1, max_dimensions);
  const size_t numbers =
      call.inputs.size() * static_cast<size_t>(call.dimensions > 0 ? call.dimensions : max_dimensions);
  if (!call.as_base64 && numbers > kMaxEmbedNumbers) {
    fields.fail("input", "expected at most " + std::to_string(kMaxEmbedNumbers) + " numbers in an answer, found " +
                             std::to_string(numbers) + ": send fewer texts, or ask for encoding_format base64");
  }
  if (!fields.ok()) return fields.error();
  call.ignored = fields.unknown();
  return call;
}

std::variant<RerankCall, ApiError> parse_rerank_call(std::string_view body) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
  RerankCall call;
  fields.string("model", call.model);
  fields.string("user", call.user);
  fields.string("query", call.query);
  if (call.query.empty()) fields.fail("query", "expected a text, found none");
  call.is_tei = !fields.find("documents") && fields.find("texts");
  read_documents(fields, call.is_tei ? "texts" : "documents", call.documents);
  fields.integer("top_n", call.top_n, 1, INT32_MAX);
  fields.boolean(call.is_tei ? "return_text" : "return_documents", call.return_documents);
  if (!fields.ok()) return fields.error();
  call.ignored = fields.unknown();
  return call;
}

}  // namespace chimere::server
