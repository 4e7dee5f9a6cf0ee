// stored_vectors.h  The vectors of a document's chunks as bytes of the database.
//
//   where each chunk has one:   float32 [chunks, dimensions]
//   else, in front of them:     uint32  [chunks], how many each has: one or more
//
// Which it is follows from the size, as there are never fewer vectors than chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace chimere::retrieval {

struct StoredVectors {
  std::vector<uint32_t> counts;  // [chunks]
  std::vector<float> values;     // [sum of counts, dimensions]
};

std::vector<std::byte> vector_bytes(const StoredVectors& vectors);
// corrupt where the size is another, or a value is not finite.
Result<StoredVectors> read_vectors(std::span<const std::byte> bytes, size_t n_chunks, size_t dimensions);

}  // namespace chimere::retrieval
