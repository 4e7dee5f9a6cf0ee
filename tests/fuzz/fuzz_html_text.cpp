// fuzz_html_text.cpp  libFuzzer target: bytes as a page. The first line is the Content-Type, the rest the page.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/utf8.h"
#include "web/charset.h"
#include "web/html_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::web;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\n'), all.size());
  const std::string_view bytes = all.substr(std::min(end + 1, all.size()));
  HtmlLimits limits;
  limits.nodes = 500;
  limits.depth = 40;
  limits.text_bytes = 2000;
  limits.links = 20;
  const auto page = html_text(bytes, charset_of_type(all.substr(0, end)), limits);
  CHECK(page);
  CHECK(chimere::is_valid_utf8(page->text) && chimere::is_valid_utf8(page->title));
  // A marker before and two ends of lines behind a block of at least one byte.
  CHECK(page->text.size() <= 40 * limits.text_bytes);
  CHECK(page->links.size() <= limits.links);
  for (const HtmlLink& link : page->links) CHECK(!link.url.empty());
  return 0;
}
