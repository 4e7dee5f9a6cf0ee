#include "grammar/formats.h"

#include <array>
#include <utility>

namespace chimere::grammar {
namespace {

// Days stop at 28 where a month may have no more; the 29th to 31st come with months that have them.
#define CHIMERE_DATE "[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
#define CHIMERE_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define CHIMERE_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define CHIMERE_HOST CHIMERE_LABEL "(\\." CHIMERE_LABEL "){0,5}"
#define CHIMERE_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define CHIMERE_URI_CHAR "[A-Za-z0-9._~!$&'()*+,;=:@/?-]"

constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kPatterns = {{
    {"date", CHIMERE_DATE},
    {"time", CHIMERE_TIME},
    {"date-time", CHIMERE_DATE "T" CHIMERE_TIME},
    {"duration", "P([0-9]{1,4}W|[0-9]{1,4}D(T([0-9]{1,4}H)?([0-9]{1,4}M)?[0-9]{1,4}S)?|T[0-9]{1,4}[HMS])"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uuid4", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"},
    {"email", "[A-Za-z0-9_+-]{1,30}(\\.[A-Za-z0-9_+-]{1,30}){0,3}@" CHIMERE_LABEL "(\\." CHIMERE_LABEL "){1,4}"},
    {"hostname", CHIMERE_HOST},
    {"ipv4", CHIMERE_BYTE "(\\." CHIMERE_BYTE "){3}"},
    {"ipv6", "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|::1"},
    {"uri", "[a-z][a-z0-9+.-]{0,15}://" CHIMERE_HOST "(:[0-9]{1,5})?(/" CHIMERE_URI_CHAR "{0,500})?"},
    {"url", "[a-z][a-z0-9+.-]{0,15}://" CHIMERE_HOST "(:[0-9]{1,5})?(/" CHIMERE_URI_CHAR "{0,500})?"},
    // About what a string is for, not about its characters.
    {"password", ""},
    {"binary", ""},
    {"byte", ""},
    {"path", ""},
    {"file-path", ""},
}};

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  for (const auto& [name, pattern] : kPatterns) {
    if (name == format) return pattern;
  }
  return std::nullopt;
}

std::string known_formats() {
  std::string names;
  for (const auto& [name, pattern] : kPatterns) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace chimere::grammar
