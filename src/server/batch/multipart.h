// multipart.h  The body of an upload: multipart/form-data (RFC 7578), of which a file and a few fields are expected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::server {

struct FormPart {
  std::string name;
  std::string filename;      // empty: a field
  std::string_view content;  // inside the body
};

inline constexpr size_t kMaxFormParts = 16;
inline constexpr size_t kMaxPartHeadBytes = 4096;

// `content_type`: the header of the request, which has the boundary. The parts point into `body`.
Result<std::vector<FormPart>> parse_multipart(std::string_view content_type, std::string_view body);

}  // namespace chimere::server
