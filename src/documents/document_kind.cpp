#include "documents/document_kind.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace chimere::documents {
namespace {

constexpr size_t kLookedAtBytes = 8192;

constexpr std::pair<std::string_view, Kind> kEndings[] = {
    {"txt", Kind::text},
    {"text", Kind::text},
    {"log", Kind::text},
    {"rst", Kind::text},
    {"tex", Kind::text},
    {"md", Kind::markdown},
    {"markdown", Kind::markdown},
    {"mdx", Kind::markdown},
    {"csv", Kind::csv},
    {"tsv", Kind::csv},
    {"html", Kind::html},
    {"htm", Kind::html},
    {"xhtml", Kind::html},
    {"pdf", Kind::pdf},
    {"c", Kind::code},
    {"h", Kind::code},
    {"cc", Kind::code},
    {"cpp", Kind::code},
    {"cxx", Kind::code},
    {"hpp", Kind::code},
    {"cu", Kind::code},
    {"cuh", Kind::code},
    {"py", Kind::code},
    {"pyi", Kind::code},
    {"js", Kind::code},
    {"mjs", Kind::code},
    {"cjs", Kind::code},
    {"jsx", Kind::code},
    {"ts", Kind::code},
    {"tsx", Kind::code},
    {"go", Kind::code},
    {"rs", Kind::code},
    {"java", Kind::code},
    {"kt", Kind::code},
    {"swift", Kind::code},
    {"rb", Kind::code},
    {"php", Kind::code},
    {"pl", Kind::code},
    {"lua", Kind::code},
    {"sh", Kind::code},
    {"bash", Kind::code},
    {"zsh", Kind::code},
    {"sql", Kind::code},
    {"cs", Kind::code},
    {"scala", Kind::code},
    {"hs", Kind::code},
    {"ml", Kind::code},
    {"ex", Kind::code},
    {"exs", Kind::code},
    {"erl", Kind::code},
    {"clj", Kind::code},
    {"r", Kind::code},
    {"jl", Kind::code},
    {"m", Kind::code},
    {"zig", Kind::code},
    {"cmake", Kind::code},
    {"json", Kind::code},
    {"yaml", Kind::code},
    {"yml", Kind::code},
    {"toml", Kind::code},
    {"ini", Kind::code},
    {"xml", Kind::code},
    {"css", Kind::code},
    {"proto", Kind::code},
};

// What people try by mistake, by its first bytes.
constexpr std::pair<std::string_view, const char*> kBinaries[] = {
    {"\x7f"
     "ELF",
     "a program"},
    {"PK\x03\x04", "a ZIP archive or an Office document"},
    {"\x89PNG", "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"GIF8", "a GIF image"},
    {"\x1f\x8b", "a gzip archive"},
    {"\xfd"
     "7zXZ",
     "an xz archive"},
    {"GGUF", "a model"},
    {"SQLite format 3", "a database"},
    {"ID3", "music"},
    {"OggS", "music or a film"},
    {"\xd0\xcf\x11\xe0", "an old Office document"},
};

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

bool is_html(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return false;
  const std::string begin = small_letters(bytes.substr(first, 15));
  return begin.starts_with("<!doctype html") || begin.starts_with("<html") || begin.starts_with("<head");
}

// Text in UTF-16 is full of zeros, but says what it is.
bool has_utf16_mark(std::string_view bytes) { return bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF"); }

Error not_text(std::string_view name, const std::string& found) {
  return {Code::unsupported,
          std::string(name) + ": expected text, Markdown, source code, CSV, HTML or PDF, found " + found};
}

}  // namespace

std::optional<Kind> kind_of_name(std::string_view name) {
  const size_t slash = name.find_last_of('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const size_t dot = name.find_last_of('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string ending = small_letters(name.substr(dot + 1));
  for (const auto& [known, kind] : kEndings) {
    if (ending == known) return kind;
  }
  return std::nullopt;
}

Result<Kind> kind_of(std::string_view bytes, std::string_view name) {
  if (bytes.starts_with("%PDF-")) return Kind::pdf;
  for (const auto& [begin, what] : kBinaries) {
    if (bytes.starts_with(begin)) return not_text(name, what);
  }
  const std::string_view looked_at = bytes.substr(0, kLookedAtBytes);
  if (!has_utf16_mark(bytes)) {
    const size_t zero = bytes.find('\0');
    if (zero != std::string_view::npos) return not_text(name, "a zero byte at " + std::to_string(zero));
    const auto n_controls = std::count_if(looked_at.begin(), looked_at.end(), [](char c) {
      return static_cast<unsigned char>(c) < 32 &&
             std::string_view("\t\n\v\f\r\b\x1b").find(c) == std::string_view::npos;
    });
    if (static_cast<size_t>(n_controls) * 10 > looked_at.size()) return not_text(name, "bytes that no text has");
  }
  const auto by_name = kind_of_name(name);
  if (by_name == Kind::pdf) return not_text(name, "a file that does not begin with %PDF-");
  if (by_name) return *by_name;
  if (is_html(bytes)) return Kind::html;
  return bytes.starts_with("#!") ? Kind::code : Kind::text;
}

}  // namespace chimere::documents
