// passage_index.h  Passages of text beside their embeddings, in one file: what was said that means the same as a query.
//
// The file, little-endian:
//   header     PassageHeader
//   vectors    n_passages * dimensions float32, each of length 1
//   passages   u32 bytes of the source's name | u32 bytes of the text | name | text, one after another
// It holds no search structure: the codes that vector_search.h scans are computed when the file is opened, so there is
// nothing in it that could disagree with the vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "retrieval/vector_search.h"

namespace chimere::retrieval {

struct PassageHeader {
  uint32_t magic = 0x50494843;  // "CHIP"
  uint32_t version = 1;
  uint64_t model = 0;  // fingerprint of the model whose embeddings these are
  uint32_t dimensions = 0;
  uint32_t reserved = 0;
  uint64_t n_passages = 0;
  uint64_t text_bytes = 0;  // of the section of passages
  uint64_t checksum = 0;    // hash64 of all that follows the header
};
static_assert(sizeof(PassageHeader) == 48);

struct Passage {
  std::string source;  // name under which it can be forgotten
  std::string text;
};

class PassageIndex {
 public:
  static constexpr size_t kMaxPassages = 10'000'000;
  static constexpr size_t kMaxTextBytes = 64 << 10;  // of one passage
  static constexpr size_t kMaxSourceBytes = 1000;

  // Empty. REQUIRES: dimensions > 0.
  PassageIndex(uint64_t model, int dimensions);
  // Refuses damaged files as corrupt, and as invalid_argument one that another model's embeddings are in.
  static Result<PassageIndex> open(const std::string& path, uint64_t model, int dimensions);
  // The same of bytes in memory.
  static Result<PassageIndex> parse(std::span<const std::byte> bytes, const std::string& name, uint64_t model,
                                    int dimensions);
  // Replaces the file in one step.
  Status save(const std::string& path) const;

  // Refuses what the file could not hold: texts that are empty or too long, values that are not finite.
  Status add(Passage passage, std::span<const float> vector);
  // Removes all that a source said; gives how many passages that was.
  size_t forget(const std::string& source);

  struct Match {
    const Passage* passage;
    float score;  // cosine
  };
  // Best first.
  std::vector<Match> nearest(std::span<const float> query, size_t k) const;

  size_t size() const { return passages_.size(); }
  const std::vector<Passage>& passages() const { return passages_; }
  int dimensions() const { return dimensions_; }
  uint64_t model() const { return model_; }  // fingerprint of the one whose embeddings these are

 private:
  uint64_t model_;
  int dimensions_;
  std::vector<Passage> passages_;
  VectorSearch search_;
};

// The header of a file that is whole: whose embeddings it holds, and how many.
Result<PassageHeader> passage_header(const std::string& path);

// Changes the file at `path` (a new one when there is none) under a lock: two writers do not lose each other's work.
Status edit_passages(const std::string& path, uint64_t model, int dimensions,
                     const std::function<Status(PassageIndex&)>& edit);

// Text cut into passages at empty lines; longer ones at the end of a sentence or word before `max_bytes`, never inside
// a character.
std::vector<std::string> cut_passages(std::string_view text, size_t max_bytes);

}  // namespace chimere::retrieval
