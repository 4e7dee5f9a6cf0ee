// eval_tools.cpp  Sums of several steps, made here and trained on nowhere: the model alone, and with the calculator.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "eval_stages.h"
#include "odo/odo.h"
#include "odo/routing/scoreboard.h"
#include "orchestrator/chat_service.h"
#include "text/json.h"
#include "tools/calculator.h"

namespace chimere::apps {
namespace {

using orchestrator::ChatChunk;

constexpr uint32_t kSumsSeed = 2026;

struct SumQuestion {
  std::string text;
  int64_t answer = 0;
};

// Three numbers of three digits, two operations, in words or in signs.
SumQuestion made_question(std::mt19937& random) {
  const auto number = [&] { return static_cast<int64_t>(100 + random() % 900); };
  const int64_t a = number(), b = number(), c = number();
  const auto text = [](int64_t n) { return std::to_string(n); };
  switch (random() % 6) {
    case 0: return {"What is " + text(a) + " + " + text(b) + " * " + text(c) + "?", a + b * c};
    case 1: return {"What is (" + text(a) + " + " + text(b) + ") * " + text(c) + "?", (a + b) * c};
    case 2: return {"Calculate " + text(a) + " * " + text(b) + " - " + text(c) + ".", a * b - c};
    case 3: return {"What is " + text(a) + " plus " + text(b) + " minus " + text(c) + "?", a + b - c};
    case 4: return {"What is " + text(a) + " times " + text(b) + " plus " + text(c) + "?", a * b + c};
    default: return {"Combien font " + text(a) + " moins " + text(b) + " plus " + text(c) + " ?", a - b + c};
  }
}

// Whether the number stands in the text by itself; commas between digits are left out first.
bool says(const std::string& answer, int64_t number) {
  std::string plain;
  std::copy_if(answer.begin(), answer.end(), std::back_inserter(plain), [](char c) { return c != ','; });
  const std::string wanted = std::to_string(number);
  const auto is_digit = [&](size_t i) { return i < plain.size() && plain[i] >= '0' && plain[i] <= '9'; };
  for (size_t at = plain.find(wanted); at != std::string::npos; at = plain.find(wanted, at + 1)) {
    if (!is_digit(at + wanted.size()) && (at == 0 || !is_digit(at - 1))) return true;
  }
  return false;
}

struct SumsTally {
  std::vector<odo::JudgedChoice> answers;  // chosen 1: right
  int64_t n_tokens = 0;
  int n_calls = 0, n_exact = 0;

  void add(const ChatChunk& last, const std::string& content, const SumQuestion& question, double ms) {
    answers.push_back({1, says(content, question.answer) ? size_t{1} : size_t{0}, 1, ms});
    n_tokens += last.usage.completion_tokens;
    if (!last.run) return;
    for (const orchestrator::StepReport& step : last.run->steps) {
      if (step.stage != "tool") continue;
      ++n_calls;
      const auto detail = parse_json(step.detail);
      n_exact += detail && detail->contains("result") && (*detail)["result"] == std::to_string(question.answer);
    }
  }
};

// Reads a stream to its end.
ChatChunk last_of(orchestrator::AnswerStream& stream, std::string& content) {
  for (;;) {
    auto chunk = stream.poll();
    if (!chunk) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    content += chunk->content;
    if (chunk->is_terminal()) return std::move(*chunk);
  }
}

void print_row(const char* name, const SumsTally& tally) {
  const odo::Scoreboard board = odo::score_choices(tally.answers, 2);
  std::printf("| %s | %.1f %% (%.1f to %.1f) | %.1f | %.0f |", name, 100 * board.accuracy.value,
              100 * board.accuracy.low, 100 * board.accuracy.high,
              static_cast<double>(tally.n_tokens) / static_cast<double>(tally.answers.size()), board.median_ms);
  if (tally.n_calls > 0) {
    std::printf(" %d of %d |\n", tally.n_exact, tally.n_calls);
  } else {
    std::printf(" |\n");
  }
}

}  // namespace

Status eval_tools(const EvalOptions& o) {
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  orchestrator::ChatService service(std::move(chat_model), {});
  tools::Toolbox box;
  TRY(box.add(tools::make_calculator()));
  odo::OdoConfig config;
  config.route_folders = {o.routes.empty() ? shipped_routes() : o.routes};
  odo::Odo odo(service, box, {}, std::move(config));
  std::printf("| %d sums | right (95 %%) | tokens | ms | calls with the right result |\n|---|---|---|---|---|\n", o.n);
  for (const bool thinks : {false, true}) {
    for (const bool with_tools : {false, true}) {
      std::mt19937 random(kSumsSeed);
      SumsTally tally;
      for (int i = 0; i < o.n; ++i) {
        const SumQuestion question = made_question(random);
        orchestrator::ChatRequest request;
        service.defaults().apply_to(request);
        request.messages.emplace_back();
        request.messages.back().role = "user";
        request.messages.back().content = question.text;
        request.sampling.temperature = 0;
        request.enable_thinking = thinks;
        request.max_tokens = 600;
        request.given = {"temperature", "enable_thinking", "max_tokens"};
        const auto began = std::chrono::steady_clock::now();
        std::string content;
        odo::Ask ask;
        ask.model = "odo";
        const std::unique_ptr<orchestrator::AnswerStream> stream =
            with_tools ? odo.start(std::move(ask), std::move(request), {}) : service.start(std::move(request));
        const ChatChunk last = last_of(*stream, content);
        if (last.error) return *last.error;
        const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
        tally.add(last, content, question, ms);
      }
      const std::string name =
          std::string(with_tools ? "odo, calculator" : "the model alone") + (thinks ? ", thinking" : "");
      print_row(name.c_str(), tally);
      std::fflush(stdout);
    }
  }
  return Ok{};
}

}  // namespace chimere::apps
