#include "documents/html.h"

#include "documents/readers.h"
#include "web/html_text.h"

namespace chimere::documents {
namespace {

constexpr size_t kMaxNodes = 5'000'000;
constexpr std::chrono::seconds kMaxTime{20};

}  // namespace

Result<Document> read_html(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  web::HtmlLimits limits;
  limits.input_bytes = options.max_bytes;
  limits.text_bytes = options.max_text_bytes;
  limits.nodes = kMaxNodes;
  limits.time = kMaxTime;
  limits.links = 0;
  TRY_ASSIGN(const web::HtmlText page, web::html_text(bytes, {}, limits));
  if (!page.cut.empty()) {
    return Error{Code::invalid_argument, name + ": the page goes beyond the limit of " + page.cut};
  }
  Document document = read_markdown(page.text);
  // Lines are those of the text that was made of the page; nobody would find them in it.
  for (Block& block : document.blocks) block.place = {};
  if (!page.title.empty()) document.title = page.title;
  return Result<Document>{std::move(document)};
}

}  // namespace chimere::documents
