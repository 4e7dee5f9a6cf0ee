// html_text.h  A page's HTML as the text a person would read: headings and list items as lines, no scripts, styles,
// navigation or hidden parts.
//
//   # Heading          paragraphs, headings and lists have an empty line between them
//
//   A paragraph.
//
//   - an item
//   - another          rows of tables: cells with " | " between them
//
// Where a page marks its main part (main, article) only that is kept. Text of a page is untrusted: whoever wrote it may
// have written it for the model.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::web {

struct HtmlLimits {
  size_t input_bytes = 4 * 1024 * 1024;
  size_t text_bytes = 1024 * 1024;
  size_t nodes = 200'000;  // elements and runs of text
  int depth = 512;         // elements inside each other
  size_t links = 2000;
  std::chrono::milliseconds time{2000};
};

struct HtmlLink {
  std::string text;
  std::string url;  // as written; relative to `base`, or to the page where that is empty
};

// All valid UTF-8.
struct HtmlText {
  std::string title;
  std::string text;
  std::string language;  // "en", "pt-br"; empty where the page does not say
  std::string base;      // of <base href>
  std::vector<HtmlLink> links;
  // The limit at which reading ended ("nodes", "depth", "time", "text"); what stood before it is above. Empty: read
  // whole.
  std::string cut;
};

// `charset`: of the Content-Type header, or empty. Order: byte order mark, header, <meta>, UTF-8 where it is valid,
// windows-1252. An error only for more than input_bytes.
Result<HtmlText> html_text(std::string_view bytes, std::string_view charset = {}, const HtmlLimits& limits = {});

}  // namespace chimere::web
