// openai_chat_request_test.cpp  Every field of a chat request: what it sets, what it refuses, what is called ignored.
#include "server/protocols/openai_chat_request.h"

#include <gtest/gtest.h>

#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ToolChoice;

orchestrator::Defaults file_defaults() {
  orchestrator::Defaults defaults;
  defaults.sampling.temperature = 0.6f;
  defaults.sampling.top_k = 20;
  return defaults;
}

// The fields beside one plain user message.
std::variant<ChatCall, ApiError> parse(const std::string& fields) {
  return parse_chat_call(R"({"messages":[{"role":"user","content":"Hi"}])" + (fields.empty() ? "" : "," + fields) + "}",
                         file_defaults());
}

ChatCall accepted(const std::string& fields) {
  auto call = parse(fields);
  if (const ApiError* error = std::get_if<ApiError>(&call)) {
    ADD_FAILURE() << fields << ": " << error->message;
    return {};
  }
  return std::move(std::get<ChatCall>(call));
}

ApiError refused(std::variant<ChatCall, ApiError> call, const std::string& what) {
  if (const ApiError* error = std::get_if<ApiError>(&call)) return *error;
  ADD_FAILURE() << "accepted: " << what;
  return {};
}

void expect_refused(const std::string& fields, const std::string& param) {
  const ApiError error = refused(parse(fields), fields);
  EXPECT_EQ(error.status, 400) << fields;
  EXPECT_EQ(error.param, param) << fields << ": " << error.message;
  EXPECT_NE(error.message.find(param), std::string::npos) << error.message;
}

TEST(ChatRequest, ThinkingControlHasItsOwnFields) {
  EXPECT_FALSE(accepted("").request.thinking.mode);
  EXPECT_FALSE(accepted("").request.token_stats);
  const ChatCall call = accepted(
      R"("token_stats":true,"thinking_control":{"mode":"quality","window":9,"min_tokens":10,"close_above":0.5,
         "extend_below":0.4,"max_extensions":2,"extension":"go on","warning":"soon","warn_before":7,"answer_tokens":30,
         "suppress_above":0.9,"release_below":0.8,"close_at_reflection":true,"triggers":["Wait","Hmm"],"loop_guard":true,"loop_tokens":40,
         "loop_penalty":3})");
  const orchestrator::ThinkingOptions& o = call.request.thinking;
  EXPECT_TRUE(call.request.token_stats);
  EXPECT_EQ(o.mode, orchestrator::ThinkingMode::quality);
  EXPECT_EQ(o.window, 9);
  EXPECT_EQ(o.min_tokens, 10);
  EXPECT_EQ(o.close_above, 0.5f);
  EXPECT_EQ(o.extend_below, 0.4f);
  EXPECT_EQ(o.max_extensions, 2);
  EXPECT_EQ(o.extension, "go on");
  EXPECT_EQ(o.warning, "soon");
  EXPECT_EQ(o.warn_before, 7);
  EXPECT_EQ(o.answer_tokens, 30);
  EXPECT_EQ(o.suppress_above, 0.9f);
  EXPECT_EQ(o.release_below, 0.8f);
  EXPECT_EQ(o.close_at_reflection, true);
  EXPECT_EQ(o.triggers, (std::vector<std::string>{"Wait", "Hmm"}));
  EXPECT_EQ(o.loop_guard, true);
  EXPECT_EQ(o.loop_tokens, 40);
  EXPECT_EQ(o.loop_penalty, 3.0f);
  expect_refused(R"("thinking_control":{"mode":"slow"})", "thinking_control.mode");
  expect_refused(R"("thinking_control":{"window":0})", "thinking_control.window");
  expect_refused(R"("thinking_control":{"warning":""})", "thinking_control.warning");
  expect_refused(R"("thinking_control":{"close_above":"high"})", "thinking_control.close_above");
  expect_refused(R"("thinking_control":{"budget":3})", "thinking_control.budget");
  expect_refused(R"("thinking_control":7)", "thinking_control");
  expect_refused(R"("token_stats":1)", "token_stats");
}

TEST(ChatRequest, DefaultsComeFromTheFile) {
  const ChatCall call = accepted("");
  EXPECT_FALSE(call.stream);
  EXPECT_FALSE(call.include_usage);
  EXPECT_EQ(call.model, "");
  EXPECT_FLOAT_EQ(call.request.sampling.temperature, 0.6f);
  EXPECT_EQ(call.request.sampling.top_k, 20);
  EXPECT_EQ(call.request.max_tokens, -1);
  EXPECT_FALSE(call.request.seed);
  EXPECT_FALSE(call.request.enable_thinking);
  EXPECT_TRUE(call.ignored.empty());
  ASSERT_EQ(call.request.messages.size(), 1u);
  EXPECT_EQ(call.request.messages[0].role, "user");
  EXPECT_EQ(call.request.messages[0].content, "Hi");
}

TEST(ChatRequest, ReadsEveryField) {
  const ChatCall call = accepted(R"("model":"m","stream":true,"stream_options":{"include_usage":true},"stop":["a","b"],
    "seed":-3,"temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.05,"presence_penalty":-1,"frequency_penalty":2,
    "repetition_penalty":1.1,"logit_bias":{"5":-100,"6":2.5},"logprobs":true,"top_logprobs":20,"max_tokens":10,
    "max_completion_tokens":12,"n":1,"chat_template_kwargs":{"enable_thinking":false,"x":[1]},"tool_choice":"auto",
    "dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":3,"dry_penalty_last_n":64,"dry_sequence_breakers":["\n"],
    "response_format":{"type":"text"},"tools":[{"type":"function","function":{"name":"f","z":1,"a":2}}])");
  const SamplingParams& s = call.request.sampling;
  EXPECT_EQ(call.model, "m");
  EXPECT_TRUE(call.stream);
  EXPECT_TRUE(call.include_usage);
  EXPECT_EQ(call.request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call.request.seed, static_cast<uint64_t>(-3));
  EXPECT_FLOAT_EQ(s.temperature, 0.5f);
  EXPECT_FLOAT_EQ(s.top_p, 0.9f);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_FLOAT_EQ(s.min_p, 0.05f);
  EXPECT_FLOAT_EQ(s.presence_penalty, -1);
  EXPECT_FLOAT_EQ(s.frequency_penalty, 2);
  EXPECT_FLOAT_EQ(s.repetition_penalty, 1.1f);
  ASSERT_EQ(s.logit_bias.size(), 2u);
  EXPECT_EQ(s.logit_bias[1].id, 6);
  EXPECT_FLOAT_EQ(s.logit_bias[1].delta, 2.5f);
  EXPECT_TRUE(call.request.logprobs);
  EXPECT_EQ(s.top_logprobs, 20);
  EXPECT_EQ(call.request.max_tokens, 12);
  EXPECT_EQ(call.request.enable_thinking, false);
  EXPECT_EQ(call.request.template_kwargs, R"({"x":[1]})");
  ASSERT_EQ(call.request.tools.size(), 1u);
  EXPECT_EQ(call.request.tools[0].json, R"({"type":"function","function":{"name":"f","z":1,"a":2}})");
  EXPECT_FLOAT_EQ(s.dry_multiplier, 0.8f);
  EXPECT_FLOAT_EQ(s.dry_base, 1.5f);
  EXPECT_EQ(s.dry_allowed_length, 3);
  EXPECT_EQ(s.dry_penalty_last_n, 64);
  EXPECT_EQ(call.request.dry_sequence_breakers, std::vector<std::string>{"\n"});
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"tools[0].function.z", "tools[0].function.a"}));
}

TEST(ChatRequest, ReadsTheFormOfTheAnswer) {
  EXPECT_TRUE(accepted("").request.form.is_free());
  EXPECT_TRUE(accepted(R"("response_format":{"type":"json_object"})").request.form.json_object);
  EXPECT_EQ(
      accepted(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}})")
          .request.form.json_schema,
      R"({"type":"object"})");
  // As llama.cpp's clients say it.
  for (const char* fields : {R"("response_format":{"type":"json_object","schema":{"type":"object"}})",
                             R"("json_schema":{"type":"object"})", R"("json_schema":{"schema":{"type":"object"}})",
                             R"("json_schema":{"type":"object"},"response_format":{"type":"json_object"})",
                             R"("response_format":{"type":"json_schema","schema":{"type":"object"}})"}) {
    const ChatCall call = accepted(fields);
    EXPECT_EQ(call.request.form.json_schema, R"({"type":"object"})") << fields;
    EXPECT_FALSE(call.request.form.json_object) << fields;
    EXPECT_TRUE(call.ignored.empty()) << fields;
  }
  EXPECT_TRUE(accepted(R"("response_format":{"type":"json_object","schema":null})").request.form.json_object);
  expect_refused(R"("response_format":{"type":"json_object","schema":3})", "response_format.schema");
  expect_refused(R"("json_schema":"x")", "json_schema");
  expect_refused(R"("json_schema":{},"response_format":{"type":"json_object","schema":{}})", "response_format.schema");
  EXPECT_EQ(accepted(R"("regex":"a+")").request.form.regex, "a+");
  EXPECT_EQ(accepted(R"("grammar":"root ::= \"a\"")").request.form.grammar, "root ::= \"a\"");
}

TEST(ChatRequest, ReadsChoicesOfTools) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  EXPECT_EQ(accepted(tools + R"("tool_choice":"required","parallel_tool_calls":false)").request.tool_choice,
            ToolChoice::required);
  EXPECT_FALSE(accepted(tools + R"("parallel_tool_calls":false)").request.parallel_tool_calls);
  const ChatCall named = accepted(tools + R"("tool_choice":{"type":"function","function":{"name":"f"}})");
  EXPECT_EQ(named.request.tool_choice, ToolChoice::named);
  EXPECT_EQ(named.request.tool_name, "f");
}

TEST(ChatRequest, TheToolsThatAreAllowedAreTheOnlyOnes) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function",
    "function":{"name":"g"}},{"type":"function","function":{"name":"h"}}],"tool_choice":{"type":"allowed_tools",)";
  const auto allowed = [&](const std::string& mode, const std::string& names) {
    std::string list;
    for (const char name : names) {
      list += (list.empty() ? "" : ",") + std::string(R"({"type":"function","function":{"name":")") + name + "\"}}";
    }
    return tools + R"("allowed_tools":{"mode":")" + mode + R"(","tools":[)" + list + "]}}";
  };
  const ChatCall some = accepted(allowed("auto", "hf"));
  EXPECT_EQ(some.request.tool_choice, ToolChoice::automatic);
  EXPECT_TRUE(some.request.only_declared_tools);
  ASSERT_EQ(some.request.tools.size(), 2u);
  EXPECT_NE(some.request.tools[0].json.find("\"f\""), std::string::npos) << "in the order of the declarations";
  EXPECT_NE(some.request.tools[1].json.find("\"h\""), std::string::npos);
  EXPECT_TRUE(some.ignored.empty());
  const ChatCall one = accepted(allowed("required", "g"));
  EXPECT_EQ(one.request.tool_choice, ToolChoice::required);
  EXPECT_EQ(one.request.tools.size(), 1u);
  EXPECT_FALSE(accepted(tools.substr(0, tools.find(",\"tool_choice\""))).request.only_declared_tools);
  expect_refused(allowed("auto", "fx"), "tool_choice");
  expect_refused(allowed("auto", ""), "tool_choice.allowed_tools.tools");
  expect_refused(allowed("never", "f"), "tool_choice.allowed_tools.mode");
  expect_refused(tools + R"("allowed_tools":{"mode":"auto","tools":[{"type":"function"}]}})",
                 "tool_choice.allowed_tools.tools");
  expect_refused(tools + R"("allowed_tools":{"mode":"required","tools":[{"type":"web_search"}]}})",
                 "tool_choice.allowed_tools.tools");
}

TEST(ChatRequest, ReadsHowMuchToThink) {
  EXPECT_EQ(accepted(R"("reasoning_effort":"none")").request.enable_thinking, false);
  const ChatCall low = accepted(R"("reasoning_effort":"low")");
  EXPECT_EQ(low.request.enable_thinking, true);
  EXPECT_EQ(low.request.thinking_limit, 256);
  EXPECT_EQ(low.request.thinking_budget, -1);
  EXPECT_EQ(low.request.template_kwargs, R"({"reasoning_effort":"low"})");
  EXPECT_EQ(accepted(R"("reasoning_effort":"high","thinking_budget":7)").request.thinking_budget, 7);
  EXPECT_EQ(accepted(R"("reasoning_effort":"high","enable_thinking":false)").request.enable_thinking, false);
}

TEST(ChatRequest, WhatTheServerWasStartedWithYieldsToTheRequest) {
  orchestrator::Defaults defaults;
  ASSERT_TRUE(read_template_variables(R"({"enable_thinking":true,"lang":"fr","tone":"dry"})", defaults));
  EXPECT_EQ(defaults.enable_thinking, true);
  const auto with = [&](const std::string& fields) {
    auto call = parse_chat_call(R"({"messages":[{"role":"user","content":"Hi"}])" + fields + "}", defaults);
    if (std::holds_alternative<ApiError>(call)) ADD_FAILURE() << std::get<ApiError>(call).message;
    return std::move(std::get<ChatCall>(call).request);
  };
  EXPECT_EQ(with("").enable_thinking, true);
  EXPECT_EQ(with("").template_kwargs, R"({"lang":"fr","tone":"dry"})");
  EXPECT_EQ(with(R"(,"chat_template_kwargs":{"tone":"kind"})").template_kwargs, R"({"lang":"fr","tone":"kind"})");
  EXPECT_EQ(with(R"(,"chat_template_kwargs":{"enable_thinking":false})").enable_thinking, false);
  EXPECT_EQ(with(R"(,"reasoning_effort":"none")").enable_thinking, false);
  for (const char* wrong : {"[]", "{", R"({"messages":[]})", R"({"enable_thinking":1})"}) {
    EXPECT_FALSE(read_template_variables(wrong, defaults)) << wrong;
  }
}

TEST(ChatRequest, ReadsWhoAsksHowOftenAndForHowLong) {
  const ChatCall call = accepted(R"("n":3,"user":"ann","timeout":30)");
  EXPECT_EQ(call.n, 3);
  EXPECT_EQ(call.user, "ann");
  EXPECT_LT(call.request.deadline, std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(accepted("").request.deadline, std::chrono::steady_clock::time_point::max());
}

TEST(ChatRequest, NullMeansAbsent) {
  const ChatCall call =
      accepted(R"("temperature":null,"stop":null,"seed":null,"tools":null,"max_tokens":null,"n":null)");
  EXPECT_FLOAT_EQ(call.request.sampling.temperature, 0.6f);
  EXPECT_FALSE(call.request.seed);
  EXPECT_TRUE(call.ignored.empty());
}

TEST(ChatRequest, OtherSpellings) {
  EXPECT_EQ(accepted(R"("stop":"END")").request.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(accepted(R"("max_tokens":5)").request.max_tokens, 5);
  EXPECT_EQ(accepted(R"("max_tokens":-1)").request.max_tokens, -1);
  EXPECT_EQ(
      accepted(R"("enable_thinking":true,"chat_template_kwargs":{"enable_thinking":false})").request.enable_thinking,
      true);
  EXPECT_EQ(
      accepted(R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none")").request.tool_choice,
      ToolChoice::none);
  EXPECT_TRUE(accepted(R"("tools":[])").request.tools.empty());
}

TEST(ChatRequest, ReadsWhetherToSpeculate) {
  using speculative::Mode;
  EXPECT_FALSE(accepted(R"("n":1)").request.speculation);
  EXPECT_FALSE(accepted(R"("speculation":null)").request.speculation);
  const std::pair<const char*, Mode> values[] = {{"true", Mode::automatic},      {"false", Mode::off},
                                                 {R"("auto")", Mode::automatic}, {R"("off")", Mode::off},
                                                 {R"("ngram")", Mode::ngram},    {R"("engram")", Mode::engram},
                                                 {R"("mtp")", Mode::mtp},        {R"("draft")", Mode::draft},
                                                 {R"("dflash")", Mode::dflash},  {R"("always")", Mode::always}};
  for (const auto& [text, mode] : values) {
    EXPECT_EQ(accepted("\"speculation\":" + std::string(text)).request.speculation, mode) << text;
  }
  for (const char* wrong : {"1", "[]", "{}", R"("")", R"("on")", R"("Auto")"}) {
    expect_refused("\"speculation\":" + std::string(wrong), "speculation");
  }
}

TEST(ChatRequest, RefusesWrongTypesAndRangesByName) {
  for (const char* name : {"temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty",
                           "repetition_penalty", "dry_multiplier", "dry_base"}) {
    expect_refused("\"" + std::string(name) + "\":\"0.5\"", name);
    expect_refused("\"" + std::string(name) + "\":1000", name);
    expect_refused("\"" + std::string(name) + "\":-1000", name);
  }
  for (const char* name :
       {"top_k", "max_tokens", "max_completion_tokens", "dry_allowed_length", "dry_penalty_last_n"}) {
    expect_refused("\"" + std::string(name) + "\":1.5", name);
    expect_refused("\"" + std::string(name) + "\":-2", name);
    expect_refused("\"" + std::string(name) + "\":99999999999", name);
    expect_refused("\"" + std::string(name) + "\":true", name);
  }
  for (const char* name : {"stream", "logprobs", "enable_thinking"}) {
    expect_refused("\"" + std::string(name) + "\":1", name);
  }
  expect_refused(R"("model":3)", "model");
  expect_refused(R"("seed":"x")", "seed");
  expect_refused(R"("seed":18446744073709551615)", "seed");
  expect_refused(R"("stop":["a","b","c","d","e"])", "stop");
  expect_refused(R"("stop":[1])", "stop");
  expect_refused(R"("stop":"")", "stop");
  expect_refused(R"("n":17)", "n");
  expect_refused(R"("n":0)", "n");
  expect_refused(R"("max_tokens":0)", "max_tokens");
  expect_refused(R"("logprobs":true,"top_logprobs":21)", "top_logprobs");
  expect_refused(R"("top_logprobs":2)", "top_logprobs");
  expect_refused(R"("logit_bias":[1])", "logit_bias");
  expect_refused(R"("logit_bias":{"":1})", "logit_bias");
  expect_refused(R"("logit_bias":{"x":"y"})", "logit_bias");
  expect_refused(R"("logit_bias":{"-1":1})", "logit_bias");
  expect_refused(R"("logit_bias":{"1":101})", "logit_bias");
  expect_refused(R"("stream_options":true)", "stream_options");
  expect_refused(R"("stream_options":{"include_usage":1})", "stream_options.include_usage");
  expect_refused(R"("tool_choice":"required")", "tool_choice");
  expect_refused(R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice");
  expect_refused(R"("tools":{})", "tools");
  expect_refused(R"("tools":[{"type":"search"}])", "tools[0].type");
  expect_refused(R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name");
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  expect_refused(tools + R"("tool_choice":"always")", "tool_choice");
  expect_refused(tools + R"("tool_choice":{"type":"function","function":{"name":"g"}})", "tool_choice");
  expect_refused(tools + R"("tool_choice":{"type":"function"})", "tool_choice.function.name");
  expect_refused(R"("response_format":{"type":"xml"})", "response_format.type");
  expect_refused(R"("response_format":{"type":"json_schema"})", "response_format.schema");
  expect_refused(R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format.json_schema.schema");
  expect_refused(R"("reasoning_effort":"enormous")", "reasoning_effort");
  expect_refused(R"("thinking_budget":-1)", "thinking_budget");
  expect_refused(R"("timeout":0)", "timeout");
  expect_refused(R"("grammar":1)", "grammar");
  expect_refused(R"("parallel_tool_calls":"no")", "parallel_tool_calls");
  expect_refused(R"("chat_template_kwargs":[])", "chat_template_kwargs");
  expect_refused(R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs");
  expect_refused(R"("dry_sequence_breakers":[""])", "dry_sequence_breakers");
}

TEST(ChatRequest, ReadsMessagesOfEveryRole) {
  const auto parsed = parse_chat_call(R"({"messages":[
    {"role":"system","content":"S"},
    {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
    {"role":"assistant","content":null,"reasoning_content":"R",
     "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"42"}]})",
                                      {});
  ASSERT_TRUE(std::holds_alternative<ChatCall>(parsed)) << std::get<ApiError>(parsed).message;
  const auto& messages = std::get<ChatCall>(parsed).request.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1].content_parts_json, R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])");
  EXPECT_EQ(messages[2].content, std::nullopt);
  EXPECT_EQ(messages[2].reasoning_content, "R");
  ASSERT_EQ(messages[2].tool_calls.size(), 1u);
  EXPECT_EQ(messages[2].tool_calls[0].name, "f");
  EXPECT_EQ(messages[2].tool_calls[0].arguments_json, "{\"x\":1}");
  EXPECT_EQ(messages[3].tool_call_id, "c1");
}

ChatCall accepted_messages(const std::string& messages, const std::string& fields = {}) {
  auto call = parse_chat_call("{\"messages\":[" + messages + "]" + fields + "}", {});
  if (const ApiError* error = std::get_if<ApiError>(&call)) {
    ADD_FAILURE() << messages << fields << ": " << error->message;
    return {};
  }
  return std::move(std::get<ChatCall>(call));
}

constexpr const char* kAsked = R"({"role":"user","content":"Hi"})";

TEST(ChatRequest, ALastMessageOfTheAssistantIsGoneOnWith) {
  const std::string begun = std::string(kAsked) + R"(,{"role":"assistant","content":"Well, ")" + "}";
  EXPECT_TRUE(accepted_messages(begun).request.goes_on);
  EXPECT_EQ(accepted_messages(begun).request.messages.size(), 2u);
  const std::string vllm = R"(,"continue_final_message":true,"add_generation_prompt":false)";
  EXPECT_TRUE(accepted_messages(begun, vllm).request.goes_on);
  EXPECT_TRUE(accepted_messages(begun, vllm).ignored.empty());
  EXPECT_FALSE(accepted_messages(begun, R"(,"continue_final_message":false)").request.goes_on);
  EXPECT_FALSE(accepted_messages(kAsked).request.goes_on);
  EXPECT_TRUE(accepted_messages(kAsked).request.add_generation_prompt);
  EXPECT_FALSE(accepted_messages(kAsked, R"(,"add_generation_prompt":false)").request.add_generation_prompt);
  // One without text is no beginning.
  const ChatCall empty = accepted_messages(std::string(kAsked) + R"(,{"role":"assistant","content":" "})");
  EXPECT_FALSE(empty.request.goes_on);
  EXPECT_EQ(empty.request.messages.size(), 1u);

  const std::pair<std::string, std::string> cases[] = {
      {"[" + begun + R"(],"continue_final_message":true,"add_generation_prompt":true)", "add_generation_prompt"},
      {"[" + begun + R"(],"continue_final_message":1)", "continue_final_message"},
      {"[" + begun + R"(],"response_format":{"type":"json_object"})", "response_format"},
      {"[" + std::string(kAsked) + R"(],"continue_final_message":true)", "continue_final_message"},
      {"[" + std::string(kAsked) + R"(,{"role":"assistant","content":""}],"continue_final_message":true)", "messages"},
      {"[" + std::string(kAsked) +
           R"(,{"role":"assistant","content":"x","tool_calls":[{"id":"1","function":{"name":"f"}}]}])",
       "messages"},
  };
  for (const auto& [rest, param] : cases) {
    EXPECT_EQ(refused(parse_chat_call("{\"messages\":" + rest + "}", {}), rest).param, param) << rest;
  }
}

TEST(ChatRequest, AThoughtWithoutATextIsGoneOnWith) {
  const auto begun = [](const std::string& fields) {
    return std::string(kAsked) + R"(,{"role":"assistant",)" + fields + "}";
  };
  for (const char* fields :
       {R"("content":"","reasoning_content":"I think ")", R"("content":null,"reasoning_content":"I think ")"}) {
    const ChatCall call = accepted_messages(begun(fields));
    EXPECT_TRUE(call.request.goes_on) << fields;
    EXPECT_EQ(call.request.messages.size(), 2u);
  }
  // The answer itself has not begun, so that its form can be held.
  const std::string thought = begun(R"("content":"","reasoning_content":"I think ")");
  EXPECT_TRUE(accepted_messages(thought, R"(,"response_format":{"type":"json_object"})").request.goes_on);
  EXPECT_FALSE(accepted_messages(thought, R"(,"continue_final_message":false)").request.goes_on);
  const ChatCall both = accepted_messages(begun(R"("content":"Well","reasoning_content":"I think ")"));
  EXPECT_TRUE(both.request.goes_on);
  const std::string blank = "[" + begun(R"("content":"","reasoning_content":" ")") + "]";
  EXPECT_EQ(refused(parse_chat_call("{\"messages\":" + blank + "}", {}), blank).param, "messages");
}

TEST(ChatRequest, NamesUnknownKeysByTheirPath) {
  const ChatCall call = accepted_messages(
      std::string(kAsked) + R"(,{"role":"user","odd":1,"content":[{"type":"text","text":"a"},
        {"type":"text","text":"b","bar":1,"none":null}]},
        {"role":"assistant","tool_calls":[{"id":"c","type":"function","kind":1,"function":{"name":"f","how":2}}]},
        {"role":"tool","tool_call_id":"c","content":"x"})",
      R"(,"top":1,"tools":[{"type":"function","more":1,"function":{"name":"f","strict":true,"foo":1}}],
        "response_format":{"type":"json_schema","baz":1,"json_schema":{"name":"n","schema":{},"qux":1}})");
  EXPECT_EQ(call.ignored, (std::vector<std::string>{
                              "messages[1].odd", "messages[1].content[1].bar", "messages[2].tool_calls[0].kind",
                              "messages[2].tool_calls[0].function.how", "top", "tools[0].more", "tools[0].function.foo",
                              "response_format.baz", "response_format.json_schema.qux"}));
  // Those of the request itself come first, and the header ends somewhere.
  EXPECT_EQ(ignored_header(call.ignored).rfind("top, messages[1].odd, messages[1].content[1].bar, ", 0), 0u);
  std::vector<std::string> many(1000, "messages[3].content[17].some_key_or_other");
  many.push_back("top");
  EXPECT_LT(ignored_header(many).size(), 1200u);
  EXPECT_EQ(ignored_header(many).rfind("top, ", 0), 0u);
}

TEST(ChatRequest, RefusesBadMessagesWithTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":"Hi"})", "messages"},
      {R"({"messages":[1]})", "messages[0]"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"root","content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":3}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":["x"]}]})", "messages[0].content[0]"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})", "messages[0].tool_calls[0].function"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})",
       "messages[0].tool_calls[0].function.name"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":3}}]}]})",
       "messages[0].tool_calls[0].function.arguments"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(refused(parse_chat_call(body, {}), body).param, param) << body;
}

TEST(ChatRequest, RefusesWhatIsNoJsonObject) {
  for (const char* body : {"", "{", "[]", "3", "\"x\"", "{\"messages\":[}"}) {
    EXPECT_EQ(refused(parse_chat_call(body, {}), body).code, "invalid_json") << body;
  }
}

TEST(ChatRequest, ReadsWhichTablesTakePart) {
  const ChatCall call =
      accepted(R"("engram":{"tables":["medical",{"name":"code","weight":0.5}],"alpha":0.25,"phase":"all"})");
  const orchestrator::MemoryUse& use = call.request.memory;
  ASSERT_EQ(use.tables.size(), 2u);
  EXPECT_EQ(use.tables[0].name, "medical");
  EXPECT_EQ(use.tables[1].name, "code");
  EXPECT_EQ(use.tables[1].weight, 0.5f);
  EXPECT_EQ(use.alpha, 0.25f);
  EXPECT_TRUE(use.in_thoughts);
  EXPECT_FALSE(accepted(R"("engram":{})").request.memory.in_thoughts);
  for (const char* fields : {R"("engram":3)", R"("engram":{"tables":"x"})", R"("engram":{"tables":[""]})",
                             R"("engram":{"tables":[3]})", R"("engram":{"tables":[{"name":"x","weight":2}]})",
                             R"("engram":{"alpha":-1})", R"("engram":{"odd":1})", R"("engram":{"phase":"never"})"}) {
    refused(parse(fields), fields);
  }
}

TEST(ChatRequest, ReportsWhatItIgnores) {
  const ChatCall call = accepted(R"("service_tier":"u","store":true,"stream_options":{"odd":1},"a\r\nX: y":1)");
  EXPECT_FALSE(call.request.stays_private);
  EXPECT_EQ(ignored_header(call.ignored), "service_tier, a??X:?y, stream_options.odd");
  const auto parsed = parse_chat_call(R"({"messages":[{"role":"user","content":"x","mood":"good"}]})", {});
  EXPECT_EQ(std::get<ChatCall>(parsed).ignored, std::vector<std::string>{"messages[0].mood"});
  EXPECT_LT(ignored_header(std::vector<std::string>(10'000, std::string(1000, 'x'))).size(), 2000u);
}

}  // namespace
}  // namespace chimere::server
