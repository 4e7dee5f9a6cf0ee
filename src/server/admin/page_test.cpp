#include "server/admin/page.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace chimere::server {
namespace {

constexpr PageFile kFiles[] = {
    {"index.html", "text/html; charset=utf-8", "\"1\"", "INDEX"},
    {"frame.html", "text/html; charset=utf-8", "\"2\"", "FRAME"},
    {"assets/index-abc.js", "text/javascript; charset=utf-8", "\"3\"", "SCRIPT"},
    {"sw.js", "text/javascript; charset=utf-8", "\"4\"", "WORKER"},
};

HttpRequest get(std::string path) {
  HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.headers = {{"Accept-Encoding", "gzip, deflate, br"}};
  return request;
}

std::string header(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}

TEST(Page, TheIndexHasThreeNames) {
  for (const char* path : {"/", "/studio", "/studio/"}) {
    const HttpResponse response = page_response(get(path), kFiles);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "INDEX");
    EXPECT_EQ(header(response, "Content-Encoding"), "gzip");
    EXPECT_EQ(header(response, "Cache-Control"), "no-cache");
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
  }
}

TEST(Page, PolicyOfThePageAllowsNoInlineScript) {
  const std::string policy = header(page_response(get("/"), kFiles), "Content-Security-Policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(policy.find("script-src 'self';"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
}

TEST(Page, PolicyOfTheFrameIsASandboxWithoutNetwork) {
  const std::string policy = header(page_response(get("/studio/frame.html"), kFiles), "Content-Security-Policy");
  EXPECT_NE(policy.find("sandbox allow-scripts;"), std::string::npos);
  EXPECT_EQ(policy.find("allow-same-origin"), std::string::npos);
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(policy.find("connect-src 'none'"), std::string::npos);
}

// Browsers ignore a directive they do not know and complain in the console: a promise that nobody keeps.
TEST(Page, PoliciesHaveOnlyDirectivesThatBrowsersKnow) {
  const std::set<std::string> known = {
      "base-uri",      "connect-src",
      "default-src",   "font-src",
      "form-action",   "frame-ancestors",
      "frame-src",     "img-src",
      "manifest-src",  "media-src",
      "sandbox",       "style-src",
      "script-src",    "require-trusted-types-for",
      "trusted-types",
  };
  for (const char* path : {"/", "/studio/frame.html"}) {
    std::istringstream policy(header(page_response(get(path), kFiles), "Content-Security-Policy"));
    for (std::string directive; std::getline(policy >> std::ws, directive, ';');) {
      EXPECT_TRUE(known.contains(directive.substr(0, directive.find(' ')))) << directive;
    }
  }
}

TEST(Page, HashedNamesAreKeptAndTheRestIsAskedAgain) {
  const HttpResponse script = page_response(get("/studio/assets/index-abc.js"), kFiles);
  EXPECT_NE(header(script, "Cache-Control").find("immutable"), std::string::npos);
  HttpRequest again = get("/");
  again.headers.emplace_back("If-None-Match", "\"1\"");
  const HttpResponse unchanged = page_response(again, kFiles);
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_TRUE(unchanged.body.empty());
  again.headers.back().second = "\"0\"";
  EXPECT_EQ(page_response(again, kFiles).status, 200);
}

// A worker of a folder may serve that folder alone, unless the server says otherwise; an old one must not be kept.
TEST(Page, TheWorkerMayServeTheIndexAndIsAskedAgain) {
  const HttpResponse worker = page_response(get("/studio/sw.js"), kFiles);
  EXPECT_EQ(header(worker, "Service-Worker-Allowed"), "/");
  EXPECT_EQ(header(worker, "Cache-Control"), "no-cache");
  EXPECT_EQ(header(page_response(get("/"), kFiles), "Service-Worker-Allowed"), "");
}

TEST(Page, UnknownFilesAre404) {
  for (const char* path : {"/studio/x", "/studio/../index.html", "/studio//", "/studio/assets/"}) {
    EXPECT_EQ(page_response(get(path), kFiles).status, 404) << path;
  }
}

TEST(Page, ClientsWithoutGzipAndProgramsWithoutThePageGetText) {
  HttpRequest plain = get("/");
  plain.headers.clear();
  const HttpResponse told = page_response(plain, kFiles);
  EXPECT_EQ(told.status, 200);
  EXPECT_NE(told.body.find("in a browser"), std::string::npos);
  EXPECT_EQ(header(told, "Content-Encoding"), "");
  plain.path = "/studio/frame.html";
  EXPECT_EQ(page_response(plain, kFiles).status, 406);

  const HttpResponse without = page_response(get("/"), {});
  EXPECT_EQ(without.status, 200);
  EXPECT_NE(without.body.find("built without its web page"), std::string::npos);
  EXPECT_EQ(page_response(get("/studio/frame.html"), {}).status, 404);
}

}  // namespace
}  // namespace chimere::server
