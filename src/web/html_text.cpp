// html_text.cpp  libxml2's HTML parser tells us of elements and text as it meets them; no tree is built, so what a page
// can cost is what we count here.
#include "web/html_text.h"

#include <libxml/HTMLparser.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <optional>

#include "text/utf8.h"
#include "web/charset.h"

namespace chimere::web {
namespace {

constexpr size_t kFedBytes = 16 * 1024;  // between two looks at the clock
constexpr size_t kMaxTitleBytes = 500;
constexpr size_t kMaxLinkBytes = 4096;
constexpr size_t kMainPartBytes = 200;  // a marked main part with less is none
constexpr size_t kLinkRun = 3;          // so many blocks of links in a row are navigation

enum class Part {
  other,
  dropped,
  frame,
  main,
  article,
  title,
  heading,
  list,
  item,
  row,
  cell,
  block,
  pre,
  line_break,
  link
};

struct PartName {
  const char* name;
  Part part;
};
constexpr PartName kParts[] = {
    {"script", Part::dropped},
    {"style", Part::dropped},
    {"noscript", Part::dropped},
    {"template", Part::dropped},
    {"svg", Part::dropped},
    {"math", Part::dropped},
    {"iframe", Part::dropped},
    {"object", Part::dropped},
    {"canvas", Part::dropped},
    {"audio", Part::dropped},
    {"video", Part::dropped},
    {"select", Part::dropped},
    {"button", Part::dropped},
    {"textarea", Part::dropped},
    {"nav", Part::dropped},
    {"dialog", Part::dropped},
    {"datalist", Part::dropped},
    // Of the page outside of its main part, of the text inside of it.
    {"header", Part::frame},
    {"footer", Part::frame},
    {"aside", Part::frame},
    {"main", Part::main},
    {"article", Part::article},
    {"title", Part::title},
    {"h1", Part::heading},
    {"h2", Part::heading},
    {"h3", Part::heading},
    {"h4", Part::heading},
    {"h5", Part::heading},
    {"h6", Part::heading},
    {"ul", Part::list},
    {"ol", Part::list},
    {"li", Part::item},
    {"tr", Part::row},
    {"td", Part::cell},
    {"th", Part::cell},
    {"pre", Part::pre},
    {"br", Part::line_break},
    {"a", Part::link},
    {"p", Part::block},
    {"div", Part::block},
    {"section", Part::block},
    {"blockquote", Part::block},
    {"table", Part::block},
    {"caption", Part::block},
    {"dl", Part::block},
    {"dt", Part::block},
    {"dd", Part::block},
    {"hr", Part::block},
    {"figure", Part::block},
    {"figcaption", Part::block},
    {"address", Part::block},
    {"details", Part::block},
    {"summary", Part::block},
    {"form", Part::block},
    {"fieldset", Part::block},
    {"center", Part::block},
    {"hgroup", Part::block},
};

Part part_of(std::string_view name) {
  for (const PartName& known : kParts) {
    if (name == known.name) return known.part;
  }
  return Part::other;
}

bool breaks_line(Part part) {
  switch (part) {
    case Part::other:
    case Part::dropped:
    case Part::title:
    case Part::cell:
    case Part::link:
    case Part::line_break: return false;
    default: return true;
  }
}

// Attributes of an element: name, value, name, value, ..., nullptr.
std::optional<std::string_view> attribute(const xmlChar** attributes, const char* name) {
  for (size_t i = 0; attributes != nullptr && attributes[i] != nullptr; i += 2) {
    if (std::strcmp(reinterpret_cast<const char*>(attributes[i]), name) != 0) continue;
    return attributes[i + 1] == nullptr ? "" : reinterpret_cast<const char*>(attributes[i + 1]);
  }
  return std::nullopt;
}

std::string squeezed_lower(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 1024)) {
    if (!std::isspace(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// What no reader sees is the first place to hide words for a model.
bool is_hidden(const xmlChar** attributes) {
  if (attributes == nullptr) return false;
  if (attribute(attributes, "hidden")) return true;
  if (const auto hidden = attribute(attributes, "aria-hidden"); hidden && squeezed_lower(*hidden) == "true")
    return true;
  if (const auto role = attribute(attributes, "role")) {
    const std::string name = squeezed_lower(*role);
    if (name == "navigation" || name == "banner" || name == "contentinfo" || name == "search") return true;
  }
  const auto style = attribute(attributes, "style");
  if (!style) return false;
  const std::string text = squeezed_lower(*style) + ";";
  for (const char* words : {"display:none", "visibility:hidden", "font-size:0;", "font-size:0px", "opacity:0;"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

// Items stand directly below items, and rows below rows; around all else there is an empty line.
enum class BlockKind { paragraph, item, row };

struct TextBlock {
  std::string text;
  BlockKind kind = BlockKind::paragraph;
  bool in_main = false, in_article = false;
  size_t link_bytes = 0;
};

class PageReader {
 public:
  explicit PageReader(const HtmlLimits& limits) : limits_(limits) {}

  void read(const std::string& text);
  HtmlText finish();

 private:
  struct Element {
    std::string name;
    Part part;
    bool is_dropped;
  };

  static void on_start(void* self, const xmlChar* name, const xmlChar** attributes) {
    static_cast<PageReader*>(self)->start(reinterpret_cast<const char*>(name), attributes);
  }
  static void on_end(void* self, const xmlChar* name) {
    static_cast<PageReader*>(self)->end(reinterpret_cast<const char*>(name));
  }
  static void on_text(void* self, const xmlChar* text, int n) {
    static_cast<PageReader*>(self)->characters({reinterpret_cast<const char*>(text), static_cast<size_t>(n)});
  }

  void start(std::string_view name, const xmlChar** attributes);
  void end(std::string_view name);
  void close_last();
  void characters(std::string_view text);
  void begin_link(const xmlChar** attributes);
  void end_link();
  void flush();
  bool count_node();
  void stop(const char* limit) {
    if (page_.cut.empty()) page_.cut = limit;
    if (parser_ != nullptr) xmlStopParser(parser_);
  }
  std::string list_prefix() const;

  const HtmlLimits& limits_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  htmlParserCtxtPtr parser_ = nullptr;

  std::vector<Element> open_;
  int n_dropped_ = 0, n_main_ = 0, n_article_ = 0, n_pre_ = 0, n_title_ = 0;
  struct List {
    bool is_ordered;
    int n_items;
  };
  std::vector<List> lists_;
  size_t n_nodes_ = 0, n_text_bytes_ = 0;

  TextBlock block_;     // the one being written
  std::string marker_;  // of the next block: "## " or "- "
  bool has_link_ = false;
  HtmlLink link_;
  std::vector<TextBlock> blocks_;
  HtmlText page_;
};

bool PageReader::count_node() {
  if (++n_nodes_ > limits_.nodes) stop("nodes");
  return page_.cut.empty();
}

std::string PageReader::list_prefix() const {
  if (lists_.empty()) return "- ";
  const std::string indent(2 * std::min<size_t>(lists_.size() - 1, 8), ' ');
  return indent + (lists_.back().is_ordered ? std::to_string(lists_.back().n_items) + ". " : "- ");
}

void PageReader::start(std::string_view name, const xmlChar** attributes) {
  if (!count_node()) return;
  if (static_cast<int>(open_.size()) >= limits_.depth) return stop("depth");
  const Part part = part_of(name);
  const bool in_text = n_main_ + n_article_ > 0;
  const bool is_dropped = part == Part::dropped || (part == Part::frame && !in_text) ||
                          (is_hidden(attributes) && name != "body" && name != "html");
  if (breaks_line(part)) flush();
  open_.push_back({std::string(name.substr(0, 32)), part, is_dropped});
  n_dropped_ += is_dropped;
  n_main_ += part == Part::main;
  n_article_ += part == Part::article;
  n_pre_ += part == Part::pre;
  n_title_ += part == Part::title;
  if (name == "html") {
    if (const auto language = attribute(attributes, "lang")) page_.language = squeezed_lower(language->substr(0, 35));
  } else if (name == "base" && page_.base.empty()) {
    if (const auto href = attribute(attributes, "href"); href && href->size() <= kMaxLinkBytes) page_.base = *href;
  }
  if (n_dropped_ > 0) return;
  switch (part) {
    case Part::heading: marker_ = std::string(static_cast<size_t>(name[1] - '0'), '#') + " "; break;
    case Part::list: lists_.push_back({name == "ol", 0}); break;
    case Part::item:
      if (!lists_.empty()) ++lists_.back().n_items;
      marker_ = list_prefix();
      break;
    case Part::cell:
      if (!block_.text.empty()) block_.text += block_.text.back() == ' ' ? "| " : " | ";
      break;
    case Part::line_break:
      while (!block_.text.empty() && block_.text.back() == ' ') block_.text.pop_back();
      if (!block_.text.empty()) block_.text += '\n';
      break;
    case Part::link: begin_link(attributes); break;
    default: break;
  }
}

void PageReader::end(std::string_view name) {
  name = name.substr(0, 32);
  const auto same = [name](const Element& element) { return element.name == name; };
  if (std::none_of(open_.begin(), open_.end(), same)) return;
  while (open_.back().name != name) close_last();
  close_last();
}

void PageReader::close_last() {
  const Element element = open_.back();
  if (n_dropped_ == 0) {
    if (element.part == Part::link) end_link();
    // A row's last cell is written with it.
    if (breaks_line(element.part)) flush();
    if (element.part == Part::list && !lists_.empty()) lists_.pop_back();
    if (element.part == Part::item || element.part == Part::heading) marker_.clear();
  }
  open_.pop_back();
  n_dropped_ -= element.is_dropped;
  n_main_ -= element.part == Part::main;
  n_article_ -= element.part == Part::article;
  n_pre_ -= element.part == Part::pre;
  n_title_ -= element.part == Part::title;
}

// `text` behind `out`, with every run of white space as one space.
void append_words(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_hard_space = text.substr(i, 2) == "\xC2\xA0";
    if (!is_hard_space && !std::isspace(static_cast<unsigned char>(text[i]))) {
      out += text[i];
      continue;
    }
    if (!out.empty() && out.back() != ' ' && out.back() != '\n') out += ' ';
    i += is_hard_space;
  }
}

void PageReader::characters(std::string_view text) {
  if (!count_node()) return;
  if (n_title_ > 0) {
    if (n_dropped_ == 0 && page_.title.size() < kMaxTitleBytes)
      append_words(text.substr(0, kMaxTitleBytes), page_.title);
    return;
  }
  if (n_dropped_ > 0) return;
  if (n_text_bytes_ + text.size() > limits_.text_bytes) return stop("text");
  n_text_bytes_ += text.size();
  const size_t before = block_.text.size();
  if (n_pre_ > 0) {
    block_.text.append(text);
  } else {
    append_words(text, block_.text);
  }
  if (!has_link_) return;
  block_.link_bytes += block_.text.size() - before;
  if (link_.text.size() < kMaxTitleBytes) append_words(text.substr(0, kMaxTitleBytes), link_.text);
}

void PageReader::begin_link(const xmlChar** attributes) {
  const auto href = attribute(attributes, "href");
  if (!href) return;
  has_link_ = true;
  link_ = {};
  const std::string head = squeezed_lower(href->substr(0, 32));
  for (const char* other : {"#", "javascript:", "data:", "mailto:", "tel:"}) {
    if (head.rfind(other, 0) == 0) return;
  }
  if (href->size() <= kMaxLinkBytes) link_.url = *href;
}

void PageReader::end_link() {
  if (has_link_ && !link_.url.empty() && page_.links.size() < limits_.links) {
    while (!link_.text.empty() && link_.text.back() == ' ') link_.text.pop_back();
    page_.links.push_back(std::move(link_));
  }
  has_link_ = false;
}

void PageReader::flush() {
  std::string& text = block_.text;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  if (n_pre_ == 0) {
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  }
  if (!text.empty() && text != "|") {
    const bool is_row = std::any_of(open_.begin(), open_.end(), [](const Element& e) { return e.part == Part::row; });
    const bool is_item = !marker_.empty() && marker_[0] != '#';
    block_.kind = is_item ? BlockKind::item : is_row ? BlockKind::row : BlockKind::paragraph;
    block_.in_main = n_main_ > 0;
    block_.in_article = n_article_ > 0;
    text.insert(0, marker_);
    marker_.clear();
    blocks_.push_back(std::move(block_));
  }
  block_ = {};
}

void PageReader::read(const std::string& text) {
  htmlSAXHandler handler{};
  handler.startElement = &PageReader::on_start;
  handler.endElement = &PageReader::on_end;
  handler.characters = &PageReader::on_text;
  handler.ignorableWhitespace = &PageReader::on_text;
  // cdataBlock, the text of scripts and styles, is not asked for; neither are comments.
  const std::unique_ptr<htmlParserCtxt, decltype(&htmlFreeParserCtxt)> parser(
      htmlCreatePushParserCtxt(&handler, this, nullptr, 0, nullptr, XML_CHAR_ENCODING_UTF8), &htmlFreeParserCtxt);
  if (!parser) return stop("memory");
  parser_ = parser.get();
  // No network, no other charset than the one we converted to. HTML has no entities but its own fixed ones, and
  // HTML_PARSE_HUGE, which lifts the library's limits, exists for XML alone.
  htmlCtxtUseOptions(parser_, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET |
                                  HTML_PARSE_IGNORE_ENC);
  for (size_t pos = 0; pos < text.size() && page_.cut.empty();) {
    size_t n = std::min(kFedBytes, text.size() - pos);
    while (pos + n < text.size() && is_continuation(text[pos + n])) ++n;
    htmlParseChunk(parser_, text.data() + pos, static_cast<int>(n), 0);
    pos += n;
    if (std::chrono::steady_clock::now() - began_ > limits_.time) stop("time");
  }
  if (page_.cut.empty()) htmlParseChunk(parser_, nullptr, 0, 1);
  parser_ = nullptr;
  while (!open_.empty()) close_last();
  flush();
}

bool is_mostly_links(const TextBlock& block) { return block.link_bytes * 5 > block.text.size() * 4; }

// Runs of blocks that are links and nothing else: menus that are no <nav>.
void drop_menus(std::vector<TextBlock>& blocks) {
  std::vector<TextBlock> kept;
  for (size_t i = 0; i < blocks.size();) {
    size_t end = i;
    while (end < blocks.size() && is_mostly_links(blocks[end])) ++end;
    if (end - i < kLinkRun) {
      end = std::max(end, i + 1);
      for (size_t j = i; j < end; ++j) kept.push_back(std::move(blocks[j]));
    }
    i = end;
  }
  blocks = std::move(kept);
}

void keep_main_part(std::vector<TextBlock>& blocks) {
  size_t main_bytes = 0, article_bytes = 0;
  for (const TextBlock& block : blocks) {
    main_bytes += block.in_main ? block.text.size() : 0;
    article_bytes += block.in_article ? block.text.size() : 0;
  }
  if (main_bytes < kMainPartBytes && article_bytes < kMainPartBytes) return drop_menus(blocks);
  const bool by_main = main_bytes >= kMainPartBytes;
  const auto is_outside = [by_main](const TextBlock& block) { return by_main ? !block.in_main : !block.in_article; };
  blocks.erase(std::remove_if(blocks.begin(), blocks.end(), is_outside), blocks.end());
}

HtmlText PageReader::finish() {
  keep_main_part(blocks_);
  BlockKind last = BlockKind::paragraph;
  for (const TextBlock& block : blocks_) {
    const bool is_next_line = block.kind == last && last != BlockKind::paragraph;
    if (!page_.text.empty()) page_.text += is_next_line ? "\n" : "\n\n";
    page_.text += block.text;
    last = block.kind;
  }
  while (!page_.title.empty() && page_.title.back() == ' ') page_.title.pop_back();
  return std::move(page_);
}

}  // namespace

Result<HtmlText> html_text(std::string_view bytes, std::string_view charset, const HtmlLimits& limits) {
  if (bytes.size() > limits.input_bytes) {
    return Error{Code::exhausted, "HTML: " + std::to_string(bytes.size()) + " bytes, at most " +
                                      std::to_string(limits.input_bytes) + " are read"};
  }
  PageReader reader(limits);
  reader.read(decoded_text(bytes, charset));
  return Result<HtmlText>{reader.finish()};
}

}  // namespace chimere::web
