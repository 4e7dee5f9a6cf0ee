// markdown.cpp  Headings and paragraphs of Markdown. Inline marks stay: readers and models know them.
#include <algorithm>

#include "documents/readers.h"
#include "text/utf8.h"

namespace chimere::documents {
namespace {

constexpr size_t kMaxHeadingBytes = 200;
constexpr size_t kDeepestHeading = 6;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Its level, 0: it is none. "## Title ##" is one of level 2.
size_t heading_level(std::string_view line) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent > 3) return 0;
  line.remove_prefix(indent);
  const size_t level = std::min(line.find_first_not_of('#'), line.size());
  if (level == 0 || level > kDeepestHeading) return 0;
  return level == line.size() || line[level] == ' ' || line[level] == '\t' ? level : 0;
}

std::string heading_text(std::string_view line) {
  line = trimmed(line);
  line.remove_prefix(std::min(line.find_first_not_of('#'), line.size()));
  line = trimmed(line);
  const size_t last = line.find_last_not_of('#');
  if (last == std::string_view::npos) return {};
  if (last + 1 < line.size() && line[last] == ' ') line = trimmed(line.substr(0, last + 1));
  return std::string(line);
}

// Underlines a heading: 1 for "===", 2 for "---".
size_t underline_level(std::string_view line) {
  line = trimmed(line);
  if (line.size() < 2) return 0;
  if (line.find_first_not_of('=') == std::string_view::npos) return 1;
  return line.find_first_not_of('-') == std::string_view::npos ? 2 : 0;
}

// The fence that begins or ends a block of code: its character, or 0.
char fence_of(std::string_view line) {
  line = trimmed(line);
  for (const char mark : {'`', '~'}) {
    if (line.size() >= 3 && line.substr(0, 3) == std::string(3, mark)) return mark;
  }
  return 0;
}

class MarkdownReader {
 public:
  Document read(std::string_view text) {
    const std::vector<Line> lines = lines_of(text);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string_view line = lines[i].text;
      if (const char fence = fence_of(line); fence_ != 0 || fence != 0) {
        append(lines[i], Cut::lines);
        if (fence_ == 0) {
          fence_ = fence;
        } else if (fence == fence_ && trimmed(line).find_first_not_of(fence) == std::string_view::npos) {
          fence_ = 0;
        }
        continue;
      }
      if (is_blank(line)) {
        flush();
        continue;
      }
      const size_t level = heading_level(line);
      const bool has_next = i + 1 < lines.size();
      const size_t under = has_next && block_.text.empty() && level == 0 ? underline_level(lines[i + 1].text) : 0;
      if (level > 0 || under > 0) {
        flush();
        enter(level > 0 ? level : under, level > 0 ? heading_text(line) : std::string(trimmed(line)));
        if (under > 0) ++i;
        continue;
      }
      append(lines[i], Cut::sentences);
    }
    flush();
    return std::move(document_);
  }

 private:
  void append(const Line& line, Cut cut) {
    if (block_.text.empty()) {
      block_.heading = path_;
      block_.place.line = line.number;
    } else {
      block_.text += '\n';
    }
    if (cut == Cut::lines) block_.cut = cut;
    block_.text += line.text;
  }
  void flush() {
    if (!block_.text.empty()) document_.blocks.push_back(std::move(block_));
    block_ = {};
  }
  void enter(size_t level, std::string heading) {
    heading.resize(utf8_floor(heading, kMaxHeadingBytes));
    if (document_.title.empty()) document_.title = heading;
    while (!above_.empty() && above_.back().first >= level) above_.pop_back();
    above_.emplace_back(level, std::move(heading));
    path_.clear();
    for (const auto& [unused, text] : above_) path_ += (path_.empty() ? "" : " > ") + text;
  }

  Document document_;
  Block block_;
  std::vector<std::pair<size_t, std::string>> above_;  // by level, at most six
  std::string path_;
  char fence_ = 0;
};

}  // namespace

Document read_markdown(std::string_view text) { return MarkdownReader().read(text); }

}  // namespace chimere::documents
