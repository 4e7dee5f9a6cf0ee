// vector_search.cpp  The only file that sees FAISS.
#include "retrieval/vector_search.h"

#include <algorithm>

#include "base/check.h"

#ifdef CHIMERE_HAS_FAISS
#include <faiss/IndexFlat.h>
#endif

namespace chimere::retrieval {

#ifdef CHIMERE_HAS_FAISS

struct VectorSearch::Impl {
  explicit Impl(int d) : dimensions(d), index(d) {}
  const int dimensions;
  faiss::IndexFlatIP index;
};

const char* VectorSearch::implementation() { return "faiss"; }

void VectorSearch::add(std::span<const float> vectors) {
  CHECK(vectors.size() % static_cast<size_t>(impl_->dimensions) == 0);
  impl_->index.add(static_cast<faiss::Index::idx_t>(vectors.size()) / impl_->dimensions, vectors.data());
}

size_t VectorSearch::size() const { return static_cast<size_t>(impl_->index.ntotal); }

std::span<const float> VectorSearch::vectors() const {
  return {impl_->index.get_xb(), size() * static_cast<size_t>(impl_->dimensions)};
}

std::vector<Neighbour> VectorSearch::nearest(std::span<const float> query, size_t k) const {
  CHECK(query.size() == static_cast<size_t>(impl_->dimensions));
  k = std::min(k, size());
  if (k == 0) return {};
  std::vector<float> scores(k);
  std::vector<faiss::Index::idx_t> indices(k);
  impl_->index.search(1, query.data(), static_cast<faiss::Index::idx_t>(k), scores.data(), indices.data());
  std::vector<Neighbour> found;
  for (size_t i = 0; i < k; ++i) {
    if (indices[i] >= 0) found.push_back({static_cast<size_t>(indices[i]), scores[i]});
  }
  return found;
}

#else

struct VectorSearch::Impl {
  explicit Impl(int d) : dimensions(d) {}
  const int dimensions;
  std::vector<float> vectors;
};

const char* VectorSearch::implementation() { return "loops"; }

void VectorSearch::add(std::span<const float> vectors) {
  CHECK(vectors.size() % static_cast<size_t>(impl_->dimensions) == 0);
  impl_->vectors.insert(impl_->vectors.end(), vectors.begin(), vectors.end());
}

size_t VectorSearch::size() const { return impl_->vectors.size() / static_cast<size_t>(impl_->dimensions); }

std::span<const float> VectorSearch::vectors() const { return impl_->vectors; }

std::vector<Neighbour> VectorSearch::nearest(std::span<const float> query, size_t k) const {
  const auto d = static_cast<size_t>(impl_->dimensions);
  CHECK(query.size() == d);
  std::vector<Neighbour> all(size());
  for (size_t i = 0; i < all.size(); ++i) {
    const float* vector = impl_->vectors.data() + i * d;
    float sum = 0;
    for (size_t j = 0; j < d; ++j) sum += query[j] * vector[j];
    all[i] = {i, sum};
  }
  k = std::min(k, all.size());
  const auto better = [](const Neighbour& a, const Neighbour& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  };
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), all.end(), better);
  all.resize(k);
  return all;
}

#endif

VectorSearch::VectorSearch(int dimensions) : impl_(std::make_unique<Impl>(dimensions)) {}
VectorSearch::VectorSearch(VectorSearch&&) noexcept = default;
VectorSearch& VectorSearch::operator=(VectorSearch&&) noexcept = default;
VectorSearch::~VectorSearch() = default;

}  // namespace chimere::retrieval
