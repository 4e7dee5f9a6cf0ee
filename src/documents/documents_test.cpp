// Files as documents, and documents as chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/platform/child_process.h"
#include "documents/chunks.h"
#include "documents/document_kind.h"
#include "documents/read_document.h"
#include "documents/readers.h"
#include "text/utf8.h"

namespace chimere::documents {
namespace {

std::string message_of(const Result<Document>& document) { return document ? "" : document.error().message; }

// A PDF of one page for each text.
std::string pdf_of(const std::vector<std::string>& pages) {
  std::vector<std::string> objects = {"<</Type/Catalog/Pages 2 0 R>>", ""};
  std::string kids;
  for (const std::string& text : pages) {
    const size_t page = objects.size() + 1;
    kids += std::to_string(page) + " 0 R ";
    const std::string stream = "BT /F1 12 Tf 72 720 Td (" + text + ") Tj ET";
    objects.push_back("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents " + std::to_string(page + 1) +
                      " 0 R/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>");
    objects.push_back("<</Length " + std::to_string(stream.size()) + ">>stream\n" + stream + "\nendstream");
  }
  objects[1] = "<</Type/Pages/Count " + std::to_string(pages.size()) + "/Kids[" + kids + "]>>";
  std::string pdf = "%PDF-1.4\n", table;
  for (size_t i = 0; i < objects.size(); ++i) {
    char line[32];
    std::snprintf(line, sizeof line, "%010zu 00000 n \n", pdf.size());
    table += line;
    pdf += std::to_string(i + 1) + " 0 obj\n" + objects[i] + "\nendobj\n";
  }
  const size_t at = pdf.size();
  const std::string size = std::to_string(objects.size() + 1);
  return pdf + "xref\n0 " + size + "\n0000000000 65535 f \n" + table + "trailer<</Size " + size +
         "/Root 1 0 R>>\nstartxref\n" + std::to_string(at) + "\n%%EOF\n";
}

TEST(DocumentKind, IsKnownByContentThenByName) {
  EXPECT_EQ(*kind_of("%PDF-1.7 x", "a.txt"), Kind::pdf);
  EXPECT_EQ(*kind_of("# A", "a.md"), Kind::markdown);
  EXPECT_EQ(*kind_of("a,b", "x/y.CSV"), Kind::csv);
  EXPECT_EQ(*kind_of("int main() {}", "main.cpp"), Kind::code);
  EXPECT_EQ(*kind_of("#!/bin/sh\n", "run"), Kind::code);
  EXPECT_EQ(*kind_of(" <!DOCTYPE HTML><p>x", "page"), Kind::html);
  EXPECT_EQ(*kind_of("words", "README"), Kind::text);
  EXPECT_EQ(*kind_of("words", "notes.unknown"), Kind::text);
  EXPECT_EQ(*kind_of("", ""), Kind::text);
}

TEST(DocumentKind, RefusesWhatIsNoText) {
  const std::string zero("abc\0def", 7);
  EXPECT_EQ(kind_of(zero, "a.txt").error().message,
            "a.txt: expected text, Markdown, source code, CSV, HTML or PDF, found a zero byte at 3");
  EXPECT_NE(kind_of("\x7f"
                    "ELF\x02",
                    "a")
                .error()
                .message.find("a program"),
            std::string::npos);
  EXPECT_FALSE(kind_of("PK\x03\x04", "a.docx"));
  EXPECT_FALSE(kind_of(std::string(100, '\x01'), "a.txt"));
  EXPECT_FALSE(kind_of("no pdf", "a.pdf"));
}

TEST(ReadDocument, KeepsParagraphsAndTheirLines) {
  const auto document = read_document("One.\r\nStill one.\r\n\r\n \t\r\nTwo.\n", "a.txt");
  ASSERT_TRUE(document) << message_of(document);
  ASSERT_EQ(document->blocks.size(), 2u);
  EXPECT_EQ(document->blocks[0].text, "One.\nStill one.");
  EXPECT_EQ(document->blocks[1].text, "Two.");
  EXPECT_EQ(document->blocks[1].place.line, 5u);
}

TEST(ReadDocument, KnowsHowTextIsWritten) {
  EXPECT_EQ(to_plain_utf8("\xEF\xBB\xBFhi"), "hi");
  EXPECT_EQ(to_plain_utf8(std::string("\xFF\xFEh\0i\0=\xD8\x00\xDE\x00\xD8", 12)), "hi\U0001F600\uFFFD");
  EXPECT_EQ(to_plain_utf8(std::string("\xFE\xFF\0h\0i", 6)), "hi");
  EXPECT_EQ(to_plain_utf8("caf\xE9"), "caf\u00e9") << "Latin-1";
}

TEST(ReadDocument, RefusesWhatIsTooLargeOrEmpty) {
  ReadOptions options;
  options.max_bytes = 3;
  EXPECT_EQ(message_of(read_document("four", "a", options)), "a: expected at most 3 bytes, found 4");
  EXPECT_EQ(message_of(read_document(" \n\n", "a.txt")), "a.txt: expected some text, found none");
}

TEST(Markdown, HasHeadingsAbove) {
  const Document document = read_markdown(
      "Intro\n\n# Title #\ntext\n\n## A\n\none\n\ntwo\n### Deep\nthree\n## B\nfour\n\nUnder\n=====\nfive\n");
  std::vector<std::pair<std::string, std::string>> found;
  for (const Block& block : document.blocks) found.emplace_back(block.heading, block.text);
  const decltype(found) expected = {{"", "Intro"},
                                    {"Title", "text"},
                                    {"Title > A", "one"},
                                    {"Title > A", "two"},
                                    {"Title > A > Deep", "three"},
                                    {"Title > B", "four"},
                                    {"Under", "five"}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(document.title, "Title");
  EXPECT_EQ(document.blocks[2].place.line, 8u);
}

TEST(Markdown, TakesNoHeadingFromCode) {
  const Document document = read_markdown("# T\n```sh\n# no heading\n\n## none\n```\n#hash\n\n####### seven\n");
  ASSERT_EQ(document.blocks.size(), 2u);
  EXPECT_EQ(document.blocks[0].text, "```sh\n# no heading\n\n## none\n```\n#hash");
  EXPECT_EQ(document.blocks[0].heading, "T");
  EXPECT_EQ(document.blocks[1].text, "####### seven");
}

TEST(SourceCode, IsCutAtDefinitions) {
  const Document document = read_source_code(
      "#include <a>\n#include <b>\n\n// Adds.\nint add(int a, int b) {\n\n  return a + b;\n}\nint two() {\n  return "
      "2;\n}\n");
  ASSERT_EQ(document.blocks.size(), 3u);
  EXPECT_EQ(document.blocks[1].text, "// Adds.\nint add(int a, int b) {\n\n  return a + b;\n}");
  EXPECT_EQ(document.blocks[1].heading, "int add(int a, int b) {");
  EXPECT_EQ(document.blocks[1].place.line, 4u);
  EXPECT_EQ(document.blocks[2].heading, "int two() {");
}

TEST(Csv, NamesTheColumnsOfEachRow) {
  const auto document = read_csv("name;age;note\nAnn;7;\"a \"\"b\"\"; c\nd\"\n;;\nBob;;x\n");
  ASSERT_TRUE(document) << message_of(document);
  ASSERT_EQ(document->blocks.size(), 2u);
  EXPECT_EQ(document->blocks[0].text, "name: Ann; age: 7; note: a \"b\"; c\nd");
  EXPECT_EQ(document->blocks[1].text, "name: Bob; note: x");
  EXPECT_EQ(document->blocks[1].place.line, 5u);
  EXPECT_EQ(read_csv("only,one,line")->blocks[0].text, "only; one; line");
}

TEST(Csv, LimitsHold) {
  EXPECT_EQ(read_csv("a,b\n\"x").error().message,
            "line 2: expected the end of a quoted cell, found the end of the file");
  EXPECT_TRUE(read_csv(std::string(kMaxCsvColumns - 1, ',') + "\n"));
  EXPECT_EQ(read_csv(std::string(kMaxCsvColumns, ',')).error().message,
            "line 1: expected at most 1000 columns, found more");
  EXPECT_FALSE(read_csv("a\n" + std::string(kMaxCsvCellBytes + 1, 'x')));
  EXPECT_FALSE(read_csv("a\n\"" + std::string(kMaxCsvCellBytes + 1, 'x') + "\""));
}

TEST(Html, IsReadWithItsHeadings) {
  const auto document = read_document(
      "<html><head><title>Sheds</title></head><body><h1>Keys</h1><p>Under the "
      "pot.</p><script>no()</script></body></html>",
      "a.html");
  ASSERT_TRUE(document) << message_of(document);
  EXPECT_EQ(document->title, "Sheds");
  ASSERT_EQ(document->blocks.size(), 1u);
  EXPECT_EQ(document->blocks[0].heading, "Keys");
  EXPECT_EQ(document->blocks[0].text, "Under the pot.");
}

class Pdf : public testing::Test {
 protected:
  void SetUp() override {
    if (find_program("pdftotext").empty()) GTEST_SKIP() << "pdftotext is not installed";
  }
};

TEST_F(Pdf, IsReadPageByPage) {
  const auto document = read_document(pdf_of({"The first page.", "The second page."}), "a.pdf");
  ASSERT_TRUE(document) << message_of(document);
  EXPECT_EQ(document->kind, Kind::pdf);
  ASSERT_EQ(document->blocks.size(), 2u);
  EXPECT_EQ(document->blocks[0].text, "The first page.");
  EXPECT_EQ(document->blocks[1].text, "The second page.");
  EXPECT_EQ(describe(document->blocks[1].place), "page 2");
}

TEST_F(Pdf, DamagedOnesAreRefusedAndLimitsHold) {
  EXPECT_NE(message_of(read_document("%PDF-1.4\nnonsense", "bad.pdf")).find("bad.pdf: the PDF could not be read"),
            std::string::npos);
  EXPECT_EQ(message_of(read_document(pdf_of({""}), "empty.pdf")),
            "empty.pdf: the PDF has no text, only pictures of it");
  ReadOptions options;
  options.max_text_bytes = 4;
  EXPECT_NE(message_of(read_document(pdf_of({"longer than that"}), "a.pdf", options)).find("found more"),
            std::string::npos);
  options = {};
  options.is_cancelled = [] { return true; };
  EXPECT_EQ(read_document(pdf_of({"x"}), "a.pdf", options).error().code, Code::cancelled);
  options = {};
  options.pdf_memory_bytes = 1 << 20;
  EXPECT_FALSE(read_document(pdf_of({"x"}), "a.pdf", options)) << "it can not even start";
}

Document of_blocks(std::vector<Block> blocks) {
  Document document;
  document.blocks = std::move(blocks);
  return document;
}

TEST(Chunks, JoinNeighboursBelowOneHeading) {
  const std::string forty(40, 'x');
  const auto chunks = cut_chunks(
      of_blocks(
          {{forty, "A", {1, 0}}, {"y", "A", {3, 0}}, {"z", "B", {5, 0}}, {forty, "B", {7, 0}}, {forty, "B", {9, 0}}}),
      {64, 0});
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].text, forty + "\n\ny");
  EXPECT_EQ(chunks[1].text, "z\n\n" + forty);
  EXPECT_EQ(chunks[2].place.line, 9u);
}

TEST(Chunks, RepeatTheEndOfACutParagraph) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "Sentence number " + std::to_string(i) + " stands here.\n";
  const auto chunks = cut_chunks(of_blocks({{text, "H", {10, 0}}}), {120, 60});
  ASSERT_GT(chunks.size(), 5u);
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_LE(chunks[i].text.size(), 120u);
    EXPECT_EQ(chunks[i].heading, "H");
    const std::string first = chunks[i].text.substr(0, chunks[i].text.find('\n'));
    if (i > 0) {
      EXPECT_NE(chunks[i - 1].text.find(first), std::string::npos) << "overlap of " << first;
    }
    EXPECT_EQ(first, "Sentence number " + std::to_string(chunks[i].place.line - 10) + " stands here.") << "its line";
  }
  EXPECT_NE(chunks.back().text.find("number 19 "), std::string::npos);
}

TEST(Chunks, CountTheSpaceBetweenSentences) {
  const std::string text = "Short one." + std::string(40, '\n') + std::string(50, 'x') + ".";
  for (const Chunk& chunk : cut_chunks(of_blocks({{text, "", {1, 0}}}), {64, 12})) EXPECT_LE(chunk.text.size(), 64u);
}

TEST(Chunks, LoseNoWordAndStayWithinTheirLimit) {
  // One long word, characters of several bytes, sentences that are too long, and code.
  std::string text = std::string(500, 'w') + " ";
  for (int i = 0; i < 300; ++i) text += "\u00e9\u65e5";
  text += ". ";
  for (int i = 0; i < 200; ++i) text += "word" + std::to_string(i) + (i % 50 == 49 ? ". " : " ");
  for (const Cut cut : {Cut::sentences, Cut::lines}) {
    const auto chunks = cut_chunks(of_blocks({{text, "", {1, 0}, cut, false}}), {100, 30});
    std::string all;
    for (const Chunk& chunk : chunks) {
      EXPECT_LE(chunk.text.size(), 100u);
      EXPECT_TRUE(is_valid_utf8(chunk.text));
      all += chunk.text + " ";
    }
    for (int i = 0; i < 200; ++i) EXPECT_NE(all.find("word" + std::to_string(i)), std::string::npos) << i;
    EXPECT_GE(std::count(all.begin(), all.end(), 'w'), 700);
  }
}

}  // namespace
}  // namespace chimere::documents
