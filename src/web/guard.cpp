// guard.cpp  The two questions of the guard.
#include "web/guard.h"

#include <algorithm>

namespace chimere::web {
namespace {

// Names that mean something inside a network alone (RFC 6761, 6762, 8375, and what ICANN set aside as ".internal"). The
// address would be refused, too; here nobody is asked about them.
bool is_local_name(std::string_view host) {
  for (const std::string_view name :
       {"localhost", "local", "internal", "home.arpa", "lan", "intranet", "localdomain"}) {
    if (host == name) return true;
    if (host.size() > name.size() && host.substr(host.size() - name.size()) == name &&
        host[host.size() - name.size() - 1] == '.') {
      return true;
    }
  }
  return host.find('.') == std::string_view::npos && host.find(':') == std::string_view::npos;  // "router"
}

}  // namespace

Guard::Guard(std::vector<uint16_t> ports, TestAllowance allowance)
    : ports_(std::move(ports)), allowance_(std::move(allowance)) {
  ports_.insert(ports_.end(), allowance_.ports.begin(), allowance_.ports.end());
}

bool Guard::is_allowed_for_test(const Address& address) const {
  return std::any_of(allowance_.addresses.begin(), allowance_.addresses.end(), [&](const Address& allowed) {
    return allowed.is_v6 == address.is_v6 && allowed.bytes == address.bytes;
  });
}

Status Guard::check_url(const Url& url) const {
  std::string_view host = url.host;
  while (!host.empty() && host.back() == '.') host.remove_suffix(1);
  if (const std::optional<Address> address = parse_address(host)) {
    TRY(check_address(*address));
  } else if (is_local_name(host)) {
    return Error{Code::invalid_argument, "refused: \"" + url.host + "\" is a name of a local network"};
  }
  if (std::find(ports_.begin(), ports_.end(), url.port) == ports_.end()) {
    return Error{Code::invalid_argument, "refused: port " + std::to_string(url.port) + " of \"" + url.host + "\""};
  }
  return Ok{};
}

Status Guard::check_address(const Address& address) const {
  if (is_allowed_for_test(address)) return Ok{};
  if (const char* why = why_not_public(address)) {
    return Error{Code::invalid_argument, "refused: " + address.text() + " is " + why};
  }
  return Ok{};
}

}  // namespace chimere::web
