#include "documents/document.h"

namespace chimere::documents {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::text: return "text";
    case Kind::markdown: return "markdown";
    case Kind::code: return "code";
    case Kind::csv: return "csv";
    case Kind::html: return "html";
    case Kind::pdf: return "pdf";
  }
  return "";
}

std::string describe(const Place& place) {
  if (place.page > 0) return "page " + std::to_string(place.page);
  return place.line > 0 ? "line " + std::to_string(place.line) : std::string();
}

}  // namespace chimere::documents
