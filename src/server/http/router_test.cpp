// router_test.cpp  Paths, methods and the segment that may be anything.
#include "server/http/router.h"

#include <gtest/gtest.h>

namespace chimere::server {
namespace {

Router table() {
  Router router;
  router.add({.method = "GET", .path = "/things", .handler = {}});
  router.add({.method = "POST", .path = "/things", .handler = {}});
  router.add({.method = "GET", .path = "/things/{id}", .handler = {}});
  router.add({.method = "POST", .path = "/things/{id}/stop", .handler = {}});
  return router;
}

TEST(Router, FindsByMethodAndPath) {
  const Router router = table();
  const auto path_of = [&](const char* method, const char* path) {
    const Router::Match match = router.find(method, path);
    return match.route ? match.route->method + " " + match.route->path + " " + match.parameter
                       : "none " + match.allowed;
  };
  EXPECT_EQ(path_of("GET", "/things"), "GET /things ");
  EXPECT_EQ(path_of("HEAD", "/things"), "GET /things ");
  EXPECT_EQ(path_of("POST", "/things"), "POST /things ");
  EXPECT_EQ(path_of("PUT", "/things"), "none GET, POST");
  EXPECT_EQ(path_of("GET", "/things/a-1"), "GET /things/{id} a-1");
  EXPECT_EQ(path_of("POST", "/things/a-1/stop"), "POST /things/{id}/stop a-1");
  EXPECT_EQ(path_of("GET", "/things/a-1/stop"), "none POST");
  for (const char* path : {"/", "", "/things/", "/thing", "/things/a/b/stop", "/things//stop", "/things/stop/"}) {
    EXPECT_EQ(path_of("PUT", path), "none ") << path;
  }
}

}  // namespace
}  // namespace chimere::server
