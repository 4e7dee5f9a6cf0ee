// fuzz_passages.cpp  Arbitrary bytes as a file of passages: opened or refused, and if opened then searched, for what a
// plain loop finds too. The checksum would stop every input at the door, so the first byte says whether it is set right
// first.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "retrieval/passage_index.h"

namespace {

void expect_best(const chimere::retrieval::PassageIndex& index, const std::vector<float>& vectors,
                 std::array<float, 2> query) {
  const auto found = index.nearest(query, 3);
  CHECK(found.size() == std::min<size_t>(index.size(), 3));
  double best = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < vectors.size(); i += 2) {
    best = std::max(best, static_cast<double>(vectors[i]) * query[0] + static_cast<double>(vectors[i + 1]) * query[1]);
  }
  CHECK(found.empty() || found[0].score == static_cast<float>(best));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere;
  using namespace chimere::retrieval;
  if (size == 0) return 0;
  std::vector<std::byte> file(size - 1);
  if (size > 1) std::memcpy(file.data(), data + 1, size - 1);
  PassageHeader header;
  if (data[0] % 2 == 0 && file.size() >= sizeof header) {
    std::memcpy(&header, file.data(), sizeof header);
    header.checksum = hash64(std::span<const std::byte>(file).subspan(sizeof header));
    std::memcpy(file.data(), &header, sizeof header);
  }
  auto index = PassageIndex::parse(file, "fuzz", header.model, 2);
  if (index) {
    std::vector<float> vectors(index->size() * 2);
    if (!vectors.empty()) std::memcpy(vectors.data(), file.data() + sizeof header, vectors.size() * sizeof(float));
    // Along an axis, and as the last vector points.
    expect_best(*index, vectors, {1, 0});
    if (!vectors.empty()) expect_best(*index, vectors, {vectors[vectors.size() - 2], vectors.back()});
    (void)index->forget("s");
  }
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)cut_passages(text, 16);
  return 0;
}
