// url.cpp  libcurl's URL parser, and what we refuse of what it accepts.
#include "web/url.h"

#include <curl/curl.h>
#include <idn2.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

namespace chimere::web {
namespace {

struct FreeUrlHandle {
  void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
};
using UrlHandle = std::unique_ptr<CURLU, FreeUrlHandle>;

std::string url_part(CURLU* handle, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string out(text);
  curl_free(text);
  return out;
}

std::string shown_url(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 200)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return text.size() > 200 ? out + "..." : out;
}

Error url_error(std::string_view text, const std::string& why) {
  return {Code::invalid_argument, "address \"" + shown_url(text) + "\": " + why};
}

Status check_url_text(std::string_view text) {
  if (text.empty()) return url_error(text, "empty");
  if (text.size() > kMaxUrlBytes) {
    return url_error(text, std::to_string(text.size()) + " bytes, at most " + std::to_string(kMaxUrlBytes));
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\') {
      return url_error(text, "has a control character or a backslash");
    }
  }
  return Ok{};
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// A host in other alphabets as it is looked up: "xn--...". libcurl would do it by the process's locale. Some letters
// are read as others ("①" as "1"), so what comes out is parsed once more.
Result<std::string> ascii_host(const std::string& host, std::string_view shown) {
  char* ascii = nullptr;
  const int code = idn2_to_ascii_8z(host.c_str(), &ascii, IDN2_NONTRANSITIONAL);
  if (code != IDN2_OK) return url_error(shown, std::string("has a host that is no name: ") + idn2_strerror(code));
  std::string out(ascii);
  idn2_free(ascii);
  return Result<std::string>{std::move(out)};
}

Result<Url> read_url(CURLU* handle, std::string_view shown) {
  Url url;
  url.scheme = url_part(handle, CURLUPART_SCHEME);
  if (url.scheme != "http" && url.scheme != "https") return url_error(shown, "expected http or https");
  if (!url_part(handle, CURLUPART_USER).empty() || !url_part(handle, CURLUPART_PASSWORD).empty()) {
    return url_error(shown, "has a user name or password, which is refused");
  }
  if (!url_part(handle, CURLUPART_ZONEID).empty()) return url_error(shown, "has an IPv6 zone, which is refused");
  std::string host = url_part(handle, CURLUPART_HOST);
  if (!is_ascii(host)) {
    TRY_ASSIGN(const std::string ascii, ascii_host(host, shown));
    const CURLUcode code =
        is_ascii(ascii) ? curl_url_set(handle, CURLUPART_HOST, ascii.c_str(), 0) : CURLUE_BAD_HOSTNAME;
    if (code != CURLUE_OK) return url_error(shown, curl_url_strerror(code));
    return parse_url(url_part(handle, CURLUPART_URL));
  }
  if (host.empty()) return url_error(shown, "has no host");
  for (char& c : host) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (static_cast<unsigned char>(c) <= ' ' || c == '%') return url_error(shown, "has a host with odd characters");
  }
  url.host = host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  const std::string port = url_part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const unsigned long number = port.size() > 5 ? 0 : std::strtoul(port.c_str(), nullptr, 10);
  if (number == 0 || number > 65535) return url_error(shown, "has no valid port");
  url.port = static_cast<uint16_t>(number);
  url.target = url_part(handle, CURLUPART_PATH);
  if (url.target.empty()) url.target = "/";
  if (const std::string query = url_part(handle, CURLUPART_QUERY); !query.empty()) url.target += "?" + query;
  const bool is_default = url.port == (url.scheme == "https" ? 443 : 80);
  url.text = url.scheme + "://" + host + (is_default ? "" : ":" + std::to_string(url.port)) + url.target;
  if (url.text.size() > kMaxUrlBytes) return url_error(shown, "is too long");
  return Result<Url>{std::move(url)};
}

bool is_tracking_parameter(std::string_view name) {
  static const char* const kNames[] = {"fbclid", "gclid",  "dclid",  "msclkid", "yclid",
                                       "igshid", "mc_cid", "mc_eid", "ref_src"};
  return name.substr(0, 4) == "utm_" || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string Url::origin() const { return scheme + "://" + host + ":" + std::to_string(port); }

Result<Url> parse_url(std::string_view text) {
  TRY(check_url_text(text));
  const UrlHandle handle(curl_url());
  const std::string copy(text);
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, copy.c_str(), CURLU_URLENCODE);
  if (code != CURLUE_OK) return url_error(text, curl_url_strerror(code));
  return read_url(handle.get(), text);
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  TRY(check_url_text(reference));
  const UrlHandle handle(curl_url());
  const std::string copy(reference);
  CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, base.text.c_str(), CURLU_URLENCODE);
  if (code == CURLUE_OK) code = curl_url_set(handle.get(), CURLUPART_URL, copy.c_str(), CURLU_URLENCODE);
  if (code != CURLUE_OK) return url_error(reference, curl_url_strerror(code));
  return read_url(handle.get(), reference);
}

std::string url_key(const Url& url) {
  std::string_view host = url.host;
  while (!host.empty() && host.back() == '.') host.remove_suffix(1);
  if (host.substr(0, 4) == "www.") host.remove_prefix(4);
  std::string key(host);
  if (url.port != 80 && url.port != 443) key += ":" + std::to_string(url.port);
  const size_t question = url.target.find('?');
  std::string_view path = std::string_view(url.target).substr(0, question);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  key += path;
  if (question == std::string::npos) return key;
  std::string_view rest = std::string_view(url.target).substr(question + 1);
  std::vector<std::string_view> kept;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view parameter = rest.substr(0, end);
    if (!parameter.empty() && !is_tracking_parameter(parameter.substr(0, parameter.find('='))))
      kept.push_back(parameter);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (size_t i = 0; i < kept.size(); ++i) key += (i == 0 ? "?" : "&") + std::string(kept[i]);
  return key;
}

std::string percent_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace chimere::web
