// address.cpp  Text and ranges of addresses.
#include "web/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace chimere::web {
namespace {

struct AddressRange {
  const char* first;
  int n_bits;
  const char* name;
};

constexpr AddressRange kSpecialV4[] = {
    {"0.0.0.0", 8, "an address of this machine"},
    {"10.0.0.0", 8, "a private address"},
    {"100.64.0.0", 10, "an address inside a provider's network"},
    {"127.0.0.0", 8, "a loopback address"},
    {"168.63.129.16", 32, "an address of a cloud's own services"},
    {"169.254.0.0", 16, "a link-local address"},
    {"172.16.0.0", 12, "a private address"},
    {"192.0.0.0", 24, "an address reserved for protocols"},
    {"192.0.2.0", 24, "an address reserved for documents"},
    {"192.88.99.0", 24, "an address of a relay"},
    {"192.168.0.0", 16, "a private address"},
    {"198.18.0.0", 15, "an address reserved for measurements"},
    {"198.51.100.0", 24, "an address reserved for documents"},
    {"203.0.113.0", 24, "an address reserved for documents"},
    {"224.0.0.0", 4, "a multicast address"},
    {"240.0.0.0", 4, "a reserved address"},
};

// The first that fits names the reason; what none of them and not the global range holds is "a reserved address".
constexpr AddressRange kSpecialV6[] = {
    {"::1", 128, "a loopback address"},
    {"::", 128, "an address of this machine"},
    {"::ffff:0:0", 96, "an IPv4 address inside an IPv6 one"},
    {"::", 96, "an IPv4 address inside an IPv6 one"},
    {"64:ff9b:1::", 48, "a private address"},
    {"fc00::", 7, "a private address"},
    {"fe80::", 10, "a link-local address"},
    {"fec0::", 10, "a private address"},
    {"ff00::", 8, "a multicast address"},
    {"2001:db8::", 32, "an address reserved for documents"},
    {"3fff::", 20, "an address reserved for documents"},
    {"2001::", 23, "an address reserved for protocols"},
    {"2002::", 16, "an IPv4 address inside an IPv6 one"},
};
constexpr AddressRange kGlobalV6 = {"2000::", 3, ""};
constexpr AddressRange kTranslatedV6 = {"64:ff9b::", 96, ""};  // NAT64: the last four bytes are where it goes to

bool is_inside(const Address& address, const AddressRange& range) {
  const std::optional<Address> first = parse_address(range.first);
  const size_t skipped = address.is_v6 ? 0 : 12;
  for (int bit = 0; bit < range.n_bits; ++bit) {
    const size_t byte = skipped + static_cast<size_t>(bit) / 8;
    if (((address.bytes[byte] ^ first->bytes[byte]) >> (7 - bit % 8)) & 1) return false;
  }
  return true;
}

Address v4_inside(const Address& v6) {
  Address v4;
  std::memcpy(&v4.bytes[12], &v6.bytes[12], 4);
  return v4;
}

}  // namespace

std::string Address::text() const {
  char out[INET6_ADDRSTRLEN] = {};
  inet_ntop(is_v6 ? AF_INET6 : AF_INET, is_v6 ? bytes.data() : &bytes[12], out, sizeof out);
  return out;
}

std::optional<Address> parse_address(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN) return std::nullopt;
  const std::string copy(text);
  Address address;
  if (copy.size() != std::strlen(copy.c_str())) return std::nullopt;
  if (inet_pton(AF_INET, copy.c_str(), &address.bytes[12]) == 1) return address;
  address.is_v6 = true;
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::optional<Address> address_of(const sockaddr* socket_address) {
  Address address;
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, socket_address, sizeof v4);
    std::memcpy(&address.bytes[12], &v4.sin_addr, 4);
    return address;
  }
  if (socket_address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, socket_address, sizeof v6);
    address.is_v6 = true;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    return address;
  }
  return std::nullopt;
}

const char* why_not_public(const Address& address) {
  if (!address.is_v6) {
    for (const AddressRange& range : kSpecialV4) {
      if (is_inside(address, range)) return range.name;
    }
    return nullptr;
  }
  if (is_inside(address, kTranslatedV6)) return why_not_public(v4_inside(address));
  for (const AddressRange& range : kSpecialV6) {
    if (is_inside(address, range)) return range.name;
  }
  return is_inside(address, kGlobalV6) ? nullptr : "a reserved address";
}

}  // namespace chimere::web
