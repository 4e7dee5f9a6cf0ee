// web_answer.h  A question asked to the web by who is in no run: what was found, and an answer made of it where one is
// wished for.
#pragma once

#include <string>

#include "odo/search_help.h"

namespace chimere::odo {

struct WebAsk {
  std::string query;
  web::SearchDepth depth = web::kStandardSearch;
  bool synthesizes = false;
};

// The body of /v1/search (web::search_answer). The model of `help` writes the answer; one that fails leaves it empty, and
// the last step says why.
Result<std::string> web_answer(const web::WebSearch& search, const WebAsk& ask, const SearchHelp& help,
                               const web::WebContext& context);

// Text of a PDF for web::PageFetcher, by the reader that collections have (documents/pdf.h).
Result<std::string> pdf_page_text(std::string_view bytes, const web::WebContext& context);

}  // namespace chimere::odo
