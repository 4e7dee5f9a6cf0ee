// collection_types.h  What is put into collections, what is asked of them, and what comes back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::retrieval {

// Of one owner, but for the last two.
struct CollectionLimits {
  size_t collections = 100;
  uint64_t documents = 100'000;
  uint64_t chunks = 1'000'000;
  uint64_t bytes = uint64_t{1} << 30;            // of text
  uint64_t document_bytes = uint64_t{64} << 20;  // of one file
  size_t document_chunks = 50'000;
};

// A model that turns texts into vectors of length 1. `embed` is called from several threads.
struct TextEmbedder {
  uint64_t fingerprint = 0;
  int dimensions = 0;
  std::string name;
  using Deadline = std::chrono::steady_clock::time_point;
  std::function<Result<std::vector<std::vector<float>>>(std::span<const std::string> texts, Deadline deadline)> embed;

  double weight = 1;         // of its ranks in the fusion, beside 1 for those of words
  double least_cosine = -1;  // a chunk that is less near to a question is not found by its vector
  // What a cosine of 1 counts beside points of BM25, where scores are added; none: ranks are fused.
  std::optional<double> score_weight = {};
  // Of each text the vectors of its windows, one behind another: a chunk is as near as the nearest of its own. None: a
  // chunk has one, that of `embed`.
  decltype(embed) embed_windows = {};

  explicit operator bool() const { return static_cast<bool>(embed); }
};

// A cross-encoder: how well each text answers the question; larger is better.
using PairScorer = std::function<Result<std::vector<float>>(
    const std::string& question, std::span<const std::string> texts, TextEmbedder::Deadline deadline)>;

enum class SearchMode { words, vectors, hybrid };
// "words", "vectors", "hybrid"
const char* search_mode_name(SearchMode mode);

struct Hit {
  std::string collection;
  std::string document;  // its name: a path, or what it was called when it was sent
  std::string title;
  std::string heading;
  std::string place;  // "page 3", "line 12", or nothing
  std::string text;
  double score = 0;  // of the last stage that ranked: the cross-encoder, else the matcher, else the fusion
  int word_rank = 0, vector_rank = 0;  // from 1; 0: not found so
};

// Keeps those that help and drops the others; gives one flag a hit.
using Grader = std::function<Result<std::vector<bool>>(const std::string& question, std::span<const Hit> hits)>;

struct SearchCall {
  std::string owner;
  std::vector<std::string> collections = {};  // none: all of the owner's
  std::string query;
  size_t k = 8;
  SearchMode mode = SearchMode::hybrid;
  std::optional<double> vector_weight = {};  // in the fusion, beside 1 for words; none: as the embedder has it
  bool match = true;                         // by the matcher, where there is one and the mode is hybrid
  bool rerank = true;                        // by the cross-encoder, where there is one
  // Whether a chunk that shares no word with the query must be near to it, as its collections are told to somebody who
  // did not look at them: kLeastCosineAlone, or what the embedder's file says; and none where vectors have no weight.
  bool drops_unlike = false;
  Grader grader = {};  // none: all are kept
  TextEmbedder::Deadline deadline = TextEmbedder::Deadline::max();
  std::function<bool()> is_cancelled = {};  // asked from the thread that searches
};

// Of embedders whose file says no least cosine. A guess: texts that have nothing in common are below it by most of them.
inline constexpr double kLeastCosineAlone = 0.5;
inline constexpr size_t kMaxQueryBytes = 64 << 10;
inline constexpr size_t kMaxHits = 100;

// What a search did: for traces and metrics. Stages that failed were left out of the answer, and say why.
struct SearchTrace {
  double words_ms = 0, embed_ms = 0, vectors_ms = 0, match_ms = 0, rerank_ms = 0, grade_ms = 0;
  size_t n_words = 0, n_vectors = 0;  // found by each
  std::vector<std::string> skipped;
};

struct CollectionInfo {
  std::string name;
  int64_t created = 0;  // seconds since 1970
  uint64_t documents = 0, chunks = 0, bytes = 0;
};

struct DocumentInfo {
  std::string name, title, kind;
  uint64_t bytes = 0;  // of its text
  uint64_t chunks = 0;
  int64_t modified = 0, added = 0;  // seconds since 1970
};

struct OwnerUsage {
  uint64_t documents = 0, chunks = 0, bytes = 0;
};

struct AddCall {
  std::string owner;
  std::string collection;  // made where it is not there
  std::string name;
  std::string_view bytes;  // of the file
  int64_t modified = 0;
  std::function<bool()> is_cancelled = {};
};

struct Added {
  bool is_new = false;       // false: the same content was there
  bool is_replaced = false;  // another content of this name was there
  DocumentInfo document;
};

}  // namespace chimere::retrieval
