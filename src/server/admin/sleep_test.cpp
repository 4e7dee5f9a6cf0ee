// sleep_test.cpp  /sleep, /wake_up and /is_sleeping of a model that is on no card; tests/cuda/sleep_test.cpp has one that is.
#include <gtest/gtest.h>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

TEST(Sleep, AModelOnTheCpuSaysThatItHasNoCardToGive) {
  ServerForTest test;
  test.start();
  const ClientResponse asleep = test.post("/sleep", "{}");
  EXPECT_EQ(asleep.status, 400);
  EXPECT_NE(asleep.body.find("no card to give back"), std::string::npos) << asleep.body;
  EXPECT_EQ(test.post("/wake_up", "{}").status, 200);
  const Json state = *parse_json(test.get("/is_sleeping").body);
  EXPECT_EQ(state["is_sleeping"], false);
  EXPECT_EQ(state["freed_bytes"], 0);
  EXPECT_EQ((*parse_json(test.get("/v1/status").body))["is_sleeping"], false);
  EXPECT_NE(test.get("/metrics").body.find("chimere_sleeping_bytes 0"), std::string::npos);
}

}  // namespace
}  // namespace chimere::server
