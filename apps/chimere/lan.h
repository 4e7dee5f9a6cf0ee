// lan.h  `serve --lan`: phones and other machines of the network, let in by a picture.
#pragma once

#include <string>

#include "base/result.h"
#include "server/server.h"

namespace chimere::apps {

struct LanOptions {
  bool is_on = false;
  bool forget_browsers = false;
};

// Opens the server to the network, with the browsers that were let in before. Says why where that can not be.
Status open_to_lan(const LanOptions& options, server::ServerConfig& config);
// Shows the address, with a code that works once; and again with the next one when it was used.
void show_invitation(server::Pairing& pairing, const server::Server& server);
// The address of the page for the desktop's own browser.
std::string page_address(server::Pairing* pairing, const server::Server& server);

}  // namespace chimere::apps
