// html_text_test.cpp  What is kept of pages, in which words, and where reading ends.
#include "web/html_text.h"

#include <gtest/gtest.h>

#include "text/utf8.h"
#include "web/charset.h"

namespace chimere::web {
namespace {

HtmlText read_page(std::string_view html, std::string_view charset = {}, const HtmlLimits& limits = {}) {
  auto page = html_text(html, charset, limits);
  EXPECT_TRUE(page) << page.error().message;
  EXPECT_TRUE(is_valid_utf8(page->text) && is_valid_utf8(page->title));
  return page ? std::move(*page) : HtmlText{};
}

TEST(HtmlText, KeepsHeadingsListsTablesAndLines) {
  const HtmlText page = read_page(R"(<!DOCTYPE html><html lang="en-GB"><head><title> A  page
 &amp; more</title><style>p { color: red }</style></head><body>
<h1>Head</h1><p>First <b>para</b>graph,
 two   lines.<br>After a break.</p><ul><li>one<li><p>two</p><ol><li>inner<li>second</ol></ul>
<table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre>  int x;
    y();</pre><script>var hidden = "<p>no</p>";</script></body></html>)");
  EXPECT_EQ(page.title, "A page & more");
  EXPECT_EQ(page.language, "en-gb");
  EXPECT_EQ(
      page.text,
      "# Head\n\nFirst paragraph, two lines.\nAfter a break.\n\n- one\n- two\n  1. inner\n  2. second\n\nk | v\na | "
      "1\n\n  int x;\n    y();");
  EXPECT_EQ(page.cut, "");
}

TEST(HtmlText, DropsNavigationHiddenPartsAndMenus) {
  const HtmlText page = read_page(R"(<body><nav>menu</nav><header>site name</header>
<div role="Navigation">crumbs</div><div><a href=/1>one</a></div><div><a href=/2>two</a></div><div><a href=/3>three</a></div>
<p>Words that stay, with <a href="/x">a link</a>.</p>
<p hidden>a</p><p style="Display : none">b</p><p aria-hidden="true">c</p><span style="font-size:0px">d</span><p style="font-size:0.9em; opacity:0.5">kept</p>
<noscript>e</noscript><template>f</template><svg><title>g</title><text>h</text></svg><iframe>i</iframe><footer>legal</footer></body>)");
  EXPECT_EQ(page.text, "Words that stay, with a link.\n\nkept");
  EXPECT_EQ(page.title, "");
  ASSERT_EQ(page.links.size(), 4u);
  EXPECT_EQ(page.links[3].url, "/x");
  EXPECT_EQ(page.links[3].text, "a link");
}

TEST(HtmlText, TheMarkedMainPartWins) {
  const std::string words(300, 'w');
  const HtmlText page =
      read_page("<body><p>before</p><main><header>own head</header><p>" + words + "</p></main><p>behind</p></body>");
  EXPECT_EQ(page.text, "own head\n\n" + words);
  EXPECT_EQ(read_page("<body><p>around</p><article><p>" + words + "</p></article></body>").text, words);
  // One with next to nothing in it is a mark of a script's page.
  EXPECT_EQ(read_page("<body><p>around</p><main>x</main></body>").text, "around\n\nx");
}

TEST(HtmlText, LinksAreKeptAsWritten) {
  const HtmlText page = read_page(R"html(<base href="https://a.example/b/"><p><a href="c?x=1&amp;y=2">C</a>
<a href="#here">no</a><a href="JavaScript:alert(1)">no</a><a href=" mailto:x@y.example">no</a><a>no</a></p>)html");
  EXPECT_EQ(page.base, "https://a.example/b/");
  ASSERT_EQ(page.links.size(), 1u);
  EXPECT_EQ(page.links[0].url, "c?x=1&y=2");
}

TEST(HtmlText, CharsetsByMarkHeaderMetaAndBytes) {
  const std::string latin = "<p>caf\xE9 \x80</p>";
  EXPECT_EQ(read_page(latin, "ISO-8859-1").text, "café €");
  EXPECT_EQ(read_page(latin).text, "café €");  // no valid UTF-8
  EXPECT_EQ(read_page("<p>café</p>").text, "café");
  EXPECT_EQ(read_page("<meta charset=windows-1251><p>\xE4\xE0</p>").text, "да");
  EXPECT_EQ(read_page("<meta http-equiv=content-type content='text/html; charset=shift_jis'><p>\x93\xFA\x96{</p>").text,
            "日本");
  EXPECT_EQ(read_page("<meta charset=koi8-r><p>caf\xC3\xA9</p>", "utf-8").text,
            "café");  // the header is before the page
  EXPECT_EQ(read_page("\xEF\xBB\xBF<meta charset=koi8-r><p>é</p>", "koi8-r").text, "é");
  EXPECT_EQ(read_page(std::string("\xFF\xFE<\0p\0>\0\xE9\0", 10)).text, "é");
  EXPECT_EQ(read_page("<meta charset=utf-16><p>x</p>").text, "x");
  EXPECT_EQ(read_page("<p>\xC3\xA9\xFF</p>", "utf-8").text, "é\xEF\xBF\xBD");
  EXPECT_EQ(read_page("<p>x</p>", "ISO-2022-CN-EXT//TRANSLIT").text, "x");
  EXPECT_EQ(charset_of_type("text/html; Charset = \"UTF-8\"; x=y"), "utf-8");
  EXPECT_EQ(charset_of_type("text/html"), "");
}

TEST(HtmlText, EntitiesAreTheFixedOnesAndDoNotGrow) {
  EXPECT_EQ(read_page("<p>&eacute;&#x20AC;&#8364;&nbsp;&unknown;&#0;&#x110000;x</p>").text.substr(0, 8), "é€€");
  const HtmlText page = read_page(
      R"(<!DOCTYPE html [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<p>&b;&c;</p>)");
  EXPECT_EQ(page.text.find("aaaaaaaaaa&"), std::string::npos);
  EXPECT_EQ(page.text.find("root:"), std::string::npos);
}

TEST(HtmlText, EveryLimitEndsReadingAndIsNamed) {
  HtmlLimits limits;
  limits.input_bytes = 10;
  EXPECT_FALSE(html_text("<p>01234567</p>", {}, limits));

  std::string many;
  for (int i = 0; i < 2000; ++i) many += "<p>word</p>";
  limits = {};
  limits.nodes = 1000;
  HtmlText page = read_page(many, {}, limits);
  EXPECT_EQ(page.cut, "nodes");
  EXPECT_GT(page.text.size(), 1000u);

  limits = {};
  limits.text_bytes = 100;
  page = read_page(many, {}, limits);
  EXPECT_EQ(page.cut, "text");
  EXPECT_EQ(page.text.substr(0, 10), "word\n\nword");

  std::string deep = "<p>first</p>";
  for (int i = 0; i < 100'000; ++i) deep += "<div>";
  page = read_page(deep + "last");
  EXPECT_EQ(page.cut, "depth");
  EXPECT_EQ(page.text, "first");

  limits = {};
  limits.time = std::chrono::milliseconds(-1);
  std::string large = "<p>first</p>";
  while (large.size() < 100'000) large += "<p>x</p>";
  page = read_page(large, {}, limits);
  EXPECT_EQ(page.cut, "time");

  limits = {};
  limits.links = 2;
  EXPECT_EQ(read_page("<p>x <a href=a>a</a> <a href=b>b</a> <a href=c>c</a></p>", {}, limits).links.size(), 2u);
}

// Shapes whose cost might grow with their square: reading is bounded by the limits above, so this ends.
TEST(HtmlText, HostileShapesEnd) {
  const size_t n = 400'000;
  const std::string_view nul("\0", 1);
  for (const std::string_view piece :
       {std::string_view("</b>"), std::string_view("<"), std::string_view("<!--"), std::string_view("<a href=\""),
        std::string_view("<script>"), std::string_view("&"), std::string_view("<p"), std::string_view("<!DOCTYPE "),
        std::string_view("<table>"), std::string_view("<![CDATA["), std::string_view("<title>"),
        std::string_view("<form><p>"), std::string_view("\xFF"), std::string_view("<?"), std::string_view("<a b=c "),
        nul}) {
    std::string html = "<p>x</p>";
    while (html.size() < n) html += piece;
    EXPECT_TRUE(html_text(html)) << piece;
  }
}

}  // namespace
}  // namespace chimere::web
