// embedding_response.cpp  Vectors and scores as JSON.
#include "server/protocols/embedding_response.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "server/http/json.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;

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

Json embedding_usage(const Embedded& embedded) {
  return Json{{"prompt_tokens", embedded.n_tokens}, {"total_tokens", embedded.n_tokens}};
}

}  // namespace

std::vector<float> shortened(const std::vector<float>& vector, int n) {
  if (n == 0 || static_cast<size_t>(n) >= vector.size()) return vector;
  std::vector<float> out(vector.begin(), vector.begin() + n);
  double squares = 0;
  for (const float x : out) squares += static_cast<double>(x) * x;
  const double norm = squares > 0 ? std::sqrt(squares) : 1.0;
  for (float& x : out) x = static_cast<float>(x / norm);
  return out;
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
  json["usage"] = embedding_usage(embedded);
  return to_text(json);
}

std::string llama_embedding_body(const EmbeddingCall& call, const Embedded& embedded) {
  Json list = Json::array();
  for (size_t i = 0; i < embedded.vectors.size(); ++i) {
    list.push_back({{"index", i}, {"embedding", Json::array({shortened(embedded.vectors[i], call.dimensions)})}});
  }
  return to_text(list);
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
    entry[call.is_tei ? "score" : "relevance_score"] = scores[i];
    if (call.return_documents && call.is_tei) {
      entry["text"] = call.documents[i];
    } else if (call.return_documents) {
      entry["document"] = Json{{"text", call.documents[i]}};
    }
    json["results"].push_back(std::move(entry));
  }
  if (call.is_tei) return to_text(json["results"]);
  json["usage"] = embedding_usage(embedded);
  return to_text(json);
}

}  // namespace chimere::server
