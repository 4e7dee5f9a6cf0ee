// guard.h  Where pages may be fetched from: the open web, and nothing that only this machine or its network can reach.
//
// Addresses of pages come from search results and redirects, so from strangers. Both questions are asked on every
// redirect: is this URL one we would open, and is the address that its name leads to, at the moment of connecting, a
// public one. The second answer is what counts: a name may resolve to something else than a moment ago.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "web/address.h"
#include "web/url.h"

namespace chimere::web {

// For tests alone, which have no other network: these addresses are treated as public ones, and these ports as open
// ones. No option of the program and no request leads here.
struct TestAllowance {
  std::vector<Address> addresses;
  std::vector<uint16_t> ports;
};

class Guard {
 public:
  explicit Guard(std::vector<uint16_t> ports = {80, 443}, TestAllowance allowance = {});

  Status check_url(const Url& url) const;
  Status check_address(const Address& address) const;

 private:
  bool is_allowed_for_test(const Address& address) const;

  std::vector<uint16_t> ports_;
  TestAllowance allowance_;
};

}  // namespace chimere::web
