// clients_test.cpp  What programs that people run ask of a server beside an answer: names of models, errors they
// understand, pages of other origins, answers that are kept.
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

const std::string kShort = R"({"messages":[{"role":"user","content":"Hello"}],"seed":1,"max_tokens":2)";

Json body_of(const ClientResponse& response) {
  auto json = parse_json(response.body);
  EXPECT_TRUE(json) << response.status << " " << response.body;
  return json ? *json : Json();
}

TEST(ModelNames, PatternsStandForWhatBeginsOrEndsSo) {
  EXPECT_TRUE(matches_pattern("claude-*", "claude-opus-4"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches_pattern("gpt", "gpt"));
  EXPECT_FALSE(matches_pattern("gpt", "gpt-5"));
  EXPECT_FALSE(matches_pattern("claude-*", "claude"));
  EXPECT_FALSE(matches_pattern("a*b", "aXc"));
  // Linear work, whatever the pattern.
  EXPECT_FALSE(matches_pattern("*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(ModelNames, AliasesAreListsOfPlainNames) {
  const auto names = parse_aliases({"gpt-4o,claude-*", "x"});
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"gpt-4o", "claude-*", "x"}));
  for (const char* wrong : {"", "a,", "a b", "a,,b", "a\nb"}) EXPECT_FALSE(parse_aliases({wrong})) << wrong;
}

TEST(ModelNames, TheFirstPlainAliasIsShown) {
  ModelNames names = named("nano", "", {"gpt-*", "small", "tiny"});
  names.is_strict = true;
  EXPECT_EQ(names.chat, "small");
  for (const char* known : {"nano", "small", "tiny", "gpt-4"}) EXPECT_FALSE(names.refuse_to_chat(known)) << known;
  EXPECT_TRUE(names.refuse_to_chat("other"));
}

TEST(ModelNames, ANameOfTheOtherModelIsRefused) {
  ModelNames names = named("nano", "bge", {"gpt-*"});
  EXPECT_EQ(names.chat, "nano");
  EXPECT_FALSE(names.refuse_to_chat(""));
  EXPECT_FALSE(names.refuse_to_chat("claude-x"));
  EXPECT_FALSE(names.refuse_to_embed("text-embedding-3"));
  const auto error = names.refuse_to_chat("bge");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, 404);
  for (const char* name : {"'nano'", "'bge'", "'gpt-*'"}) {
    EXPECT_NE(error->message.find(name), std::string::npos) << error->message;
  }
  EXPECT_TRUE(names.refuse_to_embed("nano"));
  names.is_strict = true;
  EXPECT_FALSE(names.refuse_to_chat("nano"));
  EXPECT_FALSE(names.refuse_to_chat("gpt-5"));
  EXPECT_TRUE(names.refuse_to_chat("claude-x"));
  EXPECT_TRUE(names.refuse_to_embed("text-embedding-3"));
  EXPECT_FALSE(names.refuse_to_embed("bge"));
}

TEST(ModelNames, BesideTheEmbedderInTheBoxTheModelEmbedsByItsOwnNames) {
  ModelNames names = named("nano", "box", {"gpt-*"});
  names.chat_embeds = true;
  for (const char* name : {"nano", "gpt-5"}) {
    EXPECT_TRUE(names.embeds_by_chat(name)) << name;
    EXPECT_FALSE(names.refuse_to_embed(name)) << name;
  }
  for (const char* name : {"", "box", "text-embedding-3"}) {
    EXPECT_FALSE(names.embeds_by_chat(name)) << name;
    EXPECT_FALSE(names.refuse_to_embed(name)) << name;
  }
  EXPECT_TRUE(names.refuse_to_chat("box"));
  names.is_strict = true;
  EXPECT_FALSE(names.refuse_to_embed("nano"));
  EXPECT_TRUE(names.refuse_to_embed("text-embedding-3"));
}

TEST(ClientPrograms, AnyNameIsAnsweredAndTheAnswerSaysByWhom) {
  ServerForTest server;
  server.start();
  const std::string name = server.service->model_info().name;
  const std::string model = R"(,"model":"claude-x"})";
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    const ClientResponse response = server.post(path, kShort + model);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(body_of(response)["model"], name) << path;
    EXPECT_EQ(response.header("X-Chimere-Model"), model_header(name)) << path;
  }
  for (const auto& [path, field] : {std::pair("/v1/completions", "prompt"), std::pair("/v1/responses", "input")}) {
    const ClientResponse response =
        server.post(path, "{\"" + std::string(field) + R"(":"Hello","max_tokens":2,"max_output_tokens":2)" + model);
    EXPECT_EQ(body_of(response)["model"], name) << path;
    EXPECT_EQ(response.header("X-Chimere-Model"), model_header(name)) << path;
  }
  const ClientResponse streamed = server.post("/v1/chat/completions", kShort + R"(,"stream":true,"model":"gpt-9"})");
  EXPECT_EQ(streamed.header("X-Chimere-Model"), model_header(name));
}

TEST(ClientPrograms, AStrictServerAnswersToItsNamesAlone) {
  ServerForTest server;
  server.config.strict_model_name = true;
  server.config.aliases = {"claude-*,gpt-4o"};
  server.start();
  const std::string name = server.service->model_info().name;
  const auto status = [&](const std::string& path, const std::string& model) {
    return server.post(path, kShort + R"(,"model":")" + model + "\"}");
  };
  for (const std::string& known : {name, std::string("claude-opus"), std::string("gpt-4o")}) {
    EXPECT_EQ(status("/v1/chat/completions", known).status, 200) << known;
  }
  for (const char* alias : {"claude-opus", "gpt-4o"})
    EXPECT_EQ(server.get_json("/v1/models/" + std::string(alias))["id"], "gpt-4o");
  EXPECT_EQ(server.post("/v1/chat/completions", kShort + "}").status, 200);
  EXPECT_EQ(server.get_json("/v1/models")["data"][0]["aliases"], Json::array({"claude-*", "gpt-4o"}));
  EXPECT_EQ(server.get("/v1/models/other").status, 404);
  const ClientResponse refused = status("/v1/chat/completions", "other");
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(body_of(refused)["error"]["code"], "model_not_found");
  EXPECT_NE(body_of(refused)["error"]["message"].get<std::string>().find("'claude-*'"), std::string::npos);
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const ClientResponse anthropic = status(path, "other");
    EXPECT_EQ(anthropic.status, 404) << path;
    EXPECT_EQ(body_of(anthropic)["error"]["type"], "not_found_error") << path;
  }
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"a","model":"other"})").status, 404);
  EXPECT_EQ(server.post("/v1/responses", R"({"input":"a","model":"other"})").status, 404);
  EXPECT_EQ(server.post("/v1/embeddings", R"({"input":"a","model":"other"})").status, 404);
}

TEST(ClientPrograms, APromptThatIsTooLongSaysSoInEachApi) {
  ServerForTest server;
  server.start();
  std::string words;
  for (int i = 0; i < 3000; ++i) words += "word ";
  const std::string messages = R"({"messages":[{"role":"user","content":")" + words + R"("}],"max_tokens":2)";
  for (const char* stream : {"}", R"(,"stream":true})"}) {
    const ClientResponse chat = server.post("/v1/chat/completions", messages + stream);
    EXPECT_EQ(chat.status, 400);
    const Json error = body_of(chat)["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["param"], "messages");
    EXPECT_EQ(error["n_ctx"], 1000);
    EXPECT_GT(error["n_prompt_tokens"].get<int>(), 1000);
    EXPECT_EQ(error["message"].get<std::string>().find("This model's maximum context length is 1000 tokens. However, "
                                                       "you requested " +
                                                       std::to_string(error["n_prompt_tokens"].get<int>())),
              0u)
        << error["message"];
    const ClientResponse anthropic = server.post("/v1/messages", messages + stream);
    EXPECT_EQ(anthropic.status, 400);
    EXPECT_EQ(body_of(anthropic)["error"]["message"].get<std::string>().find("prompt is too long: "), 0u);
    EXPECT_EQ(body_of(anthropic)["error"]["type"], "invalid_request_error");
  }
  const Json of_completion = body_of(server.post("/v1/completions", R"({"prompt":")" + words + "\"}"))["error"];
  EXPECT_EQ(of_completion["code"], "context_length_exceeded");
  EXPECT_EQ(of_completion["param"], "prompt");
  const std::string input = R"({"input":")" + words + "\"";
  const ClientResponse of_response = server.post("/v1/responses", input + "}");
  EXPECT_EQ(of_response.status, 400);
  EXPECT_EQ(body_of(of_response)["error"]["param"], "input");
  const ClientResponse streamed = server.post("/v1/responses", input + R"(,"stream":true})");
  EXPECT_EQ(streamed.status, 200);
  EXPECT_NE(streamed.body.find("event: response.failed"), std::string::npos) << streamed.body;
  EXPECT_NE(streamed.body.find(R"("code":"context_length_exceeded")"), std::string::npos) << streamed.body;
}

TEST(ClientPrograms, RefusalsOfTheDoorHaveTheShapeOfTheirApi) {
  ServerForTest server;
  ASSERT_TRUE(server.config.keys.add("k", "secret"));
  server.config.rate_limit = 1;
  server.start();
  const std::string key = "x-api-key: secret\r\n";
  const ClientResponse unknown = server.get("/v1/messages/nowhere", key);
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(body_of(unknown)["error"]["type"], "not_found_error");
  EXPECT_EQ(server.post("/v1/messages", kShort + "}", key).status, 200);
  const ClientResponse limited = server.post("/v1/messages", kShort + "}", key);
  EXPECT_EQ(limited.status, 429);
  EXPECT_EQ(body_of(limited)["type"], "error");
  EXPECT_EQ(body_of(limited)["error"]["type"], "rate_limit_error");
  EXPECT_GT(std::stoi(limited.header("Retry-After")), 1);
  EXPECT_EQ(body_of(server.post("/v1/chat/completions", kShort + "}", key))["error"]["code"], "rate_limit_exceeded");
  const ClientResponse stranger = server.post("/v1/messages", kShort + "}", "x-api-key: other\r\n");
  EXPECT_EQ(stranger.status, 401);
  EXPECT_EQ(body_of(stranger)["error"]["type"], "authentication_error");
}

TEST(ClientPrograms, SystemMessagesInTheMiddleAreAnswered) {
  ServerForTest server;
  server.start();
  const std::string messages = R"({"system":"Be brief.","max_tokens":2,"messages":[{"role":"user","content":"Hello"},
    {"role":"system","content":"A tool was added."}]})";
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const ClientResponse response = server.post(path, messages);
    EXPECT_EQ(response.status, 200) << path << " " << response.body;
  }
  EXPECT_EQ(server
                .post("/v1/chat/completions", R"({"max_tokens":2,"messages":[{"role":"user","content":"Hello"},
    {"role":"assistant","content":"Hi"},{"role":"developer","content":"Be brief."},{"role":"user","content":"Go on"}]})")
                .status,
            200);
}

TEST(ClientPrograms, ForeignHostsAreToldHowToBeLetIn) {
  const auto ask = [](const ServerForTest& server, const std::string& host) {
    Client client(server.port());
    client.send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.read_response();
  };
  ServerForTest server;
  server.start();
  const ClientResponse refused = ask(server, "host.docker.internal:8081");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("--allow-host host.docker.internal"), std::string::npos) << refused.body;
  EXPECT_EQ(ask(server, "[::1]:80").status, 200);
  EXPECT_EQ(ask(server, "[::1]x").status, 403);
  server.stop();
  ServerForTest open;
  open.config.hosts = {"host.docker.internal"};
  open.start();
  EXPECT_EQ(ask(open, "HOST.docker.internal:8081").status, 200);
  EXPECT_EQ(ask(open, "evil.example").status, 403);
  EXPECT_EQ(ask(open, "host.docker.internal.evil.example").status, 403);
  for (const char* wrong : {"", "a b", "http://x", "x:80"}) EXPECT_FALSE(check_hosts({wrong})) << wrong;
}

TEST(ClientPrograms, PagesOfAllowedOriginsMayUseTheServer) {
  ServerForTest server;
  server.config.origins = {"https://app.example,http://localhost:3000"};
  server.start();
  const std::string origin = "Origin: https://app.example\r\n";
  const ClientResponse leave = Client(server.port())
                                   .request("OPTIONS", "/v1/chat/completions", {},
                                            origin +
                                                "Access-Control-Request-Method: POST\r\n"
                                                "Access-Control-Request-Headers: authorization,content-type\r\n"
                                                "Access-Control-Request-Private-Network: true\r\n");
  EXPECT_EQ(leave.status, 200);
  EXPECT_EQ(leave.header("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(leave.header("Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(leave.header("Access-Control-Allow-Headers"), "authorization,content-type");
  EXPECT_EQ(leave.header("Access-Control-Allow-Private-Network"), "true");
  EXPECT_EQ(leave.header("Access-Control-Allow-Credentials"), "");
  EXPECT_EQ(leave.header("Vary"), "Origin");
  const ClientResponse answer = server.post("/v1/chat/completions", kShort + "}", origin);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "https://app.example");
  for (const char* name : {"X-Chimere-Model", "X-Chimere-Ignored", "X-Chimere-Max-Tokens"}) {
    EXPECT_NE(answer.header("Access-Control-Expose-Headers").find(name), std::string::npos) << name;
  }
  // Errors can be read too.
  EXPECT_EQ(server.get("/nowhere", origin).header("Access-Control-Allow-Origin"), "https://app.example");
  for (const char* other : {"https://evil.example", "http://app.example", "https://app.example.evil", "null"}) {
    const std::string foreign = "Origin: " + std::string(other) + "\r\n";
    EXPECT_EQ(server.post("/v1/chat/completions", kShort + "}", foreign).status, 403) << other;
    const ClientResponse refused =
        Client(server.port())
            .request("OPTIONS", "/v1/chat/completions", {}, foreign + "Access-Control-Request-Method: POST\r\n");
    EXPECT_EQ(refused.status, 200) << other;  // and without leave the browser sends nothing
    EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "") << other;
  }
  // A name that was made to point here is still foreign.
  Client rebound(server.port());
  rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n" + origin + "\r\n");
  EXPECT_EQ(rebound.read_response().status, 403);
}

TEST(ClientPrograms, PagesOfThisMachineMayAlwaysAskAndAnyNeedsAKey) {
  ServerForTest server;
  server.start();
  const auto allowed = [&](const char* origin) {
    return server.post("/v1/chat/completions", kShort + "}", "Origin: " + std::string(origin) + "\r\n")
        .header("Access-Control-Allow-Origin");
  };
  for (const char* origin : {"http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080"}) {
    EXPECT_EQ(allowed(origin), origin);
  }
  for (const char* origin : {"http://app.example", "http://localhost.app.example", "http://notlocalhost"}) {
    EXPECT_EQ(allowed(origin), "");
  }
  ServerConfig config;
  config.http.port = 0;
  config.origins = {"*"};
  EXPECT_FALSE(Server::check(config));
  ASSERT_TRUE(config.keys.add("k", "secret"));
  EXPECT_TRUE(Server::check(config));
  for (const char* wrong : {"", "app.example", "https://", "https://app.example/", "null"}) {
    EXPECT_FALSE(Cors::of({wrong})) << wrong;
  }
}

TEST(ClientPrograms, ResponsesAreKeptForTheirKey) {
  ServerForTest server;
  ASSERT_TRUE(server.config.keys.add("ann", "a"));
  ASSERT_TRUE(server.config.keys.add("bob", "b"));
  server.start();
  const std::string ann = "x-api-key: a\r\n", bob = "x-api-key: b\r\n";
  const auto respond = [&](const std::string& fields, const std::string& key) {
    return server.post("/v1/responses", R"({"max_output_tokens":4,"seed":1,)" + fields + "}", key);
  };
  const Json first = body_of(respond(R"("input":"Hello")", ann));
  EXPECT_EQ(first["store"], true);
  const std::string id = first["id"];
  const Json second = body_of(respond(R"("input":"Go on","previous_response_id":")" + id + "\"", ann));
  EXPECT_EQ(second["previous_response_id"], id);
  EXPECT_GT(second["usage"]["input_tokens"].get<int>(), first["usage"]["input_tokens"].get<int>());
  const std::string item = first["output"][0]["id"];
  const std::string reference = R"("input":[{"role":"user","content":"Hello"},{"type":"item_reference","id":")" + item +
                                R"("},{"role":"user","content":"Go on"}])";
  EXPECT_EQ(body_of(respond(reference, ann))["usage"]["input_tokens"], second["usage"]["input_tokens"]);
  EXPECT_EQ(respond(reference, bob).status, 400);
  EXPECT_EQ(body_of(server.get("/v1/responses/" + id, ann)), first);
  // What it was made from: both turns of the second.
  const std::string items_path = "/v1/responses/" + second["id"].get<std::string>() + "/input_items";
  const Json listed = body_of(server.get(items_path + "?order=asc", ann));
  EXPECT_EQ(listed["object"], "list");
  ASSERT_EQ(listed["data"].size(), 3u) << listed;
  EXPECT_EQ(listed["data"][0]["content"][0]["text"], "Hello");
  EXPECT_EQ(listed["data"][1]["id"], item);
  EXPECT_EQ(listed["data"][2]["content"][0]["text"], "Go on");
  const ClientResponse page = server.get(items_path + "?limit=2&include[]=x", ann);
  EXPECT_EQ(page.header("X-Chimere-Ignored"), "include[]");
  EXPECT_EQ(body_of(page)["first_id"], listed["last_id"]);
  EXPECT_EQ(body_of(page)["has_more"], true);
  const std::string last = body_of(page)["last_id"];
  EXPECT_EQ(body_of(server.get(items_path + "?after=" + last, ann))["data"][0], listed["data"][0]);
  EXPECT_EQ(server.get(items_path + "?limit=0", ann).status, 400);
  EXPECT_EQ(server.get(items_path + "?after=nothing", ann).status, 400);
  EXPECT_EQ(server.get(items_path, bob).status, 404);
  EXPECT_EQ(server.get("/v1/responses/" + id, bob).status, 404);
  const auto forget = [&](const std::string& key) {
    return Client(server.port()).request("DELETE", "/v1/responses/" + id, {}, key);
  };
  EXPECT_EQ(forget(bob).status, 404);
  EXPECT_EQ(body_of(forget(ann))["deleted"], true);
  EXPECT_EQ(server.get("/v1/responses/" + id, ann).status, 404);
  const Json unkept = body_of(respond(R"("input":"Hello","store":false)", ann));
  EXPECT_EQ(unkept["store"], false);
  EXPECT_EQ(server.get("/v1/responses/" + unkept["id"].get<std::string>(), ann).status, 404);
  // Of a stream too.
  const ClientResponse streamed = respond(R"("input":"Hello","stream":true)", ann);
  const size_t at = streamed.body.find("\"id\":\"resp_") + 6;
  const std::string streamed_id = streamed.body.substr(at, streamed.body.find('"', at) - at);
  EXPECT_EQ(body_of(server.get("/v1/responses/" + streamed_id, ann))["status"], "incomplete");
}

}  // namespace
}  // namespace chimere::server
