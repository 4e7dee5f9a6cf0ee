// wishes_test.cpp  Whose word counts, as a table: every setting, every combination of those who speak.
#include "odo/wishes.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using orchestrator::ThinkingMode;

// One setting: its field in a request, and how a value (1, 2, 3 or 0 for the profile's) is put in and read out.
struct Setting {
  const char* field;
  void (*wish)(Wishes&, int);
  void (*set)(ChatRequest&, int);
  int (*read)(const ChatRequest&);
};

const Setting kSettings[] = {
    {"temperature", [](Wishes& w, int v) { w.temperature = static_cast<float>(v); },
     [](ChatRequest& r, int v) { r.sampling.temperature = static_cast<float>(v); },
     [](const ChatRequest& r) { return static_cast<int>(r.sampling.temperature); }},
    {"top_p", [](Wishes& w, int v) { w.top_p = static_cast<float>(v); },
     [](ChatRequest& r, int v) { r.sampling.top_p = static_cast<float>(v); },
     [](const ChatRequest& r) { return static_cast<int>(r.sampling.top_p); }},
    {"top_k", [](Wishes& w, int v) { w.top_k = v; }, [](ChatRequest& r, int v) { r.sampling.top_k = v; },
     [](const ChatRequest& r) { return static_cast<int>(r.sampling.top_k); }},
    {"min_p", [](Wishes& w, int v) { w.min_p = static_cast<float>(v); },
     [](ChatRequest& r, int v) { r.sampling.min_p = static_cast<float>(v); },
     [](const ChatRequest& r) { return static_cast<int>(r.sampling.min_p); }},
    {"presence_penalty", [](Wishes& w, int v) { w.presence_penalty = static_cast<float>(v); },
     [](ChatRequest& r, int v) { r.sampling.presence_penalty = static_cast<float>(v); },
     [](const ChatRequest& r) { return static_cast<int>(r.sampling.presence_penalty); }},
    {"max_tokens", [](Wishes& w, int v) { w.max_tokens = v; }, [](ChatRequest& r, int v) { r.max_tokens = v; },
     [](const ChatRequest& r) { return static_cast<int>(r.max_tokens); }},
    {"max_completion_tokens", [](Wishes& w, int v) { w.max_tokens = v; },
     [](ChatRequest& r, int v) { r.max_tokens = v; },
     [](const ChatRequest& r) { return static_cast<int>(r.max_tokens); }},
    {"thinking_budget", [](Wishes& w, int v) { w.thinking_limit = v; },
     [](ChatRequest& r, int v) { r.thinking_limit = v; },
     [](const ChatRequest& r) { return static_cast<int>(r.thinking_limit); }},
    {"lora", [](Wishes& w, int v) { w.adapters = std::vector<orchestrator::AdapterUse>(static_cast<size_t>(v)); },
     [](ChatRequest& r, int v) { r.adapters.resize(static_cast<size_t>(v)); },
     [](const ChatRequest& r) { return static_cast<int>(r.adapters.size()); }},
    {"engram", [](Wishes& w, int v) { w.tables = std::vector<orchestrator::MemoryUse::Named>(static_cast<size_t>(v)); },
     [](ChatRequest& r, int v) { r.memory.tables.resize(static_cast<size_t>(v)); },
     [](const ChatRequest& r) { return static_cast<int>(r.memory.tables.size()); }},
};

TEST(WishesTest, RequestBeforeRouteBeforeModeBeforeProfile) {
  for (const Setting& setting : kSettings) {
    for (int who = 0; who < 8; ++who) {
      const bool asked = who & 4, by_route = who & 2, by_mode = who & 1;
      ChatRequest request;
      setting.set(request, asked ? 3 : 0);  // 0: the profile's
      if (asked) request.given = {setting.field};
      Wishes route, mode;
      if (by_route) setting.wish(route, 2);
      if (by_mode) setting.wish(mode, 1);
      wishes_of(request).over(route).over(mode).apply_to(request);
      const int expected = asked ? 3 : by_route ? 2 : by_mode ? 1 : 0;
      EXPECT_EQ(setting.read(request), expected) << setting.field << ", spoken by " << who;
    }
  }
}

// A value that a caller gives counts also where it is the default.
TEST(WishesTest, TheProfilesOwnValueCanBeAskedFor) {
  ChatRequest request;
  const float profile = request.sampling.temperature;
  request.given = {"temperature"};
  Wishes route;
  route.temperature = profile + 0.5f;
  wishes_of(request).over(route).apply_to(request);
  EXPECT_EQ(request.sampling.temperature, profile);
}

TEST(WishesTest, ThoughtsByEveryProtocolsWord) {
  for (const char* field : {"enable_thinking", "chat_template_kwargs", "reasoning_effort", "reasoning", "think",
                            "thinking", "thinking_budget"}) {
    ChatRequest request;
    request.enable_thinking = false;
    request.given = {field};
    Wishes route;
    route.thinking = true;
    wishes_of(request).over(route).apply_to(request);
    EXPECT_EQ(request.enable_thinking, false) << field;
  }
  ChatRequest silent;
  Wishes route;
  route.thinking = true;
  wishes_of(silent).over(route).apply_to(silent);
  EXPECT_EQ(silent.enable_thinking, true);
}

TEST(WishesTest, ModesHaveTheNamesOfThinkingControl) {
  EXPECT_EQ(mode_names(), "fast, quality, ultra");
  for (const std::string& name : list_of_modes()) {
    ASSERT_TRUE(mode_named(name));
    EXPECT_EQ(mode_named(name)->wishes.thinking_mode, orchestrator::thinking_mode(name));
  }
  EXPECT_FALSE(mode_named("slow"));
  EXPECT_FALSE(mode_named(""));
}

}  // namespace
}  // namespace chimere::odo
