// lan_address.cpp  For POSIX systems.
#include "base/platform/lan_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace chimere {
namespace {

std::string written(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN];
  const bool is_usable = address.sin_addr.s_addr != 0 && (ntohl(address.sin_addr.s_addr) >> 24) != 127;
  return is_usable && inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) ? text : "";
}

// The source of what would go out to the world. Connecting a datagram socket looks up the route and sends nothing;
// 198.51.100.1 is kept for documents, so that there is nobody to send to.
std::string of_default_route() {
  const int handle = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return "";
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  far.sin_addr.s_addr = htonl(0xC6336401);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  const bool is_known = ::connect(handle, reinterpret_cast<sockaddr*>(&far), sizeof far) == 0 &&
                        ::getsockname(handle, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  ::close(handle);
  return is_known ? written(own) : "";
}

std::string of_any_interface() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  std::string found;
  for (const ifaddrs* entry = list; entry && found.empty(); entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET || !(entry->ifa_flags & IFF_UP)) continue;
    found = written(*reinterpret_cast<const sockaddr_in*>(entry->ifa_addr));
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace

std::string lan_address() {
  const std::string address = of_default_route();
  return address.empty() ? of_any_interface() : address;
}

}  // namespace chimere
