// tracing_test.cpp  Spans of requests, as a collector gets them, and collectors that do not behave.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "server/server_for_test.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/request_spans.h"
#include "server/tracing/tracer.h"
#include "web/server_for_test.h"

namespace chimere::server {
namespace tracing_test {

using std::chrono::milliseconds;
using web::fixture::Asked;
using web::fixture::Peer;
using web::fixture::TestServer;

constexpr const char* kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// Keeps what it is sent; what it answers may be chosen.
class Collector {
 public:
  explicit Collector(std::function<void(Peer&)> answer = [](Peer& peer) { peer.answer("application/json", "{}"); })
      : server_([this, answer](const Asked& asked, Peer& peer) {
          {
            std::lock_guard lock(mutex_);
            asked_.push_back(asked);
          }
          answer(peer);
          changed_.notify_all();
        }) {}

  std::string url() const { return server_.url("/v1/traces"); }
  std::vector<Asked> wait_for(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return asked_.size() >= n; });
    return asked_;
  }
  // All spans that came, once there are `n`.
  std::vector<Json> spans(size_t n) {
    std::vector<Json> found;
    for (size_t asked = 1; found.size() < n; ++asked) {
      const auto all = wait_for(asked);
      if (all.size() < asked) return found;
      found.clear();
      for (const Asked& one : all) {
        const auto json = parse_json(one.body);
        EXPECT_TRUE(json) << one.body;
        if (!json) return found;
        for (const Json& span : (*json)["resourceSpans"][0]["scopeSpans"][0]["spans"]) found.push_back(span);
      }
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Asked> asked_;
  TestServer server_;
};

TracerConfig quick_config(const std::string& url) {
  TracerConfig config;
  config.url = url;
  config.version = "1.2.3";
  config.gather = milliseconds(10);
  config.first_pause = milliseconds(10);
  config.longest_pause = milliseconds(20);
  return config;
}

Span some_span(const std::string& name) {
  Span span;
  span.trace = new_trace_id();
  span.id = new_span_id();
  span.name = name;
  span.begin_ns = 1'700'000'000'000'000'000;
  span.end_ns = span.begin_ns + 5;
  return span;
}

// "key" of a span's attributes as text; "-" where it has none.
std::string value_of(const Json& span, const std::string& key) {
  for (const Json& attribute : span["attributes"]) {
    if (attribute["key"] != key) continue;
    const Json& value = attribute["value"].begin().value();
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  return "-";
}

template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
  return condition();
}

TEST(Tracing, ReadsTraceparents) {
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(hex_text(parent->trace), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(hex_text(parent->span), "00f067aa0ba902b7");
  EXPECT_TRUE(parent->is_sampled);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02")->is_sampled);
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later"));
  for (const char* wrong : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
                            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
  }
}

TEST(Tracing, FindsTheAddressOfTraces) {
  EXPECT_EQ(*traces_url("http://collector:4318"), "http://collector:4318/v1/traces");
  EXPECT_EQ(*traces_url("http://collector:4318/"), "http://collector:4318/v1/traces");
  EXPECT_EQ(*traces_url("https://host/otlp"), "https://host/otlp/v1/traces");
  EXPECT_EQ(*traces_url("https://host/otlp/v1/traces"), "https://host/otlp/v1/traces");
  for (const char* wrong : {"collector:4318", "grpc://collector:4317", "http://host/?x=1", "http://user:word@host/"}) {
    EXPECT_FALSE(traces_url(wrong)) << wrong;
  }
  const auto headers = parse_trace_headers("api-key=se%20cret, other = x=y");
  ASSERT_TRUE(headers);
  EXPECT_EQ(*headers, (std::vector<std::pair<std::string, std::string>>{{"api-key", "se cret"}, {"other", "x=y"}}));
  EXPECT_TRUE(parse_trace_headers("")->empty());
  for (const char* wrong : {"api-key", "=x", "a=%2", "a=%zz"}) EXPECT_FALSE(parse_trace_headers(wrong)) << wrong;
}

TEST(Tracing, SendsBatchesWithTheirHeaders) {
  Collector collector;
  TracerConfig config = quick_config(collector.url());
  config.headers = {{"api-key", "secret"}};
  config.service = "named";
  Tracer tracer(config);
  Span failed = some_span("two");
  failed.error = "why";
  failed.attributes = {{"s", std::string("\xff text")}, {"i", int64_t{1} << 60}, {"d", 0.5}, {"b", true}};
  tracer.add({some_span("one"), failed});
  const auto asked = collector.wait_for(1);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].method, "POST");
  EXPECT_EQ(asked[0].target, "/v1/traces");
  EXPECT_NE(asked[0].head.find("Content-Type: application/json\r\n"), std::string::npos);
  EXPECT_NE(asked[0].head.find("api-key: secret\r\n"), std::string::npos);
  const auto json = parse_json(asked[0].body);
  ASSERT_TRUE(json) << asked[0].body;
  const Json& resource = (*json)["resourceSpans"][0];
  EXPECT_EQ(value_of(resource["resource"], "service.name"), "named");
  EXPECT_EQ(value_of(resource["resource"], "service.version"), "1.2.3");
  const Json& spans = resource["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1700000000000000000");
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
  EXPECT_FALSE(spans[0].contains("status"));
  EXPECT_EQ(spans[1]["status"]["code"], 2);
  EXPECT_EQ(spans[1]["status"]["message"], "why");
  EXPECT_EQ(value_of(spans[1], "s"), "\xef\xbf\xbd text");
  EXPECT_EQ(value_of(spans[1], "i"), "1152921504606846976");
  EXPECT_EQ(value_of(spans[1], "d"), "0.5");
  EXPECT_EQ(value_of(spans[1], "b"), "true");
  EXPECT_TRUE(comes_true([&] { return tracer.counts().sent == 2; }));
  EXPECT_EQ(tracer.counts().dropped, 0u);
}

TEST(Tracing, TriesAgainWhatMayWorkLater) {
  std::atomic<int> n{0};
  Collector collector(
      [&](Peer& peer) { peer.answer("application/json", "{}", "", ++n <= 2 ? "503 Service Unavailable" : "200 OK"); });
  Tracer tracer(quick_config(collector.url()));
  tracer.add({some_span("one")});
  EXPECT_TRUE(comes_true([&] { return tracer.counts().sent == 1; }));
  EXPECT_EQ(tracer.counts().failures, 2u);
  EXPECT_EQ(tracer.counts().dropped, 0u);
}

TEST(Tracing, DropsWhatIsRefused) {
  Collector collector([](Peer& peer) { peer.answer("text/plain", "no", "", "400 Bad Request"); });
  Tracer tracer(quick_config(collector.url()));
  tracer.add({some_span("one"), some_span("two")});
  EXPECT_TRUE(comes_true([&] { return tracer.counts().dropped == 2; }));
  EXPECT_EQ(collector.wait_for(1).size(), 1u);
  Collector half([](Peer& peer) { peer.answer("application/json", R"({"partialSuccess":{"rejectedSpans":"1"}})"); });
  Tracer other(quick_config(half.url()));
  other.add({some_span("one"), some_span("two")});
  EXPECT_TRUE(comes_true([&] { return other.counts().dropped == 1; }));
  EXPECT_EQ(other.counts().sent, 1u);
}

// Nobody listens at port 1.
TEST(Tracing, ADeadCollectorCostsALimitedQueue) {
  TracerConfig config = quick_config("http://127.0.0.1:1/v1/traces");
  config.max_queued = 10;
  config.max_batch = 4;
  Tracer tracer(config);
  for (int i = 0; i < 100; ++i) tracer.add({some_span("a"), some_span("b"), some_span("c")});
  EXPECT_EQ(tracer.counts().dropped, 300u - 9);
  EXPECT_TRUE(comes_true([&] { return tracer.counts().failures > 0; }));
  EXPECT_EQ(tracer.counts().sent, 0u);
}

// One that takes a connection and says nothing must not hold up the end.
TEST(Tracing, ASilentCollectorDoesNotHoldUpTheEnd) {
  std::atomic<bool> is_over{false};
  std::atomic<bool> was_asked{false};
  TestServer silent([&](const Asked&, Peer& peer) {
    was_asked = true;
    while (!is_over && !peer.is_gone()) std::this_thread::sleep_for(milliseconds(5));
  });
  {
    Tracer tracer(quick_config(silent.url("/v1/traces")));
    tracer.add({some_span("one")});
    EXPECT_TRUE(comes_true([&] { return was_asked.load(); }));
  }
  is_over = true;
}

TEST(Tracing, WhatWaitsIsSentAtTheEnd) {
  Collector collector;
  {
    TracerConfig config = quick_config(collector.url());
    config.gather = std::chrono::seconds(3600);
    Tracer tracer(config);
    tracer.add({some_span("one")});
  }
  EXPECT_EQ(collector.spans(1).size(), 1u);
}

TEST(Tracing, StepsOfARunAreSpansWithoutItsWords) {
  using orchestrator::StepReport;
  TracedRequest request;
  request.trace = new_trace_id();
  request.method = "POST";
  request.status = 200;
  request.begin = TracedRequest::Clock::now() - std::chrono::seconds(10);
  request.end = request.begin + std::chrono::seconds(9);
  StepReport route, tool;
  route.stage = "route";
  route.state = StepReport::State::done;
  route.about = "default: a word of the question";
  route.detail = R"({"stage":"rules","confidence":0.5,"n":3,"sure":true,"list":[1]})";
  route.began = request.begin + std::chrono::seconds(1);
  route.ms = 500;
  tool.index = 1;
  tool.stage = "tool";
  tool.state = StepReport::State::failed;
  tool.about = "no such page";
  tool.began = request.begin + std::chrono::seconds(2);
  tool.ms = 3000;
  engine::Usage usage;
  usage.prompt_tokens = 7;
  usage.decode_seconds = 1;
  tool.answers = {{tool.began + std::chrono::seconds(3), usage}};
  request.runs = {{"odo-1", "default", "fast", {route, tool}}};
  for (const bool with_texts : {false, true}) {
    const auto json = parse_json(otlp_json(request_spans(request, with_texts), {}, ""));
    ASSERT_TRUE(json);
    std::map<std::string, Json> spans;
    for (const Json& span : (*json)["resourceSpans"][0]["scopeSpans"][0]["spans"]) spans[span["name"]] = span;
    ASSERT_EQ(spans.size(), 6u);  // the request, two steps, queue, prompt, decode
    EXPECT_EQ(spans["odo.route"]["parentSpanId"], spans["POST"]["spanId"]);
    EXPECT_EQ(value_of(spans["POST"], "chimere.odo.mode"), "fast");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.state"), "done");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.detail.confidence"), "0.5");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.detail.n"), "3");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.detail.sure"), "true");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.about"), with_texts ? route.about : "-");
    EXPECT_EQ(value_of(spans["odo.route"], "chimere.odo.detail.stage"), with_texts ? "rules" : "-");
    EXPECT_EQ(spans["odo.tool"]["status"]["code"], 2);
    EXPECT_EQ(spans["odo.tool"]["status"].contains("message"), with_texts);
    EXPECT_EQ(spans["decode"]["parentSpanId"], spans["odo.tool"]["spanId"]);
    const auto ns = [](const Json& time) { return std::stoll(time.get<std::string>()); };
    EXPECT_EQ(ns(spans["odo.route"]["endTimeUnixNano"]) - ns(spans["odo.route"]["startTimeUnixNano"]), 500'000'000);
    EXPECT_EQ(ns(spans["decode"]["endTimeUnixNano"]) - ns(spans["decode"]["startTimeUnixNano"]), 1'000'000'000);
    EXPECT_EQ(ns(spans["decode"]["endTimeUnixNano"]), ns(spans["odo.tool"]["endTimeUnixNano"]));
  }
}

TEST(Tracing, RequestsOfAServerAreTraced) {
  Collector collector;
  ServerForTest server;
  server.config.tracer = std::make_shared<Tracer>(quick_config(collector.url()));
  server.start();
  const std::string path = "/v1/chat/completions";
  ASSERT_EQ(server.get("/health").status, 200);  // polled: no span
  const std::string unsampled = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n";
  ASSERT_EQ(server.post(path, chat_body(R"("max_tokens":2)"), unsampled).status, 200);
  const std::string headers = std::string("traceparent: ") + kParent + "\r\nX-Request-Id: mine-1\r\n";
  ASSERT_EQ(server.post(path, chat_body(R"("max_tokens":5,"n":2)"), headers).status, 200);
  ASSERT_EQ(server.get("/no/such/path").status, 404);
  const std::vector<Json> spans = collector.spans(8);
  ASSERT_EQ(spans.size(), 8u);
  const Json& request = spans[0];
  EXPECT_EQ(request["name"], "POST /v1/chat/completions");
  EXPECT_EQ(request["kind"], 2);
  EXPECT_EQ(request["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(request["parentSpanId"], "00f067aa0ba902b7");
  EXPECT_EQ(value_of(request, "chimere.request_id"), "mine-1");
  EXPECT_EQ(value_of(request, "http.response.status_code"), "200");
  EXPECT_EQ(value_of(request, "gen_ai.usage.output_tokens"), "10");
  EXPECT_EQ(value_of(request, "chimere.finish"), "length");
  const auto ns = [](const Json& span, const char* end) { return std::stoll(span[end].get<std::string>()); };
  std::map<std::string, int> n_named;
  for (size_t i = 1; i < 7; ++i) {
    ++n_named[spans[i]["name"].get<std::string>()];
    EXPECT_EQ(spans[i]["parentSpanId"], request["spanId"]);
    EXPECT_EQ(spans[i]["traceId"], request["traceId"]);
    EXPECT_GE(ns(spans[i], "startTimeUnixNano"), ns(request, "startTimeUnixNano"));
    EXPECT_LE(ns(spans[i], "endTimeUnixNano"), ns(request, "endTimeUnixNano"));
    EXPECT_LE(ns(spans[i], "startTimeUnixNano"), ns(spans[i], "endTimeUnixNano"));
  }
  EXPECT_EQ(n_named, (std::map<std::string, int>{{"queue", 2}, {"prompt", 2}, {"decode", 2}}));
  EXPECT_EQ(value_of(spans[7], "http.response.status_code"), "404");
  EXPECT_NE(spans[7]["traceId"], request["traceId"]);
  EXPECT_TRUE(comes_true([&] {
    return server.get("/metrics").body.find("chimere_trace_spans_total{result=\"sent\"} 8\n") != std::string::npos;
  }));
}

TEST(Tracing, ADeadCollectorFailsNoRequest) {
  ServerForTest server;
  server.config.tracer = std::make_shared<Tracer>(quick_config("http://127.0.0.1:1/v1/traces"));
  server.start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.post("/v1/chat/completions", chat_body(R"("max_tokens":2)")).status, 200);
  }
  EXPECT_TRUE(comes_true([&] { return server.config.tracer->counts().failures > 0; }));
  EXPECT_EQ(server.get("/health").status, 200);
}

}  // namespace tracing_test
}  // namespace chimere::server
