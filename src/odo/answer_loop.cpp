#include "odo/answer_loop.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "text/json.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using orchestrator::Finish;
using State = StepReport::State;

constexpr size_t kMaxReadBytes = 32 << 10;     // that the model reads
constexpr size_t kMaxReportedBytes = 8 << 10;  // that the trace shows

std::string cut(const std::string& text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + " …";
}

std::string name_of(const chat::Tool& tool) {
  const auto json = parse_json(tool.json);
  if (!json || !json->is_object() || !json->contains("function")) return {};
  const Json& function = (*json)["function"];
  return function.is_object() ? function.value("name", std::string()) : std::string();
}

chat::Tool as_chat_tool(const tools::ToolSpec& spec) {
  auto parameters = parse_json(spec.parameters);
  Json json;
  json["type"] = "function";
  json["function"]["name"] = spec.name;
  json["function"]["description"] = spec.description;
  json["function"]["parameters"] = parameters ? *parameters : Json{{"type", "object"}};
  return {to_text(json)};
}

// {"tool", "arguments", ...}
Json call_detail(const chat::ToolCall& call) {
  auto arguments = parse_json(call.arguments_json);
  Json json;
  json["tool"] = call.name;
  json["call_id"] = call.id;
  json["arguments"] = arguments ? *arguments : Json(cut(call.arguments_json, kMaxReportedBytes));
  return json;
}

// {"entropy", "thinks"}
std::string doubt_detail(const DoubtedTurn& asked) {
  return to_text(Json{{"entropy", std::round(asked.entropy * 1000) / 1000}, {"thinks", asked.thinks}});
}

chat::Message tool_message(const chat::ToolCall& call, const std::string& text) {
  chat::Message message;
  message.role = "tool";
  message.tool_call_id = call.id;
  message.name = call.name;
  message.content = text;
  return message;
}

class Loop {
 public:
  Loop(orchestrator::ChatService& chat, ChatRequest request, const LoopTools& tools, const LoopLimits& limits,
       RunTeller& teller)
      : chat_(chat), request_(std::move(request)), tools_(tools), limits_(limits), teller_(teller) {
    for (const chat::Tool& tool : request_.tools) callers_.insert(name_of(tool));
    caller_tools_ = request_.tools;
    using orchestrator::ToolChoice;
    const ToolChoice choice = request_.tool_choice;
    // A call that a caller with tools demands is one of his own.
    const bool is_demanded = choice == ToolChoice::required || choice == ToolChoice::named;
    if (!tools_.box || choice == ToolChoice::none || (is_demanded && !caller_tools_.empty())) return;
    for (const tools::ToolSpec& spec : tools_.box->list()) {
      const bool is_wanted = is_named(spec.name, tools_.names) && callers_.count(spec.name) == 0;
      if (!is_wanted) continue;
      ours_.insert(spec.name);
      request_.tools.push_back(as_chat_tool(spec));
    }
    if (!ours_.empty()) request_.only_declared_tools = true;
  }

  ModelTurn run(const std::string& stage, bool is_live) {
    ModelTurn all;
    int32_t n_tokens = 0;  // of all rounds
    const int32_t max_tokens = tools_.tokens.value_or(limits_.tokens);
    for (int round = 1;; ++round) {
      const bool is_last = round > limits_.rounds || n_calls_ >= limits_.calls || n_tokens >= max_tokens;
      if (is_last) request_.tools = caller_tools_;
      ModelTurn turn = ask(stage, is_live, is_last && !ours_.empty());
      all.reasoning += turn.reasoning;
      all.content += turn.content;
      all.tokens.insert(all.tokens.end(), turn.tokens.begin(), turn.tokens.end());
      all.last = turn.last;
      n_tokens += turn.last.usage.completion_tokens;
      all.calls = callers_calls(turn);
      const bool goes_on = !turn.has_failed() && turn.last.finish == Finish::tool_calls && !is_last &&
                           all.calls.empty() && !teller_.is_cancelled();
      if (!goes_on) return all;
      answer_calls(turn);
      // Who was asked for a call has it; what follows is as the model likes.
      request_.tool_choice = orchestrator::ToolChoice::automatic;
    }
  }

 private:
  ModelTurn ask(const std::string& stage, bool is_live, bool is_over_budget) {
    const int step = teller_.begin(
        stage, is_over_budget ? "the budget of calls or tokens is used up: an answer without tools" : "", false);
    int n_forwarded = 0;
    std::map<int, int> index;  // of the caller's calls: as the model numbers them, and as the caller sees them
    const auto forward = [&](const ChatChunk& chunk) {
      ChatChunk shown = chunk;
      shown.tool_calls.clear();
      for (orchestrator::ToolCallDelta delta : chunk.tool_calls) {
        if (!delta.name.empty() && is_callers(delta.name)) index.emplace(delta.index, n_forwarded++);
        const auto known = index.find(delta.index);
        if (known == index.end()) continue;
        delta.index = known->second;
        shown.tool_calls.push_back(std::move(delta));
      }
      const bool has_news = !shown.reasoning.empty() || !shown.content.empty() || !shown.tool_calls.empty() ||
                            !shown.tokens.empty() || shown.progress;
      if (has_news) teller_.tell(std::move(shown));
      return true;
    };
    const std::function<bool(const ChatChunk&)> shown = is_live ? forward : std::function<bool(const ChatChunk&)>();
    const bool is_in_question = tools_.doubt && !request_.enable_thinking;
    DoubtedTurn asked;
    if (is_in_question) {
      asked = ask_in_doubt(chat_, request_, *tools_.doubt, teller_, step, shown);
      request_.enable_thinking = asked.thinks;  // in the rounds that follow as well
      request_.looked_up = std::move(asked.looked_up);
    } else {
      asked.turn = ask_model(chat_, request_, teller_, step, shown);
    }
    const ModelTurn& turn = asked.turn;
    teller_.end(step, turn.has_failed() ? State::failed : State::done,
                turn.has_failed() ? turn.last.error->message : "", is_in_question ? doubt_detail(asked) : "");
    return std::move(asked.turn);
  }

  // A name that nobody declared is answered with an error here, as it can only confuse a caller who did not ask for it.
  bool is_callers(const std::string& name) const { return ours_.empty() || callers_.count(name) > 0; }

  std::vector<chat::ToolCall> callers_calls(const ModelTurn& turn) const {
    std::vector<chat::ToolCall> calls;
    std::copy_if(turn.calls.begin(), turn.calls.end(), std::back_inserter(calls),
                 [&](const chat::ToolCall& call) { return is_callers(call.name); });
    return calls;
  }

  // The calls of one turn do not know each other's results: they run side by side.
  void answer_calls(const ModelTurn& turn) {
    chat::Message said;
    said.role = "assistant";
    said.content = turn.content;
    if (!turn.reasoning.empty()) said.reasoning_content = turn.reasoning;
    said.tool_calls = turn.calls;
    request_.messages.push_back(said);
    // What the caller had begun has been gone on with.
    request_.goes_on = false;
    const size_t n_calls = turn.calls.size();
    const size_t first = tools_.sources ? tools_.sources->reserve(n_calls) : 0;
    const auto run_call = [this, &turn, first](size_t i) { return result_of(turn.calls[i], first + i * kToldTexts); };
    std::vector<std::string> results(n_calls);
    for (size_t begin = 0; begin < n_calls; begin += static_cast<size_t>(limits_.at_once)) {
      const size_t end = std::min(n_calls, begin + static_cast<size_t>(limits_.at_once));
      std::vector<std::future<std::string>> running;
      for (size_t i = begin; i + 1 < end; ++i) {
        running.push_back(std::async(std::launch::async, [&run_call, i] { return run_call(i); }));
      }
      results[end - 1] = run_call(end - 1);
      for (size_t i = begin; i + 1 < end; ++i) results[i] = running[i - begin].get();
    }
    for (size_t i = 0; i < n_calls; ++i) request_.messages.push_back(tool_message(turn.calls[i], results[i]));
  }

  // Its sources are numbered from `first` on.
  std::string result_of(const chat::ToolCall& call, size_t first) {
    Json detail = call_detail(call);
    const int step = teller_.begin("tool", call.name);
    const auto refused = [&](State state, const std::string& why) {
      teller_.end(step, state, call.name + ": " + why, to_text(detail));
      return "Error: " + why;
    };
    if (++n_calls_ > limits_.calls) return refused(State::skipped, "no more calls are allowed in this answer");
    const bool asks = tools_.box->policy(call.name) == tools::Policy::ask;
    if (asks && !is_allowed(call, step, detail)) {
      return refused(State::skipped, "the user did not allow this call");
    }
    tools::ToolContext context;
    context.owner = tools_.owner;
    context.key = tools_.client;
    context.deadline = std::min(request_.deadline, std::chrono::steady_clock::now() + limits_.one_call);
    context.is_cancelled = [this] { return teller_.is_cancelled(); };
    tools::ToolResult result = tools_.box->run(call.name, call.arguments_json, context, asks);
    if (tools_.sources) number_sources(result, first);
    // A result may take a quarter of the context, a token being about four bytes.
    const auto room = static_cast<size_t>(std::max(chat_.context_length(), 256));
    const std::string text = cut(result.text, std::min(kMaxReadBytes, room));
    detail["result"] = cut(text, kMaxReportedBytes);
    if (result.is_untrusted) detail["is_untrusted"] = true;
    if (auto own = parse_json(result.detail); !result.detail.empty() && own) detail["detail"] = *own;
    teller_.end(step, result.is_error ? State::failed : State::done, call.name, to_text(detail));
    return text;
  }

  // A number means one text in all of the run.
  void number_sources(tools::ToolResult& result, size_t first) const {
    if (result.sources.empty()) return;
    result.sources.resize(std::min(result.sources.size(), kToldTexts));
    tools_.sources->put(first, result.sources);
    result.text = as_numbered(result.sources, first);
    auto detail = parse_json(result.detail);
    if (!detail || !detail->is_object() || !detail->contains("sources")) return;
    size_t n = first;
    for (Json& source : (*detail)["sources"]) source["n"] = n++;
    result.detail = to_text(*detail);
  }

  bool is_allowed(const chat::ToolCall& call, int step, Json detail) {
    if (!tools_.approvals) return false;
    const std::string id = teller_.report().id + "-" + std::to_string(step);
    detail["approval_id"] = id;
    teller_.ask(step, call.name + ": waits to be allowed", to_text(detail));
    const auto deadline = std::min(request_.deadline, std::chrono::steady_clock::now() + limits_.one_question);
    return tools_.approvals->wait(id, tools_.client, deadline, [this] { return teller_.is_cancelled(); })
        .value_or(false);
  }

  orchestrator::ChatService& chat_;
  ChatRequest request_;
  const LoopTools& tools_;
  const LoopLimits& limits_;
  RunTeller& teller_;
  std::vector<chat::Tool> caller_tools_;
  std::set<std::string> callers_, ours_;
  std::atomic<int> n_calls_{0};
};

}  // namespace

bool is_named(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    const bool is_open = pattern.ends_with('*');
    return is_open ? name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1)) : name == pattern;
  });
}

ModelTurn answer_with_tools(orchestrator::ChatService& chat, ChatRequest request, const LoopTools& tools,
                            const LoopLimits& limits, RunTeller& teller, const std::string& stage, bool is_live) {
  return Loop(chat, std::move(request), tools, limits, teller).run(stage, is_live);
}

}  // namespace chimere::odo
