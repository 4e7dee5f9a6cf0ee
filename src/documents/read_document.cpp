#include "documents/read_document.h"

#include "documents/document_kind.h"
#include "documents/html.h"
#include "documents/pdf.h"
#include "documents/readers.h"
#include "text/utf8.h"

namespace chimere::documents {
namespace {

std::string from_utf16(std::string_view bytes, bool is_big) {
  const auto unit = [&](size_t at) {
    const auto a = static_cast<uint8_t>(bytes[at]), b = static_cast<uint8_t>(bytes[at + 1]);
    return static_cast<char32_t>(is_big ? a << 8 | b : b << 8 | a);
  };
  std::string text;
  for (size_t at = 2; at + 1 < bytes.size(); at += 2) {
    char32_t code = unit(at);
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && at + 3 < bytes.size()) {
      const char32_t low = unit(at + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 2;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;  // half of a pair
    append_utf8(code, text);
  }
  return text;
}

std::string from_latin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(static_cast<uint8_t>(c), text);
  return text;
}

std::string with_plain_lines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      if (at + 1 < text.size() && text[at + 1] == '\n') continue;
      plain += '\n';
    } else if (text[at] != '\0') {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace

std::string to_plain_utf8(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE")) return with_plain_lines(from_utf16(bytes, false));
  if (bytes.starts_with("\xFE\xFF")) return with_plain_lines(from_utf16(bytes, true));
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return is_valid_utf8(bytes) ? with_plain_lines(bytes) : with_plain_lines(from_latin1(bytes));
}

Result<Document> read_document(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  if (bytes.size() > options.max_bytes) {
    return Error{Code::invalid_argument, name + ": expected at most " + std::to_string(options.max_bytes) +
                                             " bytes, found " + std::to_string(bytes.size())};
  }
  TRY_ASSIGN(const Kind kind, kind_of(bytes, name));
  Document document;
  if (kind == Kind::pdf) {
    TRY_ASSIGN(document, read_pdf(bytes, name, options));
  } else if (kind == Kind::html) {
    TRY_ASSIGN(document, read_html(bytes, name, options));
  } else {
    const std::string text = to_plain_utf8(bytes);
    switch (kind) {
      case Kind::markdown: document = read_markdown(text); break;
      case Kind::code: document = read_source_code(text); break;
      case Kind::csv: {
        auto table = read_csv(text);
        if (!table) return Error{table.error().code, name + ": " + table.error().message};
        document = std::move(*table);
        break;
      }
      default: document = read_plain_text(text); break;
    }
  }
  document.kind = kind;
  if (document.blocks.empty()) return Error{Code::invalid_argument, name + ": expected some text, found none"};
  return Result<Document>{std::move(document)};
}

}  // namespace chimere::documents
