// searx_test.cpp  A whole search with Debian's searx as the search server, whose engines read pages of our own server
// on loopback. Skipped where the package is not installed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "base/scratch_for_test.h"
#include "text/json.h"
#include "web/server_for_test.h"
#include "web/web_search.h"

extern char** environ;

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;

constexpr const char* kSearxProgram = "/usr/bin/searx-run";

uint16_t free_port() {
  TestServer server([](const Asked&, Peer&) {});
  return server.port();
}

std::string with(std::string text, const std::string& name, const std::string& value) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size())) {
    text.replace(at, name.size(), value);
  }
  return text;
}

// The process and its end.
class Searx {
 public:
  Searx(const std::string& settings, const std::string& log) {
    const std::string variable = "SEARX_SETTINGS_PATH=" + settings;
    std::vector<char*> environment = {const_cast<char*>(variable.c_str())};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(nullptr);
    char* arguments[] = {const_cast<char*>(kSearxProgram), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawn(&pid_, kSearxProgram, &actions, nullptr, arguments, environment.data()) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Searx() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool runs() const { return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_ = -1;
};

std::string file_text(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(RealSearx, AWholeSearch) {
  if (::access(kSearxProgram, X_OK) != 0) GTEST_SKIP() << "searx is not installed (apt-get install searx)";
  TestServer web([&](const Asked& asked, Peer& peer) {
    const std::string base = asked.head.substr(asked.head.find("Host: ") + 6);
    const std::string root = "http://" + base.substr(0, base.find("\r\n"));
    const auto page = [&](const char* name) {
      return Json{{"url", root + "/" + name},
                  {"title", std::string("About ") + name},
                  {"content", "Some words on " + std::string(name)}};
    };
    const bool is_otters = asked.target.rfind("/find?engine=otters", 0) == 0;
    if (is_otters || asked.target.rfind("/find?engine=rivers", 0) == 0) {
      const Json results = is_otters ? Json{page("fur"), page("sleep")} : Json{page("floods"), page("sleep")};
      return void(peer.answer("application/json", to_text(Json{{"results", results}})));
    }
    if (asked.target == "/robots.txt") return void(peer.answer("text/plain", "User-agent: *\nDisallow: /floods\n"));
    if (asked.target == "/failing") return void(peer.answer("text/plain", "", "", "500 X"));
    peer.answer("text/html",
                "<title>T</title><main><h1>Otters</h1><p>Page " + asked.target +
                    " says: otters hold hands while they sleep, so that the river does not part them.</p>" +
                    std::string(200, 'w') + "</main>");
  });
  const std::filesystem::path folder = chimere::fixture::scratch_folder();
  const uint16_t port = free_port();
  const std::string pages = web.url("");
  std::ofstream(folder / "settings.yml") << with(
      with(file_text(std::string(CHIMERE_TESTS_DIR) + "/web/searx_settings.yml"), "{PORT}", std::to_string(port)),
      "{PAGES}", pages);
  const Searx searx(folder / "settings.yml", folder / "log");

  Searxng::Options options;
  options.endpoint = "http://127.0.0.1:" + std::to_string(port);
  const auto server = Searxng::create(options);
  ASSERT_TRUE(server) << server.error().message;
  const WebContext context = WebContext().within(std::chrono::seconds(60));
  auto first = (*server)->search({"first", "", {}, "", 1}, context);
  while (!first && searx.runs() && context.check("start")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first = (*server)->search({"first", "", {}, "", 1}, context);
  }
  ASSERT_TRUE(first) << first.error().message << "\n" << file_text(folder / "log");
  EXPECT_NE(first->note.find("failing"), std::string::npos) << first->note;

  PageFetcher::Options fetching;
  fetching.pause = std::chrono::milliseconds(0);
  PageFetcher fetcher(fetching, {{*parse_address("127.0.0.1")}, {web.port()}});
  SearchOptions search;
  search.depth = kQuickSearch;
  search.language = "en";
  search.categories = {"general", "science"};
  const auto outcome = WebSearch(**server, fetcher).run("How do otters sleep?", search, {}, context);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->sources.size(), 3u);
  EXPECT_EQ(outcome->sources[0].url, web.url("/sleep"));  // both engines have it
  EXPECT_EQ(outcome->sources[0].title.as_data(), "About sleep");
  EXPECT_EQ(outcome->sources[0].snippet.as_data(), "Some words on sleep");
  ASSERT_EQ(outcome->passages.size(), 2u);  // one page is closed to us
  EXPECT_NE(outcome->passages[0].text.as_data().find("hold hands"), std::string::npos);
  // The categories of a query reach searx: one of the engines alone.
  search.categories = {"science"};
  const auto science = WebSearch(**server, fetcher).run("How do otters sleep?", search, {}, context);
  ASSERT_TRUE(science) << science.error().message;
  ASSERT_EQ(science->sources.size(), 2u);
  EXPECT_EQ(science->sources[0].url, web.url("/floods"));
}

}  // namespace
}  // namespace chimere::web
