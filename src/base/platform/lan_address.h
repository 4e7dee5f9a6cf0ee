// lan_address.h  The address by which other machines of the network reach this one.
#pragma once

#include <string>

namespace chimere {

// Of the interface with the default route, else of the first other one that is up; empty when this machine has none
// beside its loopback. IPv4, which every phone can be told.
std::string lan_address();

}  // namespace chimere
