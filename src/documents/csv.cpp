// csv.cpp  Tables as RFC 4180 writes them, with any of four separators.
#include <algorithm>
#include <array>

#include "documents/readers.h"

namespace chimere::documents {
namespace {

char separator_of(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  constexpr std::array<char, 4> kSeparators = {',', ';', '\t', '|'};
  return *std::max_element(kSeparators.begin(), kSeparators.end(), [&](char a, char b) {
    return std::count(first.begin(), first.end(), a) < std::count(first.begin(), first.end(), b);
  });
}

struct Row {
  std::vector<std::string> cells;
  uint32_t line = 0;
};

class CsvReader {
 public:
  CsvReader(std::string_view text, char separator) : text_(text), separator_(separator) {}

  // False at the end.
  Result<bool> next(Row& row) {
    row.cells.clear();
    row.line = line_;
    if (at_ >= text_.size()) return false;
    std::string cell;
    for (;;) {
      if (cell.empty() && at_ < text_.size() && text_[at_] == '"') {
        TRY(read_quoted(cell));
      }
      const bool is_end = at_ >= text_.size() || text_[at_] == '\n';
      if (is_end || text_[at_] == separator_) {
        if (row.cells.size() == kMaxCsvColumns) {
          return fail(row.line, "expected at most " + std::to_string(kMaxCsvColumns) + " columns, found more");
        }
        row.cells.push_back(std::move(cell));
        cell.clear();
        if (at_ < text_.size()) ++at_;
        if (!is_end) continue;
        ++line_;
        return true;
      }
      if (cell.size() == kMaxCsvCellBytes) return too_long(row.line);
      cell += text_[at_++];
    }
  }

 private:
  Status read_quoted(std::string& cell) {
    const uint32_t began = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return Ok{};
        }
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      if (cell.size() == kMaxCsvCellBytes) return too_long(began);
      cell += text_[at_];
    }
    return fail(began, "expected the end of a quoted cell, found the end of the file");
  }
  static Error fail(uint32_t line, const std::string& what) {
    return {Code::invalid_argument, "line " + std::to_string(line) + ": " + what};
  }
  static Error too_long(uint32_t line) {
    return fail(line, "expected cells of at most " + std::to_string(kMaxCsvCellBytes) + " bytes, found a longer one");
  }

  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

std::string row_text(const std::vector<std::string>& names, const std::vector<std::string>& cells) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (is_blank(cells[i])) continue;
    if (!text.empty()) text += "; ";
    if (i < names.size() && !names[i].empty()) text += names[i] + ": ";
    text += cells[i];
  }
  return text;
}

}  // namespace

Result<Document> read_csv(std::string_view text) {
  CsvReader reader(text, separator_of(text));
  Document document;
  Row names, row;
  TRY_ASSIGN(const bool has_names, reader.next(names));
  if (!has_names) return Result<Document>{std::move(document)};
  for (;;) {
    TRY_ASSIGN(const bool has_row, reader.next(row));
    if (!has_row) break;
    std::string line = row_text(names.cells, row.cells);
    if (line.empty()) continue;
    document.blocks.push_back({std::move(line), "", {row.line, 0}, Cut::sentences, false});
  }
  // A table of one line is all there is to find.
  if (document.blocks.empty()) {
    std::string line = row_text({}, names.cells);
    if (!line.empty()) document.blocks.push_back({std::move(line), "", {1, 0}, Cut::sentences, false});
  }
  return Result<Document>{std::move(document)};
}

}  // namespace chimere::documents
