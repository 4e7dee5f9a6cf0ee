// multipart.cpp  Boundaries, heads of parts and what lies between them.
#include "server/batch/multipart.h"

#include <algorithm>
#include <utility>

#include "server/http/http.h"

namespace chimere::server {
namespace {

constexpr std::string_view kLine = "\r\n";
constexpr size_t kMaxBoundaryBytes = 70;  // RFC 2046

Error not_a_form(const std::string& message) { return Error{Code::invalid_argument, "the upload: " + message}; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The value of a parameter behind ';': name=value or name="value", where \" stands for a quotation mark. Empty: none.
std::string parameter(std::string_view header, std::string_view name) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';', at)) {
    header.remove_prefix(at + 1);
    at = 0;
    const size_t equals = header.find('=');
    if (equals == std::string_view::npos) return {};
    const bool is_it = equals_ignoring_case(without_blanks(header.substr(0, equals)), name);
    header.remove_prefix(equals + 1);
    std::string value;
    if (!header.empty() && header.front() == '"') {
      size_t i = 1;
      for (; i < header.size() && header[i] != '"'; ++i) {
        if (header[i] == '\\' && i + 1 < header.size()) ++i;
        value += header[i];
      }
      header.remove_prefix(i < header.size() ? i + 1 : i);
    } else {
      value = without_blanks(header.substr(0, header.find(';')));
    }
    if (is_it) return value;
  }
  return {};
}

// The lines between a boundary and the content.
Result<FormPart> read_part_head(std::string_view head) {
  FormPart part;
  while (!head.empty()) {
    const size_t end = std::min(head.find(kLine), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + kLine.size(), head.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return not_a_form("expected 'Name: value' at the head of a part");
    if (!equals_ignoring_case(line.substr(0, colon), "Content-Disposition")) continue;
    part.name = parameter(line, "name");
    part.filename = parameter(line, "filename");
  }
  if (part.name.empty()) return not_a_form("expected a name in the Content-Disposition of each part");
  return Result<FormPart>{std::move(part)};
}

}  // namespace

Result<std::vector<FormPart>> parse_multipart(std::string_view content_type, std::string_view body) {
  const size_t end_of_type = std::min(content_type.find(';'), content_type.size());
  if (!equals_ignoring_case(without_blanks(content_type.substr(0, end_of_type)), "multipart/form-data")) {
    return not_a_form("expected Content-Type multipart/form-data");
  }
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kMaxBoundaryBytes) {
    return not_a_form("expected a boundary of 1 to " + std::to_string(kMaxBoundaryBytes) + " bytes in Content-Type");
  }
  const std::string delimiter = "--" + boundary;
  if (!body.starts_with(delimiter)) return not_a_form("expected its boundary at the beginning");
  body.remove_prefix(delimiter.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with(kLine)) return not_a_form("expected a line's end behind the boundary");
    body.remove_prefix(kLine.size());
    const size_t head_end = body.find("\r\n\r\n");
    if (head_end == std::string_view::npos || head_end > kMaxPartHeadBytes) {
      return not_a_form("expected a head of at most " + std::to_string(kMaxPartHeadBytes) + " bytes before each part");
    }
    if (parts.size() == kMaxFormParts) {
      return not_a_form("expected at most " + std::to_string(kMaxFormParts) + " parts, found more");
    }
    TRY_ASSIGN(FormPart part, read_part_head(body.substr(0, head_end)));
    body.remove_prefix(head_end + 4);
    const size_t end = body.find("\r\n" + delimiter);
    if (end == std::string_view::npos) return not_a_form("expected the boundary behind part '" + part.name + "'");
    part.content = body.substr(0, end);
    body.remove_prefix(end + kLine.size() + delimiter.size());
    parts.push_back(std::move(part));
  }
  return Result<std::vector<FormPart>>{std::move(parts)};
}

}  // namespace chimere::server
