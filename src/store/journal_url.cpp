#include "store/journal_url.h"

#include <string_view>
#include <utility>
#include <vector>

namespace chimere::store {
namespace {

constexpr std::string_view kSchemes[] = {"postgresql://", "postgres://"};

size_t authority_begin(const std::string& url) { return url.find("://") + 3; }

// Up to the path, the options, or the end.
size_t authority_end(const std::string& url) {
  return std::min(url.find_first_of("/?#", authority_begin(url)), url.size());
}

// What stands for the port behind one of the hosts and is no number, as a password does that nobody wrote a host behind.
std::vector<std::pair<size_t, size_t>> odd_ports(const std::string& url) {
  std::vector<std::pair<size_t, size_t>> found;
  const size_t end = authority_end(url), at = url.rfind('@', end);
  size_t begin = at != std::string::npos && at >= authority_begin(url) ? at + 1 : authority_begin(url);
  while (begin < end) {
    const size_t host_end = std::min(url.find(',', begin), end);
    const size_t colon = url.find(':', url[begin] == '[' ? std::min(url.find(']', begin), host_end) : begin);
    if (colon < host_end && url.find_first_not_of("0123456789", colon + 1) < host_end) {
      found.emplace_back(colon + 1, host_end);
    }
    begin = host_end + 1;
  }
  return found;
}

// Where passwords stand, from the first on: [begin, end).
std::vector<std::pair<size_t, size_t>> passwords_in(const std::string& url) {
  std::vector<std::pair<size_t, size_t>> found;
  const size_t begin = authority_begin(url), end = authority_end(url);
  const size_t at = url.rfind('@', end);
  if (at != std::string::npos && at >= begin && at < end) {
    const size_t colon = url.find(':', begin);
    if (colon < at && colon + 1 < at) found.emplace_back(colon + 1, at);
  }
  for (const auto& port : odd_ports(url)) found.push_back(port);
  for (size_t field = url.find('?', end); field != std::string::npos; field = url.find('&', field + 1)) {
    const size_t equals = url.find('=', field);
    if (equals == std::string::npos) break;
    const std::string_view name = std::string_view(url).substr(field + 1, equals - field - 1);
    const size_t next = std::min(url.find('&', equals), url.size());
    // Any letter of a name may be written as %XX, which nobody does but to hide something: such a value is none's to see.
    const bool is_secret = name == "password" || name == "sslpassword" || name.find('%') != std::string_view::npos;
    if (is_secret && equals + 1 < next) found.emplace_back(equals + 1, next);
  }
  return found;
}

}  // namespace

bool is_journal_url(const std::string& place) {
  for (const std::string_view scheme : kSchemes) {
    if (place.starts_with(scheme)) return true;
  }
  return false;
}

bool has_password(const std::string& url) { return is_journal_url(url) && !passwords_in(url).empty(); }

std::string without_password(const std::string& place) {
  if (!is_journal_url(place)) return place;
  const auto found = passwords_in(place);
  std::string shown = place;
  for (auto part = found.rbegin(); part != found.rend(); ++part) {
    shown.replace(part->first, part->second - part->first, "********");
  }
  return shown;
}

Status check_journal_url(const std::string& url) {
  const std::string authority = url.substr(authority_begin(url), authority_end(url) - authority_begin(url));
  if (authority.find('@') != authority.rfind('@')) {
    return Error{Code::invalid_argument,
                 "the journal's URL: expected one @ before the host (%40 in a name or password), found several"};
  }
  if (!odd_ports(url).empty()) {
    return Error{Code::invalid_argument,
                 "the journal's URL: expected the number of a port behind the host, found "
                 "something else (" +
                     std::string(kJournalUrlForm) + ")"};
  }
  return Ok{};
}

}  // namespace chimere::store
