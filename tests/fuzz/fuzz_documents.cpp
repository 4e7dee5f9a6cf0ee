// fuzz_documents.cpp  Arbitrary bytes as a file of each kind that is read in this process: read or refused, and if read
// then cut into chunks that keep to their limit and lose nothing a reader would miss. The first byte names the kind.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "documents/chunks.h"
#include "documents/document_kind.h"
#include "documents/read_document.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere;
  using namespace chimere::documents;
  if (size < 3) return 0;
  constexpr const char* kNames[] = {"a.txt", "a.md", "a.cpp", "a.csv", "a"};
  const std::string name = kNames[data[0] % 5];
  const ChunkOptions options{64 + size_t{data[1]}, data[2] % 32u};
  const std::string bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const auto kind = kind_of(bytes, name);
  if (kind && (*kind == Kind::pdf || *kind == Kind::html)) return 0;  // other programs, other targets
  const auto document = read_document(bytes, name);
  if (!document) return 0;
  size_t n_text = 0, n_chunks = 0;
  for (const Block& block : document->blocks) {
    CHECK(!block.text.empty() && is_valid_utf8(block.text) && is_valid_utf8(block.heading));
    for (const char c : block.text) n_text += static_cast<unsigned char>(c) > ' ' ? 1 : 0;
  }
  for (const Chunk& chunk : cut_chunks(*document, options)) {
    CHECK(!chunk.text.empty() && chunk.text.size() <= options.max_bytes && is_valid_utf8(chunk.text));
    for (const char c : chunk.text) n_chunks += static_cast<unsigned char>(c) > ' ' ? 1 : 0;
  }
  CHECK(n_chunks >= n_text);  // overlaps are counted twice
  return 0;
}
