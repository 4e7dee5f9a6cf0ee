// web_search_endpoint_test.cpp  POST /v1/search against a search server and pages on loopback.
#include <gtest/gtest.h>

#include "odo/odo.h"
#include "server/server_for_test.h"
#include "web/web_for_test.h"

namespace chimere::server {
namespace {

TEST(WebSearchEndpoint, SourcesAndPassages) {
  web::fixture::WebForTest web(
      {{"beans", {"text/html", "<title>Beans</title><p>The beans of Orlo are planted on the ninth of May.</p>"}}});
  tools::Toolbox box;
  std::unique_ptr<odo::Odo> odo;
  ServerForTest test;
  test.prepare = [&](orchestrator::ChatService& service) {
    odo::Shelves shelves;
    shelves.web = web.search.get();
    odo = std::make_unique<odo::Odo>(service, box, shelves, odo::OdoConfig());
    test.config.odo = odo.get();
  };
  test.start();
  const auto ask = [&](const std::string& fields, int status = 200) {
    const ClientResponse response =
        test.post("/v1/search", R"({"query": "When are the beans of Orlo planted?")" + fields + "}");
    EXPECT_EQ(response.status, status) << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  };
  const Json plain = ask(R"(, "depth": "quick")");
  EXPECT_EQ(plain["n_sources"], 1);
  EXPECT_EQ(plain["sources"][0]["url"], web.site.url("/beans"));
  EXPECT_EQ(plain["synthesis"], "");
  EXPECT_EQ(plain["passages"][0]["n"], 1);
  EXPECT_NE(plain["passages"][0]["text"].get<std::string>().find("ninth of May"), std::string::npos);
  EXPECT_EQ(plain["steps"].back()["stage"], "grade");
  ask(R"(, "depth": "bottomless")", 400);
  ask(R"(, "synthesis": "yes")", 400);
  test.stop();
  odo.reset();
}

}  // namespace
}  // namespace chimere::server
