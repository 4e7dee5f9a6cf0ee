// fuzz_point_file.cpp  libFuzzer target: a file of the prefix cache, as an index is built from it and as it is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "cache/point_file.h"

namespace {

// Puts right checksums behind the head and at the end, so that not only they are tried.
void repair(std::vector<std::byte>& bytes) {
  using namespace chimere;
  const uint64_t head = point_head_bytes(bytes);
  if (head < sizeof(uint64_t) || head + sizeof(uint64_t) > bytes.size()) return;
  const uint64_t head_sum = hash64(std::span(bytes).first(head - sizeof(uint64_t)));
  std::memcpy(bytes.data() + head - sizeof(uint64_t), &head_sum, sizeof(head_sum));
  const uint64_t body_sum = hash64(std::span(bytes).subspan(head, bytes.size() - head - sizeof(uint64_t)));
  std::memcpy(bytes.data() + bytes.size() - sizeof(uint64_t), &body_sum, sizeof(body_sum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere;
  const PointFormat format{7, 64, 40};
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  PointBytes state;
  for (int round = 0; round < 2; ++round, repair(bytes)) {
    const auto head = parse_point_head(format, bytes);
    const auto whole = parse_point(format, bytes, state);
    if (!whole) continue;
    // What was accepted is written back as it was.
    if (!head || head->tokens != whole->tokens) std::abort();
    if (encode_point(format, *whole, state) != bytes) std::abort();
  }
  return 0;
}
