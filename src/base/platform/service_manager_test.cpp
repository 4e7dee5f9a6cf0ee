#include "base/platform/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace chimere {
namespace {

TEST(ServiceManager, IsToldOnTheSocketItNames) {
  const std::string name = "@chimere-test-" + std::to_string(getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const int listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(listener, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), size), 0);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  EXPECT_TRUE(tell_service_manager("READY=1"));
  char text[32] = {};
  EXPECT_EQ(recv(listener, text, sizeof text, MSG_DONTWAIT), 7);
  EXPECT_STREQ(text, "READY=1");
  close(listener);
  EXPECT_FALSE(tell_service_manager("STOPPING=1"));
  for (const char* wrong : {"", "x", "relative/path", "@"}) {
    setenv("NOTIFY_SOCKET", wrong, 1);
    EXPECT_FALSE(tell_service_manager("READY=1")) << wrong;
  }
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(tell_service_manager("READY=1"));
}

}  // namespace
}  // namespace chimere
