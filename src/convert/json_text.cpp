#include "convert/json_text.h"

#include <filesystem>
#include <fstream>

namespace chimere::convert {
namespace {

constexpr int kMaxDepth = 64;

// The library would build any depth, and freeing it then recurses. Brackets inside strings do not count.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

bool is_lfs_pointer(std::string_view text) { return text.starts_with("version https://git-lfs"); }

Error lfs_pointer(const std::string& label) {
  return {Code::corrupt, label + ": this is a Git LFS pointer, the real file was not downloaded (`git lfs pull` does)"};
}

Result<Json> parse_json(std::string_view text, const std::string& label) {
  if (is_lfs_pointer(text)) return lfs_pointer(label);
  if (too_deep(text)) {
    return Error{Code::corrupt,
                 label + ": expected at most " + std::to_string(kMaxDepth) + " nested arrays and objects"};
  }
  try {
    return Result<Json>{Json::parse(text)};
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the part in brackets
    std::string_view what = e.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    return Error{Code::corrupt, label + ": " + std::string(what)};
  }
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
