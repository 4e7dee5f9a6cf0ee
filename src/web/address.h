// address.h  Addresses of the network, and which of them belong to the open internet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct sockaddr;

namespace chimere::web {

// IPv4 as the four last bytes, IPv6 as all sixteen.
struct Address {
  bool is_v6 = false;
  std::array<uint8_t, 16> bytes{};

  std::string text() const;
};

// Dotted decimal or IPv6 without brackets and zone, and nothing else.
std::optional<Address> parse_address(std::string_view text);
// nullopt where the family is neither IPv4 nor IPv6.
std::optional<Address> address_of(const sockaddr* socket_address);

// Why a page of the web cannot live at this address: "a loopback address". nullptr where it can. Lists of the special
// ranges: RFC 6890 and its registries; what they say is "not globally reachable" is refused, and so are forms of IPv6
// that carry an IPv4 address around a look at it. Beyond them: the address at which one cloud's machines find their
// host.
const char* why_not_public(const Address& address);

}  // namespace chimere::web
