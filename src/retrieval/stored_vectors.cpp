#include "retrieval/stored_vectors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace chimere::retrieval {

std::vector<std::byte> vector_bytes(const StoredVectors& vectors) {
  const bool is_plain = std::all_of(vectors.counts.begin(), vectors.counts.end(), [](uint32_t n) { return n == 1; });
  const auto counts = std::as_bytes(std::span(vectors.counts)), values = std::as_bytes(std::span(vectors.values));
  std::vector<std::byte> bytes;
  bytes.reserve(counts.size() + values.size());
  if (!is_plain) bytes.insert(bytes.end(), counts.begin(), counts.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

Result<StoredVectors> read_vectors(std::span<const std::byte> bytes, size_t n_chunks, size_t dimensions) {
  const size_t row_bytes = dimensions * sizeof(float), count_bytes = n_chunks * sizeof(uint32_t);
  StoredVectors vectors;
  vectors.counts.assign(n_chunks, 1);
  if (bytes.size() != n_chunks * row_bytes) {
    if (bytes.size() < count_bytes) {
      return Error{Code::corrupt, "expected " + std::to_string(n_chunks * row_bytes) + " bytes of vectors, found " +
                                      std::to_string(bytes.size())};
    }
    if (n_chunks > 0) std::memcpy(vectors.counts.data(), bytes.data(), count_bytes);
    bytes = bytes.subspan(count_bytes);
    uint64_t n_vectors = 0;
    for (const uint32_t n : vectors.counts) n_vectors += n;
    const bool has_each = std::find(vectors.counts.begin(), vectors.counts.end(), 0u) == vectors.counts.end();
    if (!has_each || n_vectors != bytes.size() / row_bytes || bytes.size() % row_bytes != 0) {
      return Error{Code::corrupt, "expected " + std::to_string(n_vectors) + " vectors of " + std::to_string(row_bytes) +
                                      " bytes, one or more of each chunk, found " + std::to_string(bytes.size()) +
                                      " bytes"};
    }
  }
  vectors.values.resize(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(vectors.values.data(), bytes.data(), bytes.size());
  if (!std::all_of(vectors.values.begin(), vectors.values.end(), [](float x) { return std::isfinite(x); })) {
    return Error{Code::corrupt, "a vector holds a value that is not finite"};
  }
  return Result<StoredVectors>{std::move(vectors)};
}

}  // namespace chimere::retrieval
