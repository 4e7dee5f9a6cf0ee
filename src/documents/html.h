// html.h  A page as a document: its text as web/html_text.h tells it, with headings.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "documents/read_document.h"

namespace chimere::documents {

// `bytes`: as they were sent; a page says itself in which characters it is written.
Result<Document> read_html(std::string_view bytes, const std::string& name, const ReadOptions& options);

}  // namespace chimere::documents
