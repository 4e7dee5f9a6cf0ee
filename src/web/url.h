// url.h  Addresses of pages. They are taken apart by the library that also connects to them, so that the two never
// disagree about which host is meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::web {

inline constexpr size_t kMaxUrlBytes = 4096;

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case, no brackets; IPv4 in any spelling is dotted decimal here
  uint16_t port = 0;   // never 0 behind parse_url
  std::string target;  // path and query, begins with '/'
  std::string text;    // the whole, without a fragment

  std::string origin() const;  // "https://host:443"
};

// http and https alone; no user names, no IPv6 zones, no control characters.
Result<Url> parse_url(std::string_view text);
// What a link or a Location header on `base` leads to.
Result<Url> resolve_url(const Url& base, std::string_view reference);

// Equal for addresses that lead to the same page: no scheme, "www.", last slash, default port, or parameters that only
// say where a visitor came from.
std::string url_key(const Url& url);

// Bytes outside of letters, digits and "-._~" as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace chimere::web
