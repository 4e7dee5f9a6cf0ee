// json_text.h  JSON of a checkpoint, read under limits. For .cpp files alone: the library's header is heavy.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/json.h"

namespace chimere::convert {

using Json = nlohmann::json;

inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;  // three times the largest tokenizer.json we know

// `label` opens the message. Nesting beyond 64 is refused, and so is text after the value.
Result<Json> parse_json(std::string_view text, const std::string& label);

// What a clone without Git LFS leaves in the place of a large file: a few lines of text that name it.
bool is_lfs_pointer(std::string_view text);
Error lfs_pointer(const std::string& label);

// not_found when there is no such file.
Result<Json> read_json(const std::string& path);
// A whole file as text, at most kMaxJsonBytes.
Result<std::string> read_text(const std::string& path);

}  // namespace chimere::convert
