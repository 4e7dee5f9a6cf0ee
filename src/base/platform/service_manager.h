// service_manager.h  What systemd, or whoever started the process and waits for word of it, is told.
#pragma once

#include <string>

namespace chimere {

// "READY=1", "STOPPING=1": a datagram to the socket that $NOTIFY_SOCKET names, as systemd's protocol says. True when it
// was sent; false where nobody waits or the socket is gone, which changes nothing.
bool tell_service_manager(const std::string& state);

}  // namespace chimere
