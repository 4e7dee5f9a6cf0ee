#include "streams.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "engine/engine.h"

namespace chimere {
namespace {

using Clock = std::chrono::steady_clock;

// The answers of a round: what they took from the first token of all of them on, and guesses.
struct Round {
  double tok_s = 0;
  int64_t guesses = 0, right = 0;
};

Result<Round> run_round(engine::Engine& engine, const StreamsPlan& plan, speculative::Mode mode, uint64_t seed) {
  std::vector<engine::Submitted> all;
  for (int i = 0; i < plan.streams; ++i) {
    engine::Request request;
    for (int t = 0; t < plan.n_prompt; ++t) {
      const uint64_t bits = hash_mix(seed * 1000003 + static_cast<uint64_t>(i) * 4099 + static_cast<uint64_t>(t));
      request.prompt.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(engine.n_vocab())));
    }
    request.max_tokens = plan.n_decode;
    request.sampling.temperature = 0.7f;
    request.sampling.seed = seed + static_cast<uint64_t>(i);
    request.speculate = mode;
    TRY_ASSIGN(engine::Submitted submitted, engine.submit(std::move(request)));
    all.push_back(std::move(submitted));
  }
  Round round;
  int64_t tokens = 0;
  double seconds = 0;
  for (const engine::Submitted& s : all) {
    for (;;) {
      const engine::Event event = s.events->wait();
      if (event.kind == engine::Event::Kind::failed) return *event.error;
      if (!event.is_terminal()) continue;
      tokens += event.usage.completion_tokens;
      seconds = std::max(seconds, event.usage.decode_seconds);
      round.guesses += event.usage.draft_tokens;
      round.right += event.usage.draft_tokens_accepted;
      break;
    }
  }
  round.tok_s = static_cast<double>(tokens) / seconds;
  return round;
}

}  // namespace

Status time_streams(models::Model& model, const StreamsPlan& plan) {
  TRY(model.require_logits());
  engine::EngineConfig config;
  config.max_running = plan.streams;
  config.max_queued = plan.streams;
  config.speculate = plan.speculate;
  config.context_length = plan.n_prompt + plan.n_decode + 1;
  engine::Engine engine(model, config);
  // Steps are timed at load, the last of them when nobody has asked for a while.
  const auto until = Clock::now() + std::chrono::seconds(30);
  while (engine.stats().step_seconds.empty() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::vector<double> ratios;
  for (int r = -1; r < plan.repeats; ++r) {
    const speculative::Mode modes[] = {speculative::Mode::off, plan.speculate};
    Round rounds[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + r + 1) % 2;
      TRY_ASSIGN(rounds[which], run_round(engine, plan, modes[which], static_cast<uint64_t>(2 * (r + 1) + turn + 1)));
    }
    if (r < 0) continue;
    ratios.push_back(rounds[1].tok_s / rounds[0].tok_s);
    std::printf("%d streams: off %.1f tok/s, %s %.1f tok/s, ratio %.4f (%lld guesses, %lld right)\n", plan.streams,
                rounds[0].tok_s, speculative::name(plan.speculate), rounds[1].tok_s, ratios.back(),
                static_cast<long long>(rounds[1].guesses), static_cast<long long>(rounds[1].right));
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = (ratios[ratios.size() / 2] + ratios[(ratios.size() - 1) / 2]) / 2;
  std::printf("median ratio %.4f, %.4f to %.4f in %zu pairs\n", median, ratios.front(), ratios.back(), ratios.size());
  return Ok{};
}

}  // namespace chimere
