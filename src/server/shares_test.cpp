// shares_test.cpp  Keys have equal shares: one that fills the queue is refused, another is still served.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kGreedyKey = "Authorization: Bearer greedy-secret-key\r\n";
constexpr const char* kModestKey = "Authorization: Bearer modest-secret-key\r\n";

struct TwoKeys : ServerForTest {
  TwoKeys() {
    EXPECT_TRUE(config.keys.add("greedy", "greedy-secret-key"));
    EXPECT_TRUE(config.keys.add("modest", "modest-secret-key"));
    engine.max_running = 2;
    engine.max_queued = 4;
  }
};

TEST(Shares, AFullQueueIsFullForTheKeyThatFilledIt) {
  TwoKeys server;
  server.start();
  EngineBrake brake(*server.service);
  const auto is_refused = [&] {
    return server.get("/metrics", kModestKey).body.find(R"(status="429")") != std::string::npos;
  };
  std::vector<std::unique_ptr<Client>> crowd;
  while (crowd.size() < 10 && !is_refused()) {
    const size_t n = server.service->engine().list().size();
    crowd.push_back(std::make_unique<Client>(server.port()));
    crowd.back()->send(post_text(kChatPath, chat_body(R"("max_tokens":900)"), kGreedyKey));
    while (server.service->engine().list().size() == n && !is_refused()) std::this_thread::yield();
  }
  EXPECT_LE(crowd.size(), 6u) << "one runs, four wait";
  EXPECT_EQ(crowd.back()->read_response().status, 429);
  std::atomic<int> status{0};
  std::thread modest([&] { status = server.post(kChatPath, chat_body(R"("max_tokens":3)"), kModestKey).status; });
  brake.step_until([&] { return status != 0; });
  modest.join();
  EXPECT_EQ(status, 200);
}

TEST(Shares, SeveralAnswersAreSeveralRequests) {
  TwoKeys server;
  server.start();
  EngineBrake brake(*server.service);
  Client first(server.port());
  first.send(post_text(kChatPath, chat_body(R"("max_tokens":50,"n":4)"), kGreedyKey));
  while (server.service->engine().list().size() < 2) std::this_thread::yield();
  Client second(server.port());
  second.send(post_text(kChatPath, chat_body(R"("max_tokens":50,"n":4)"), kGreedyKey));
  const ClientResponse refused = second.read_response();
  EXPECT_EQ(refused.status, 429) << "three or four places are taken: " << refused.body;
}

}  // namespace
}  // namespace chimere::server
