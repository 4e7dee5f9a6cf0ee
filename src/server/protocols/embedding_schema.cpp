#include "server/protocols/embedding_schema.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "server/protocols/generate_fields.h"
#include "server/protocols/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;
using orchestrator::EmbedInput;

constexpr int64_t kLargestId = INT32_MAX;

bool is_id(const Json& json) {
  return json.is_number_integer() && json.get<int64_t>() >= 0 && json.get<int64_t>() <= kLargestId;
}

// False when it is no list of ids.
bool read_ids(const Json& list, std::vector<int32_t>& ids) {
  if (list.empty() || !std::all_of(list.begin(), list.end(), is_id)) return false;
  for (const Json& id : list) ids.push_back(id.get<int32_t>());
  return true;
}

void read_inputs(JsonFields& fields, std::vector<EmbedInput>& inputs) {
  constexpr const char* kExpected = "a string, a list of strings, a list of token ids or a list of such lists";
  const Json* input = fields.find("input");
  if (!input) return fields.fail("input", std::string("expected ") + kExpected + ", found none");
  if (input->is_string()) {
    inputs.push_back({input->get<std::string>()});
    return;
  }
  if (!input->is_array()) return fields.fail_type("input", kExpected, *input);
  if (input->empty()) return fields.fail("input", std::string("expected ") + kExpected + ", found an empty list");
  if (is_id(input->front())) {
    if (!read_ids(*input, inputs.emplace_back().ids)) fields.fail("input", "expected token ids, found something else");
    return;
  }
  if (input->size() > kMaxEmbedInputs) {
    return fields.fail("input", "expected at most " + std::to_string(kMaxEmbedInputs) + " texts, found " +
                                    std::to_string(input->size()));
  }
  for (size_t i = 0; i < input->size(); ++i) {
    const Json& item = (*input)[i];
    EmbedInput& to = inputs.emplace_back();
    if (item.is_string()) {
      to.text = item.get<std::string>();
    } else if (!item.is_array() || !read_ids(item, to.ids)) {
      return fields.fail("input", "expected a string or a list of token ids at " + std::to_string(i) + ", found " +
                                      (item.is_array() ? "another list" : describe(item)));
    }
  }
}

void read_documents(JsonFields& fields, std::vector<std::string>& documents) {
  const Json* list = fields.array("documents");
  if (!list || list->empty()) return fields.fail("documents", "expected a list of at least 1 text, found none");
  if (list->size() >= kMaxEmbedInputs) {
    return fields.fail("documents", "expected fewer than " + std::to_string(kMaxEmbedInputs) + " texts, found " +
                                        std::to_string(list->size()));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    const Json* text = item.is_object() && item.contains("text") ? &item["text"] : &item;
    if (!text->is_string()) {
      return fields.fail("documents", "expected a string or {\"text\": string} at " + std::to_string(i) + ", found " +
                                          describe(*text));
    }
    documents.push_back(text->get<std::string>());
  }
}

// The first `n` values, at length 1 again.
std::vector<float> shortened(const std::vector<float>& vector, int n) {
  if (n == 0 || static_cast<size_t>(n) >= vector.size()) return vector;
  std::vector<float> out(vector.begin(), vector.begin() + n);
  double squares = 0;
  for (const float x : out) squares += static_cast<double>(x) * x;
  const double norm = squares > 0 ? std::sqrt(squares) : 1.0;
  for (float& x : out) x = static_cast<float>(x / norm);
  return out;
}

// Little-endian float32, as clients expect them.
std::string base64_of(const std::vector<float>& vector) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(vector.size() * sizeof(float));
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    const uint32_t three = static_cast<uint32_t>(bytes[i]) << 16 |
                           (n > 1 ? static_cast<uint32_t>(bytes[i + 1]) << 8 : 0) | (n > 2 ? bytes[i + 2] : 0u);
    out += kDigits[three >> 18];
    out += kDigits[three >> 12 & 63];
    out += n > 1 ? kDigits[three >> 6 & 63] : '=';
    out += n > 2 ? kDigits[three & 63] : '=';
  }
  return out;
}

// Of every document, with the query's vector, which comes first.
std::vector<double> cosines(const Embedded& embedded) {
  const std::vector<float>& query = embedded.vectors.front();
  std::vector<double> scores;
  for (size_t i = 1; i < embedded.vectors.size(); ++i) {
    scores.push_back(std::inner_product(query.begin(), query.end(), embedded.vectors[i].begin(), 0.0));
  }
  return scores;
}

// A head's score is a logit.
std::vector<double> probabilities(const Embedded& embedded) {
  std::vector<double> scores;
  for (const std::vector<float>& score : embedded.vectors) scores.push_back(1 / (1 + std::exp(-double{score.front()})));
  return scores;
}

Json usage_json(const Embedded& embedded) {
  return Json{{"prompt_tokens", embedded.n_tokens}, {"total_tokens", embedded.n_tokens}};
}

}  // namespace

std::variant<EmbeddingCall, ApiError> parse_embedding_call(std::string_view body, int max_dimensions) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<Json>(parsed));
  EmbeddingCall call;
  fields.string("model", call.model);
  fields.string("user", call.user);
  read_inputs(fields, call.inputs);
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
  JsonFields fields(std::get<Json>(parsed));
  RerankCall call;
  fields.string("model", call.model);
  fields.string("user", call.user);
  fields.string("query", call.query);
  if (call.query.empty()) fields.fail("query", "expected a text, found none");
  read_documents(fields, call.documents);
  fields.integer("top_n", call.top_n, 1, INT32_MAX);
  fields.boolean("return_documents", call.return_documents);
  if (!fields.ok()) return fields.error();
  call.ignored = fields.unknown();
  return call;
}

std::string embedding_body(const EmbeddingCall& call, const Embedded& embedded, const std::string& model) {
  Json json;
  json["object"] = "list";
  json["data"] = Json::array();
  for (size_t i = 0; i < embedded.vectors.size(); ++i) {
    const std::vector<float> vector = shortened(embedded.vectors[i], call.dimensions);
    Json entry;
    entry["object"] = "embedding";
    entry["index"] = i;
    entry["embedding"] = call.as_base64 ? Json(base64_of(vector)) : Json(vector);
    json["data"].push_back(std::move(entry));
  }
  json["model"] = model;
  json["usage"] = usage_json(embedded);
  return to_text(json);
}

std::string rerank_body(const RerankCall& call, const Embedded& embedded, bool scored, const std::string& model) {
  const std::vector<double> scores = scored ? probabilities(embedded) : cosines(embedded);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (call.top_n > 0 && order.size() > static_cast<size_t>(call.top_n)) order.resize(static_cast<size_t>(call.top_n));
  Json json;
  json["object"] = "list";
  json["model"] = model;
  json["results"] = Json::array();
  for (const size_t i : order) {
    Json entry;
    entry["index"] = i;
    entry["relevance_score"] = scores[i];
    if (call.return_documents) entry["document"] = Json{{"text", call.documents[i]}};
    json["results"].push_back(std::move(entry));
  }
  json["usage"] = usage_json(embedded);
  return to_text(json);
}

}  // namespace chimere::server
