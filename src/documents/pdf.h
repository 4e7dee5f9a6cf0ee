// pdf.h  What a PDF says, page by page.
//
// `pdftotext` of poppler reads it, as a process of its own: a PDF is a program in a language with forty years of corners,
// and one made to break its reader breaks a process that has no key, no model and no other file of ours, with limits of
// time, memory and output. Poppler is GPL; it is called, not linked, and where it is missing only PDFs are refused.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "documents/read_document.h"

namespace chimere::documents {

Result<Document> read_pdf(std::string_view bytes, const std::string& name, const ReadOptions& options);

}  // namespace chimere::documents
