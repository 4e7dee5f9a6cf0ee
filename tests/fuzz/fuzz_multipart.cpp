// fuzz_multipart.cpp  libFuzzer target: bytes as an upload. The first line is the Content-Type, the rest the body, and a
// line of a batch as well.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/batch/batch_store.h"
#include "server/batch/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::server;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::string_view body = all.substr(end + 1);
  if (const auto parts = parse_multipart(all.substr(0, end), body)) {
    CHECK(parts->size() <= kMaxFormParts);
    const char* last = body.data();
    for (const FormPart& part : *parts) {
      CHECK(!part.name.empty() && part.name.size() + part.filename.size() <= kMaxPartHeadBytes);
      // One behind the other, inside the body.
      CHECK(part.content.data() >= last && part.content.data() + part.content.size() <= body.data() + body.size());
      last = part.content.data() + part.content.size();
    }
  }
  if (const auto line = parse_batch_line(body, "/v1/embeddings")) {
    CHECK(!line->custom_id.empty() && line->body.empty() != line->problem.empty());
  }
  return 0;
}
