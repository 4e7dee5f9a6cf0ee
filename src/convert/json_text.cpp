#include "convert/json_text.h"

#include <filesystem>
#include <fstream>
#include <limits>

namespace chimere::convert {
bool is_lfs_pointer(std::string_view text) { return text.starts_with("version https://git-lfs"); }

Error lfs_pointer(const std::string& label) {
  return {Code::corrupt, label + ": this is a Git LFS pointer, the real file was not downloaded (`git lfs pull` does)"};
}

Result<Json> parse_json(std::string_view text, const std::string& label) {
  if (is_lfs_pointer(text)) return lfs_pointer(label);
  // Vocabularies have more keys than a request may have, and the library's sorted map finds them fast.
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  auto json = chimere::parse_json<Json>(text, {.depth = kMaxJsonDepth, .values = kAny, .key_comparisons = kAny});
  if (!json) return Error{Code::corrupt, label + ": " + json.error().message};
  return json;
}

Result<std::string> read_text(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return Error{Code::not_found, path + ": no such file"};
  const uint64_t size = std::filesystem::file_size(path, code);
  if (code || size > kMaxJsonBytes) {
    return Error{Code::invalid_argument, path + ": expected at most " + std::to_string(kMaxJsonBytes) +
                                             " bytes, found " + std::to_string(size)};
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) return Error{Code::io, path + ": cannot read"};
  return Result<std::string>{std::move(text)};
}

Result<Json> read_json(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text(path));
  return parse_json(text, path);
}

}  // namespace chimere::convert
