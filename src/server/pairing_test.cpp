// pairing_test.cpp  A code becomes a key once, and the key outlives the server.
#include "server/http/pairing.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

TEST(Pairing, ACodeWorksOnce) {
  auto pairing = *Pairing::open("");
  const std::string code = pairing->invite();
  EXPECT_EQ(code.size(), 32u);
  int accepted = 0;
  pairing->on_accepted([&] { ++accepted; });
  EXPECT_FALSE(pairing->accept("")) << "no code";
  EXPECT_FALSE(pairing->accept(code.substr(1)));
  const auto key = pairing->accept(code);
  ASSERT_TRUE(key);
  EXPECT_FALSE(pairing->accept(code));
  EXPECT_EQ(accepted, 1);
  ASSERT_TRUE(pairing->find(*key));
  EXPECT_EQ(*pairing->find(*key), "lan");
  EXPECT_FALSE(pairing->find(code)) << "a code is no key";
  EXPECT_FALSE(pairing->find(""));
}

TEST(Pairing, OldCodesGiveWay) {
  auto pairing = *Pairing::open("");
  const std::string first = pairing->invite();
  const std::string second = pairing->invite();
  for (size_t i = 1; i < Pairing::kMaxOpenCodes; ++i) pairing->invite();
  EXPECT_FALSE(pairing->accept(first));
  EXPECT_TRUE(pairing->accept(second));
}

TEST(Pairing, KeysStayAndDamagedLinesAdmitNobody) {
  const std::string file = (fixture::scratch_folder() / "browsers").string();
  std::string key;
  {
    auto pairing = *Pairing::open(file);
    key = *pairing->accept(pairing->invite());
  }
  std::ofstream(file, std::ios::app) << "browser-1:12ab";  // cut off
  auto pairing = *Pairing::open(file);
  EXPECT_EQ(pairing->n_damaged(), 1u);
  EXPECT_TRUE(pairing->find(key));
  const std::string other = *pairing->accept(pairing->invite());
  auto again = *Pairing::open(file);
  EXPECT_TRUE(again->find(key));
  EXPECT_TRUE(again->find(other));
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text.find(key), std::string::npos) << "the key itself is not on the disk";
}

TEST(Pairing, BrowsersAreLimited) {
  auto pairing = *Pairing::open("");
  for (size_t i = 0; i < Pairing::kMaxBrowsers; ++i) ASSERT_TRUE(pairing->accept(pairing->invite()));
  const auto more = pairing->accept(pairing->invite());
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::exhausted);
}

TEST(Pairing, LetsABrowserInOverHttp) {
  ServerForTest server;
  server.config.pairing = *Pairing::open("");
  const std::string code = server.config.pairing->invite();
  server.start();
  const auto bearer = [](const std::string& key) { return "Authorization: Bearer " + key + "\r\n"; };
  EXPECT_EQ(server.get("/v1/models").status, 401);
  EXPECT_EQ(server.get("/v1/models", bearer(code)).status, 401);
  EXPECT_EQ(server.post("/v1/pair", "", bearer("00000000000000000000000000000000")).status, 401);
  const ClientResponse paired = server.post("/v1/pair", "", bearer(code));
  ASSERT_EQ(paired.status, 200) << paired.body;
  EXPECT_EQ(paired.header("Cache-Control"), "no-store");
  const std::string key = (*parse_json(paired.body))["key"];
  EXPECT_EQ(server.get("/v1/models", bearer(key)).status, 200);
  const ClientResponse again = server.post("/v1/pair", "", bearer(code));
  EXPECT_EQ(again.status, 401);
  EXPECT_NE(again.body.find("invalid_code"), std::string::npos) << again.body;
}

TEST(Pairing, AServerWithoutItHasNoSuchPath) {
  ServerForTest server;
  server.start();
  EXPECT_EQ(server.post("/v1/pair", "").status, 404);
}

}  // namespace
}  // namespace chimere::server
