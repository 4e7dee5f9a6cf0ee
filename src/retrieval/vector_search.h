// vector_search.h  The nearest of many vectors, by inner product. FAISS where the build has it (flat, exact), and the
// same answers from plain loops where it has not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace chimere::retrieval {

struct Neighbour {
  size_t index = 0;
  float score = 0;
};

class VectorSearch {
 public:
  explicit VectorSearch(int dimensions);
  VectorSearch(VectorSearch&&) noexcept;
  VectorSearch& operator=(VectorSearch&&) noexcept;
  ~VectorSearch();

  // REQUIRES: vectors.size() is a multiple of the dimensions.
  void add(std::span<const float> vectors);
  size_t size() const;
  // [size() * dimensions], in the order they were added.
  std::span<const float> vectors() const;
  // The k best, best first; fewer when there are fewer. REQUIRES: query.size() == dimensions.
  std::vector<Neighbour> nearest(std::span<const float> query, size_t k) const;

  // "faiss" or "loops".
  static const char* implementation();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::retrieval
