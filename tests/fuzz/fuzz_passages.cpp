// fuzz_passages.cpp  Arbitrary bytes as a file of passages: opened or refused, and if opened then searched. The
// checksum would stop every input at the door, so the first byte says whether it is set right first.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "retrieval/passage_index.h"

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
    const float query[2] = {1, 0};
    (void)index->nearest(query, 3);
    (void)index->forget("s");
  }
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)cut_passages(text, 16);
  return 0;
}
