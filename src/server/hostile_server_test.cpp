// hostile_server_test.cpp  The whole server under requests that are made to hold up others: large bodies, large
// answers, readers that do not read.
#include <poll.h>

#include <array>
#include <random>
#include <semaphore>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

// Keeps all workers of a server from working until it is told.
class WorkersBrake {
 public:
  explicit WorkersBrake(Workers& workers) {
    for (int i = 0; i < kThreads; ++i) {
      workers.post([held = held_, go = go_] {
        held->release();
        go->acquire();
      });
    }
    for (int i = 0; i < kThreads; ++i) held_->acquire();
  }
  ~WorkersBrake() { release(); }
  void release() {
    if (!std::exchange(released_, true)) go_->release(kThreads);
  }
  static constexpr int kThreads = 2;

 private:
  std::shared_ptr<std::counting_semaphore<>> held_ = std::make_shared<std::counting_semaphore<>>(0);
  std::shared_ptr<std::counting_semaphore<>> go_ = std::make_shared<std::counting_semaphore<>>(0);
  bool released_ = false;
};

bool has_answer(const Client& client) {
  pollfd readable{client.socket(), POLLIN, 0};
  return ::poll(&readable, 1, 0) > 0;
}

class HostileServer : public testing::Test {
 protected:
  void SetUp() override { server_.config.workers = workers_; }

  // A request whose answer goes on to its limit.
  std::string endless(const std::string& fields) const {
    std::string bias;
    for (const int32_t id : server_.service->tokenizer().eog_ids()) {
      bias += (bias.empty() ? "\"" : ",\"") + std::to_string(id) + "\":-100";
    }
    return chat_body(fields + ",\"logit_bias\":{" + bias + "}");
  }

  std::shared_ptr<Workers> workers_ = std::make_shared<Workers>(WorkersBrake::kThreads);
  ServerForTest server_;
};

TEST_F(HostileServer, HealthAnswersWhileLargeBodiesAreParsed) {
  server_.start();
  WorkersBrake brake(*workers_);
  constexpr std::array kPaths = {"/v1/chat/completions",
                                 "/v1/completions",
                                 "/v1/responses",
                                 "/v1/messages",
                                 "/tokenize",
                                 "/detokenize",
                                 "/v1/embeddings",
                                 "/v1/rerank",
                                 "/v1/messages/count_tokens",
                                 "/v1/lora",
                                 "/v1/engram/accept",
                                 "/v1/engram/forget"};
  // Refused once it was parsed, and not before.
  const std::string body = "{\"no_such_field\":[" + std::string(100'000, ' ') + "]";
  std::vector<std::unique_ptr<Client>> clients;
  for (const char* path : kPaths) {
    clients.push_back(std::make_unique<Client>(server_.port()));
    clients.back()->send(post_text(path, body));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(server_.get("/health").status, 200);
  EXPECT_EQ(server_.post("/v1/chat/completions", chat_body(R"("max_tokens":1)")).status, 200)
      << "small bodies need no worker";
  for (const auto& client : clients) EXPECT_FALSE(has_answer(*client));
  brake.release();
  for (auto& client : clients) EXPECT_EQ(client->read_response().status, 400);
}

TEST_F(HostileServer, LargeBodiesAreAnsweredAsSmallOnesAre) {
  server_.start();
  const auto answer = [&](const std::string& padding) {
    const ClientResponse response =
        server_.post("/v1/chat/completions", chat_body(R"("max_tokens":8,"temperature":0,"logprobs":true)" + padding));
    EXPECT_EQ(response.status, 200) << response.body;
    const auto json = parse_json(response.body);
    return json ? to_text((*json)["choices"]) : std::string();
  };
  EXPECT_EQ(answer(std::string(50'000, ' ')), answer(""));
}

TEST_F(HostileServer, LargeAnswersAreWrittenByWorkers) {
  server_.start();
  WorkersBrake brake(*workers_);
  Client tokens(server_.port()), vectors(server_.port()), list(server_.port());
  tokens.send(post_text("/tokenize", R"({"content":"Hello","with_pieces":true})"));
  vectors.send(post_text("/v1/embeddings", R"({"input":"Hello"})"));
  list.send(post_text("/v1/chat/completions", endless(R"("max_tokens":150,"logprobs":true,"top_logprobs":20)")));
  // All that is left to do is to write it.
  while (server_.service->engine().stats().generated_tokens < 100 || server_.service->engine().stats().running > 0) {
    EXPECT_EQ(server_.get("/health").status, 200);
  }
  for (const Client* client : {&tokens, &vectors, &list}) EXPECT_FALSE(has_answer(*client));
  brake.release();
  EXPECT_EQ(tokens.read_response().status, 200);
  EXPECT_EQ(vectors.read_response().status, 200);
  const ClientResponse listed = list.read_response();
  EXPECT_EQ(listed.status, 200) << listed.body;
  const auto json = parse_json(listed.body);
  ASSERT_TRUE(json);
  EXPECT_GE((*json)["choices"][0]["logprobs"]["content"].size(), 100u);
}

TEST_F(HostileServer, TokenizedAnswersAreBounded) {
  server_.start();
  std::string text;
  for (int i = 0; i < 140'000; ++i) text += "a ";
  const ClientResponse pieces = server_.post("/tokenize", R"({"with_pieces":true,"content":")" + text + "\"}");
  EXPECT_EQ(pieces.status, 400);
  EXPECT_NE(pieces.body.find("131072"), std::string::npos) << pieces.body;
  const ClientResponse ids = server_.post("/tokenize", R"({"content":")" + text + "\"}");
  EXPECT_EQ(ids.status, 200);
  const auto json = parse_json(ids.body);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["tokens"].size(), (*json)["count"].get<size_t>());
  EXPECT_GT((*json)["tokens"].size(), 131'072u);
}

TEST_F(HostileServer, BodiesWithTooManyValuesAreRefused) {
  server_.start();
  std::string values(4'400'000, ',');
  for (size_t i = 0; i < values.size(); i += 2) values[i] = '1';
  const ClientResponse response = server_.post("/v1/completions", "{\"prompt\":[" + values + "1]}");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("2000000 values"), std::string::npos) << response.body.substr(0, 200);
}

// Streams that nobody reads give their places to those who wait for one.
TEST_F(HostileServer, ReadersThatStandStillDoNotHoldUpOthers) {
  server_.engine.max_running = 4;
  server_.start();
  constexpr int kUnread = 3;
  constexpr int kTokens = 900;
  constexpr int kStepsToFill = 450;  // what two systems keep of a stream on its way
  constexpr int kMoreSteps = 350;    // together fewer than the answers have tokens
  auto brake = std::make_unique<EngineBrake>(*server_.service);
  std::vector<std::unique_ptr<Client>> unread;
  for (int i = 0; i < kUnread; ++i) {
    unread.push_back(std::make_unique<Client>(server_.port(), 4096));
    unread.back()->send(post_text(
        "/v1/chat/completions",
        endless(R"("stream":true,"logprobs":true,"top_logprobs":5,"max_tokens":)" + std::to_string(kTokens))));
  }
  brake->step_until([&] { return server_.service->engine().stats().running == 1 + kUnread; });
  Client waiting(server_.port());
  waiting.send(post_text("/v1/chat/completions", chat_body(R"("max_tokens":3)")));
  while (server_.service->engine().stats().queued == 0) std::this_thread::yield();
  for (int i = 0; i < kStepsToFill; ++i) brake->step();
  for (int i = 0; i < kMoreSteps && !has_answer(waiting); ++i) {
    brake->step();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  ASSERT_TRUE(has_answer(waiting)) << "it waits for the end of what nobody reads";
  EXPECT_EQ(waiting.read_response().status, 200);
  brake.reset();
  int given_up = 0;
  for (auto& client : unread) {
    EXPECT_TRUE(client->read_until("\r\n0\r\n\r\n"));
    given_up += client->received().find("not_read") != std::string::npos;
  }
  EXPECT_EQ(given_up, 1) << "as many as waited";
}

TEST_F(HostileServer, MutatedBodiesGetAnswersOrReasons) {
  server_.engine.context_length = 64;
  server_.start();
  const std::string fields = R"("max_tokens":2,"temperature":0.5,"stop":["x"],"logit_bias":{"3":1.5},"seed":1)";
  const std::pair<const char*, std::string> originals[] = {
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],)" + fields + "}"},
      {"/v1/completions", R"({"prompt":["Hi","Ho"],"n":1,"echo":true,)" + fields + "}"},
      {"/v1/messages", R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"system":"S","max_tokens":2})"},
      {"/v1/responses", R"({"input":"Hi","max_output_tokens":2,"text":{"format":{"type":"text"}}})"},
      {"/tokenize", R"({"content":"Hi \u00e9","with_pieces":true})"},
      {"/v1/embeddings", R"({"input":["Hi",[1,2]],"encoding_format":"float"})"},
  };
  std::mt19937 random(5);
  Client client(server_.port());
  for (int round = 0; round < 400; ++round) {
    const auto& [path, original] = originals[static_cast<size_t>(round) % std::size(originals)];
    std::string body = original;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % body.size();
      switch (random() % 4) {
        case 0: body[at] = static_cast<char>(random()); break;
        case 1: body.erase(at, 1 + random() % 4); break;
        case 2: body.insert(at, body.substr(random() % body.size(), random() % 12)); break;
        default: body[at] = "0123456789[]{}\",:-"[random() % 18]; break;
      }
      if (body.empty()) body = "{";
    }
    const ClientResponse response = client.request("POST", path, body);
    EXPECT_TRUE(response.status == 200 || (response.status >= 400 && response.status < 500))
        << path << " " << body << " " << response.status << " " << response.body;
    EXPECT_TRUE(parse_json(response.body) || response.body.rfind("data:", 0) == 0 ||
                response.body.rfind("event:", 0) == 0)
        << response.body;
  }
}

TEST(WithoutFolders, NamesFilesAndNotWhereTheyAre) {
  EXPECT_EQ(without_folders("/srv/models/tone.gguf: expected a magic"), "tone.gguf: expected a magic");
  EXPECT_EQ(without_folders("cannot read '/home/a b/x.engram': no"), "cannot read 'x.engram': no");
  EXPECT_EQ(without_folders("tables/users/u.engram: no source"), "u.engram: no source");
  EXPECT_EQ(without_folders("filesystem error: status [/var/lib/x]"), "filesystem error: status [x]");
  EXPECT_EQ(without_folders("expected a/b or /v1, found 3/4"), "expected a/b or /v1, found 3/4");
  EXPECT_EQ(without_folders(""), "");
}

}  // namespace
}  // namespace chimere::server
