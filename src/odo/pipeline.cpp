#include "odo/pipeline.h"

#include <future>
#include <utility>

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;

constexpr size_t kMaxCarriedBytes = 16 << 10;  // of a step's text that later ones read

class Pipeline {
 public:
  Pipeline(orchestrator::ChatService& chat, ChatRequest request, const Wishes& own, const Route& route,
           const LoopTools& tools, const LoopLimits& limits, RunTeller& teller)
      : chat_(chat),
        request_(std::move(request)),
        own_(own),
        route_(route),
        tools_(tools),
        limits_(limits),
        teller_(teller) {}

  ModelTurn run() {
    ModelTurn last;
    for (size_t begin = 0; begin < route_.steps.size();) {
      size_t end = begin + 1;
      while (end < route_.steps.size() && route_.steps[end].group == route_.steps[begin].group) ++end;
      const bool is_final = end == route_.steps.size();
      const std::string before = earlier_;
      // Of a last group that runs side by side the last step speaks; the others are notes for it that came too late,
      // and stand in the trace.
      std::vector<std::future<ModelTurn>> running;
      for (size_t i = begin; i + 1 < end; ++i) {
        running.push_back(std::async(std::launch::async, [this, i, &before] { return step(i, before, false); }));
      }
      last = step(end - 1, before, is_final);
      for (size_t i = begin; i + 1 < end; ++i) carry(i, running[i - begin].get());
      carry(end - 1, last);
      if (teller_.is_cancelled()) return last;
      begin = end;
    }
    if (last.has_failed() && !latest_.empty()) return instead_of(last);
    return last;
  }

 private:
  ModelTurn step(size_t index, const std::string& before, bool is_live) {
    const PipelineStep& step = route_.steps[index];
    LoopTools tools = tools_;
    if (step.tools) tools.names = *step.tools;
    ModelTurn turn;
    std::string written;
    for (int i = 0; i < step.iterations; ++i) {
      ChatRequest request = request_;
      own_.over(step.wishes).apply_to(request);
      append_system(request, step.prompt);
      append_system(request, before);
      if (!written.empty()) append_system(request, "What you wrote so far, to be improved:\n" + written);
      const bool is_last = i + 1 == step.iterations;
      turn = answer_with_tools(chat_, std::move(request), tools, limits_, teller_, step.agent, is_live && is_last);
      if (turn.has_failed() || turn.is_cancelled()) return turn;
      written = turn.content.substr(0, kMaxCarriedBytes);
    }
    return turn;
  }

  void carry(size_t index, const ModelTurn& turn) {
    if (turn.has_failed() || turn.content.empty()) return;
    latest_ = turn.content;
    earlier_ += (earlier_.empty() ? "What was worked out before:\n" : "\n") + ("[" + route_.steps[index].agent + "] ") +
                turn.content.substr(0, kMaxCarriedBytes);
  }

  ModelTurn instead_of(const ModelTurn& failed) {
    ModelTurn turn;
    turn.content = latest_;
    turn.last.kind = ChatChunk::Kind::finished;
    turn.last.usage = failed.last.usage;
    ChatChunk delta;
    delta.content = latest_;
    teller_.tell(std::move(delta));
    return turn;
  }

  orchestrator::ChatService& chat_;
  const ChatRequest request_;
  const Wishes& own_;
  const Route& route_;
  const LoopTools& tools_;
  const LoopLimits& limits_;
  RunTeller& teller_;
  std::string earlier_;  // what the steps so far wrote
  std::string latest_;
};

}  // namespace

void append_system(ChatRequest& request, const std::string& text) {
  if (text.empty()) return;
  if (request.messages.empty() || request.messages.front().role != "system") {
    chat::Message message;
    message.role = "system";
    message.content = text;
    request.messages.insert(request.messages.begin(), std::move(message));
    return;
  }
  chat::Message& system = request.messages.front();
  system.content = chat::text_of(system) + "\n\n" + text;
  system.content_parts_json.clear();
}

ModelTurn run_pipeline(orchestrator::ChatService& chat, ChatRequest request, const Wishes& own, const Route& route,
                       const LoopTools& tools, const LoopLimits& limits, RunTeller& teller) {
  return Pipeline(chat, std::move(request), own, route, tools, limits, teller).run();
}

}  // namespace chimere::odo
