// mcp_client_test.cpp  The client with servers that are this very program: where an environment variable names a
// behaviour, it serves before its tests would begin, and then ends.
#include "tools/mcp_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <thread>

#include "tools/mcp_content.h"
#include "tools/rpc.h"
#include "tools/tool_keeper.h"
#include "web/server_for_test.h"

namespace chimere::tools {
namespace {

constexpr const char* kBehaviour = "CHIMERE_TEST_MCP";

Json tool_json(const std::string& name) {
  return Json{{"name", name}, {"description", "of the test"}, {"inputSchema", Json{{"type", "object"}}}};
}

class TestServerProgram {
 public:
  explicit TestServerProgram(std::string behaviour) : behaviour_(std::move(behaviour)) {}

  void serve() {
    if (behaviour_ == "ends at once") fail("no licence");
    if (behaviour_ == "flood") {
      for (const std::string kilobyte(1024, 'x');;) std::cout << kilobyte;
    }
    if (behaviour_ == "prints first") std::cout << "Welcome!\n{\"not\": \"ours\"}\n" << std::flush;
    for (std::string line; std::getline(std::cin, line);) {
      const auto message = parse_rpc(line);
      if (message) hear(*message);
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::cerr << "starting\n" << why << std::endl;
    ::_exit(3);
  }
  static void say(const std::string& message) { std::cout << message << std::endl; }
  static Json text_result(const std::string& text) {
    return Json{{"content", Json::array({Json{{"type", "text"}, {"text", text}}})}};
  }

  void hear(const RpcMessage& message) {
    if (behaviour_ == "silent") return;
    if (message.is_response()) {  // to our ping
      say(rpc_result(pinged_for_, text_result("you answered " + to_text(message.result))));
      return;
    }
    if (message.method == "notifications/initialized") is_greeted_ = true;
    if (message.method == "notifications/cancelled") was_cancelled_ = true;
    if (!message.is_request()) return;
    if (message.method == "initialize") {
      const std::string version =
          behaviour_ == "old" ? "1999-01-01" : message.params["protocolVersion"].get<std::string>();
      say(rpc_result(message.id, Json{{"protocolVersion", version},
                                      {"capabilities", Json{{"tools", Json::object()}}},
                                      {"serverInfo", Json{{"name", "test"}, {"version", "5"}}}}));
    } else if (message.method == "tools/list") {
      list(message);
    } else if (message.method == "tools/call") {
      call(message, message.params["name"].get<std::string>());
    } else {
      say(rpc_failure(message.id, kRpcUnknownMethod, "no"));
    }
  }

  // In two pages; and in one that never ends.
  void list(const RpcMessage& message) {
    if (!is_greeted_) return say(rpc_failure(message.id, -1, "greet first"));
    if (behaviour_ == "endless list") {
      return say(rpc_result(message.id, Json{{"tools", Json::array()}, {"nextCursor", "again"}}));
    }
    if (message.params.is_null()) {
      const Json first = Json::array({tool_json("echo"), tool_json("read/file"), Json{{"name", "no schema"}}});
      return say(rpc_result(message.id, Json{{"tools", first}, {"nextCursor", "two"}}));
    }
    Json second = Json::array({tool_json("die")});
    if (has_more_) second.push_back(tool_json("more"));
    say(rpc_result(message.id, Json{{"tools", second}}));
  }

  void call(const RpcMessage& message, const std::string& tool) {
    if (tool == "echo") return say(rpc_result(message.id, text_result(to_text(message.params["arguments"]))));
    if (tool == "die") fail("out of paper");
    if (tool == "ping") {
      pinged_for_ = message.id;
      return say(rpc_request("p", "ping", Json()));
    }
    if (tool == "read/file") {
      has_more_ = true;
      say(rpc_notification("notifications/tools/list_changed", Json()));
      return say(rpc_result(message.id, text_result("grown")));
    }
    if (tool == "was_cancelled") return say(rpc_result(message.id, text_result(was_cancelled_ ? "yes" : "no")));
    if (tool == "environment") {
      return say(rpc_result(message.id, text_result(std::getenv("CHIMERE_TEST_SECRET") ? "leaks" : "clean")));
    }
    if (tool == "wait") return;
    say(rpc_failure(message.id, kRpcInvalidParams, "no such tool"));
  }

  const std::string behaviour_;
  bool is_greeted_ = false, was_cancelled_ = false, has_more_ = false;
  Json pinged_for_;
};

const bool kServes = [] {
  if (const char* behaviour = std::getenv(kBehaviour)) {
    TestServerProgram(behaviour).serve();
    ::_exit(0);
  }
  return false;
}();

McpServerConfig config_of(const std::string& behaviour) {
  McpServerConfig config{"test"};
  config.command = {std::filesystem::read_symlink("/proc/self/exe")};
  config.env = {{kBehaviour, behaviour}, {"ASAN_OPTIONS", "detect_leaks=0"}};
  return config;
}

std::shared_ptr<McpClient> client_of(const std::string& behaviour, McpClientOptions options = {}) {
  return std::make_shared<McpClient>(config_of(behaviour), options);
}

std::vector<std::string> names_of(const std::vector<ToolSpec>& specs) {
  std::vector<std::string> names;
  for (const ToolSpec& spec : specs) names.push_back(spec.name);
  return names;
}

TEST(McpClient, ListsAllPagesAndCalls) {
  const auto client = client_of("usual");
  const auto tools = client->tools({});
  ASSERT_TRUE(tools) << tools.error().message;
  ASSERT_EQ(tools->size(), 3u);
  EXPECT_EQ((*tools)[1]->spec().name, "test__read_file");
  const ToolResult result = (*tools)[0]->run(R"({"a":[1,"é"]})", {});
  EXPECT_EQ(result.text, R"({"a":[1,"é"]})");
  EXPECT_TRUE(result.is_untrusted);
  EXPECT_FALSE(result.is_error);
  const ToolResult refused = client->call("nothing", "{}", {});
  EXPECT_TRUE(refused.is_error);
  EXPECT_EQ(refused.text, "test: the server refused: no such tool (-32602)");
  EXPECT_EQ(client->call("ping", "{}", {}).text, "you answered {}");
  const McpServerStatus status = client->status();
  EXPECT_TRUE(status.is_connected);
  EXPECT_EQ(status.server, "test 5");
  EXPECT_EQ(status.version, kMcpVersions[0]);
  EXPECT_EQ(status.problem, "left out: 'no schema', which has no name or no schema");
}

TEST(McpClient, IsCalledByManyThreadsAtOnce) {
  const auto client = client_of("prints first");
  std::vector<std::thread> threads;
  std::array<int, 4> n_right{};
  for (size_t t = 0; t < n_right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string arguments = "{\"n\":" + std::to_string(t * 100 + static_cast<size_t>(i)) + "}";
        n_right[t] += client->call("echo", arguments, {}).text == arguments;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : n_right) EXPECT_EQ(n, 50);
  EXPECT_EQ(client->status().n_starts, 1u);
}

TEST(McpClient, CallsEndInTimeAndTheServerHearsOfIt) {
  const auto client = client_of("usual");
  ASSERT_TRUE(client->tools({}));
  ToolContext late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(client->call("wait", "{}", late).text, "test: the call had no time left");
  ToolContext cancelled;
  int n_asked = 0;
  cancelled.is_cancelled = [&] { return ++n_asked > 3; };
  EXPECT_EQ(client->call("wait", "{}", cancelled).text, "test: the call was cancelled");
  EXPECT_EQ(client->call("was_cancelled", "{}", {}).text, "yes");
}

TEST(McpClient, StartsAgainBehindAnEnd) {
  const auto client = client_of("usual");
  EXPECT_EQ(client->call("echo", "{}", {}).text, "{}");
  const ToolResult dead = client->call("die", "{}", {});
  EXPECT_TRUE(dead.is_error);
  EXPECT_EQ(dead.text, "test: the program ended with exit code 3: out of paper");
  EXPECT_EQ(client->call("echo", "{}", {}).text, "{}");
  EXPECT_EQ(client->status().n_starts, 2u);
}

TEST(McpClient, PausesBetweenStartsThatFail) {
  McpClientOptions options;
  options.first_pause = std::chrono::hours(1);
  options.last_pause = std::chrono::hours(2);
  const auto client = client_of("ends at once", options);
  EXPECT_EQ(client->call("echo", "{}", {}).text, "test: the program ended with exit code 3: no licence");
  const std::string paused = client->call("echo", "{}", {}).text;
  EXPECT_EQ(paused.rfind("test: the program ended with exit code 3: no licence; it is tried again in 3", 0), 0u)
      << paused;
  EXPECT_EQ(client->status().n_starts, 1u);
  EXPECT_FALSE(client->is_stale());
  EXPECT_FALSE(client->status().is_connected);
}

TEST(McpClient, GivesUpOnServersThatDoNotKeepTheRules) {
  McpClientOptions brief;
  brief.start_time = std::chrono::milliseconds(100);
  EXPECT_EQ(client_of("silent", brief)->tools({}).error().message, "the call had no time left");
  EXPECT_EQ(client_of("old")->tools({}).error().message,
            "it speaks version '1999-01-01' of the protocol; the latest known here is 2025-11-25");
  EXPECT_EQ(client_of("endless list")->tools({}).error().message, "its list of tools does not end");
  EXPECT_EQ(client_of("flood")->tools({}).error().message, "JSON-RPC: a message is longer than 8388608 bytes");
  McpServerConfig missing{"gone", {"no-such-server-here"}};
  EXPECT_EQ(std::make_shared<McpClient>(missing)->call("x", "{}", {}).text,
            "gone: no-such-server-here: no such program that may be executed");
}

TEST(McpClient, ServersDoNotSeeOurEnvironment) {
  ::setenv("CHIMERE_TEST_SECRET", "hidden", 1);
  EXPECT_EQ(client_of("usual")->call("environment", "{}", {}).text, "clean");
  ::unsetenv("CHIMERE_TEST_SECRET");
}

TEST(McpServers, KeepAToolboxUpToDate) {
  Toolbox box;
  McpServerConfig allowed = config_of("usual");
  allowed.policy = Policy::allow;
  McpServerConfig broken = config_of("ends at once");
  broken.name = "broken";
  McpServers servers({allowed, broken}, box);
  servers.refresh({});
  EXPECT_EQ(names_of(box.list()), (std::vector<std::string>{"test__die", "test__echo", "test__read_file"}));
  EXPECT_EQ(box.run("test__echo", R"({"x":1})", {}).text, R"({"x":1})");
  ASSERT_TRUE(box.set_policy("test__die", Policy::deny));
  EXPECT_EQ(box.run("test__read_file", "{}", {}).text, "grown");  // says that its list has changed
  servers.refresh({});
  EXPECT_EQ(names_of(box.list()), (std::vector<std::string>{"test__echo", "test__more", "test__read_file"}));
  EXPECT_EQ(box.policy("test__die"), Policy::deny);
  EXPECT_EQ(servers.status()[0].n_tools, 4u);
  EXPECT_TRUE(servers.status()[0].is_connected);
  EXPECT_EQ(servers.status()[0].policy, Policy::allow);
  EXPECT_EQ(servers.status()[0].tools.size(), 4u);  // the denied one among them
  EXPECT_TRUE(servers.status()[1].tools.empty());
  EXPECT_FALSE(servers.status()[1].is_connected);
  EXPECT_EQ(servers.status()[1].problem, "the program ended with exit code 3: no licence");
}

// Waits for as long as it takes: a keeper that does nothing is found by the limit of the whole test.
void wait_until(const std::function<bool()>& is_so) {
  for (int i = 0; i < 30'000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(McpServers, AreLookedAtWhenTheyChangeOrWereStartedAgain) {
  Toolbox box;
  McpServerConfig allowed = config_of("usual");
  allowed.policy = Policy::allow;
  McpServers servers({allowed}, box);
  const auto has_more = [&box] { return box.find("test__more") != nullptr; };
  ToolKeeper keeper({[&servers](const ToolContext& context) { servers.refresh(context); }},
                    std::chrono::milliseconds(5));
  wait_until([&box] { return box.find("test__die") != nullptr; });
  ASSERT_TRUE(box.find("test__die"));
  EXPECT_EQ(box.run("test__read_file", "{}", {}).text, "grown");
  wait_until(has_more);
  ASSERT_TRUE(has_more()) << "it said that its list has changed";
  ASSERT_TRUE(box.set_policy("test__more", Policy::deny));
  EXPECT_TRUE(box.run("test__die", "{}", {}).is_error);
  wait_until([&] { return !has_more(); });
  EXPECT_FALSE(has_more()) << "the one that was started again has three";
  EXPECT_EQ(servers.status()[0].n_starts, 2u);
  EXPECT_EQ(box.run("test__read_file", "{}", {}).text, "grown");
  wait_until(has_more);
  ASSERT_TRUE(has_more());
  EXPECT_EQ(box.policy("test__more"), Policy::deny) << "what was denied stays denied when it comes back";
}

TEST(ToolKeeper, EndsALookThatIsUnderWay) {
  std::atomic<bool> began = false;
  {
    ToolKeeper keeper({[&began](const ToolContext& context) {
                        began = true;
                        while (!context.is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      }},
                      std::chrono::milliseconds(1));
    wait_until([&began] { return began.load(); });
  }
  EXPECT_TRUE(began);
}

TEST(McpClient, AsksAgainWhereTheListChanged) {
  const auto client = client_of("usual");
  ASSERT_EQ(client->tools({})->size(), 3u);
  EXPECT_FALSE(client->is_stale());
  EXPECT_EQ(client->call("read/file", "{}", {}).text, "grown");
  EXPECT_TRUE(client->is_stale());
  const auto tools = client->tools({});
  ASSERT_TRUE(tools);
  ASSERT_EQ(tools->size(), 4u);
  EXPECT_EQ((*tools)[3]->spec().name, "test__more");
}

// The same protocol behind an address; what a test wants to see of a request is in `seen`.
class HttpServer {
 public:
  explicit HttpServer(bool is_stream)
      : is_stream_(is_stream),
        server_([this](const web::fixture::Asked& asked, web::fixture::Peer& peer) { answer(asked, peer); }) {}

  McpServerConfig config() const {
    McpServerConfig config{"far"};
    config.url = "http://127.0.0.1:" + std::to_string(server_.port()) + "/mcp";
    config.headers = {{"Authorization", "Bearer abc"}};
    return config;
  }
  bool has_seen(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return seen_.find(text) != std::string::npos;
  }
  std::atomic<bool> has_forgotten = false;

 private:
  void answer(const web::fixture::Asked& asked, web::fixture::Peer& peer) {
    {
      const std::lock_guard lock(mutex_);
      seen_ += asked.head + asked.body + "\n";
    }
    if (asked.method != "POST") {
      peer.answer("text/plain", "");
      return;
    }
    const auto message = parse_rpc(asked.body);
    if (!message || !message->is_request()) {
      peer.answer("text/plain", "", "", "202 Accepted");
      return;
    }
    if (message->method != "initialize" && has_forgotten.exchange(false)) {
      peer.answer("text/plain", "who?", "", "404 Not Found");
      return;
    }
    Json result = Json::object();
    if (message->method == "initialize") {
      result = Json{{"protocolVersion", "2025-06-18"}, {"capabilities", Json{{"tools", Json::object()}}}};
    } else if (message->method == "tools/list") {
      result["tools"] = Json::array({tool_json("echo")});
    } else {
      const Json block = {{"type", "text"}, {"text", to_text(message->params["arguments"])}};
      result["content"] = Json::array({block});
    }
    const std::string session = "Mcp-Session-Id: s-17\r\n";
    const std::string reply = rpc_result(message->id, result);
    if (!is_stream_) {
      peer.answer("application/json", reply, session);
      return;
    }
    // Without an end: the client leaves when it has what it wanted.
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + session + "\r\n: hello\n\ndata: " +
              rpc_request("q", "ping", Json()) + "\n\nevent: message\ndata: " + reply + "\n\n");
    for (int i = 0; i < 2000 && !peer.is_gone(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const bool is_stream_;
  std::mutex mutex_;
  std::string seen_;
  web::fixture::TestServer server_;
};

TEST(McpHttp, SpeaksByPlainAnswersAndByStreams) {
  for (const bool is_stream : {false, true}) {
    HttpServer server(is_stream);
    {
      const auto client = std::make_shared<McpClient>(server.config());
      const auto tools = client->tools({});
      ASSERT_TRUE(tools) << tools.error().message;
      ASSERT_EQ(tools->size(), 1u);
      EXPECT_EQ((*tools)[0]->spec().name, "far__echo");
      EXPECT_EQ((*tools)[0]->run(R"({"a":1})", {}).text, R"({"a":1})");
      EXPECT_EQ(client->status().version, "2025-06-18");
    }
    EXPECT_TRUE(server.has_seen("Authorization: Bearer abc"));
    EXPECT_TRUE(server.has_seen("Mcp-Session-Id: s-17"));
    EXPECT_TRUE(server.has_seen("MCP-Protocol-Version: 2025-06-18"));
    EXPECT_TRUE(server.has_seen("notifications/initialized"));
    EXPECT_TRUE(server.has_seen("DELETE /mcp"));
    EXPECT_EQ(server.has_seen(R"({"jsonrpc":"2.0","id":"q","result":{}})"), is_stream);
  }
}

TEST(McpHttp, BeginsANewSessionWhereTheServerForgotTheOld) {
  HttpServer server(false);
  const auto client = std::make_shared<McpClient>(server.config());
  EXPECT_EQ(client->call("echo", "{}", {}).text, "{}");
  server.has_forgotten = true;
  EXPECT_EQ(client->call("echo", "{}", {}).text, "far: the server answered with status 404");
  EXPECT_EQ(client->call("echo", "{}", {}).text, "{}");
  EXPECT_EQ(client->status().n_starts, 2u);
}

TEST(McpHttp, ErrorsAreResults) {
  web::fixture::TestServer server(
      [](const web::fixture::Asked&, web::fixture::Peer& peer) { peer.answer("text/html", "<p>no", "", "500 Oh"); });
  McpServerConfig config{"far"};
  config.url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
  EXPECT_EQ(std::make_shared<McpClient>(config)->call("x", "{}", {}).text, "far: the server answered with status 500");
  config.url = "ftp://127.0.0.1/";
  EXPECT_TRUE(std::make_shared<McpClient>(config)->call("x", "{}", {}).is_error);
}

}  // namespace
}  // namespace chimere::tools
