// read_document.h  The bytes of a file as a document: what kind it is, its text, its blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "documents/document.h"

namespace chimere::documents {

struct ReadOptions {
  uint64_t max_bytes = uint64_t{64} << 20;       // of the file
  uint64_t max_text_bytes = uint64_t{64} << 20;  // of what a PDF says
  std::chrono::seconds pdf_time{60};
  uint64_t pdf_memory_bytes = uint64_t{1} << 30;
  std::function<bool()> is_cancelled = [] { return false; };
};

// `name`: its ending helps to tell the kind; it stands in messages. Refuses what is too large, no text, or empty.
Result<Document> read_document(std::string_view bytes, const std::string& name, const ReadOptions& options = {});

// As valid UTF-8 with '\n' at the ends of lines: from UTF-8 or UTF-16 with a mark, else from Latin-1, which every byte is.
std::string to_plain_utf8(std::string_view bytes);

}  // namespace chimere::documents
