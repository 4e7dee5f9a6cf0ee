// fuzz_thinking.cpp  Bytes as the field `thinking_control` of a request, and as the tokens of a thought: refused, or
// turned into parameters that the engine accepts and that steer any thought within its budget.
//
// The text before the first zero byte is the JSON; of what follows every byte is a token.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/answer_state.h"
#include "gguf/gguf.h"
#include "orchestrator/thinking_options.h"
#include "server/protocols/shared/json_fields.h"
#include "server/protocols/shared/thinking_field.h"

namespace {

using namespace chimere;

struct World {
  World() {
    auto file = gguf::File::open(CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf");
    if (!file) std::abort();
    auto made = Tokenizer::from_metadata(file->metadata());
    if (!made) std::abort();
    tokenizer.emplace(std::move(*made));
    resolver.emplace(*tokenizer, static_cast<int32_t>(tokenizer->n_vocab()));
  }
  std::optional<Tokenizer> tokenizer;
  std::optional<orchestrator::ThinkingResolver> resolver;
};

// A thought as the engine runs it: what is forced counts, and nothing is drawn behind the budget.
void think(const ThinkingParams& params, std::span<const uint8_t> drawn, int32_t n_vocab) {
  constexpr int32_t kBudget = 48;
  const int32_t end_id = n_vocab - 1;
  engine::Request request;
  request.thought = {.open = true, .end_ids = {end_id}, .close = {end_id}, .budget = kBudget};
  request.thinking = params;
  engine::AnswerState state(std::make_shared<const engine::Request>(request), 1 << 20);
  std::vector<int32_t> tokens;
  for (const uint8_t byte : drawn) {
    engine::AnswerState::Row row = state.before(tokens);
    for (const TokenBias& bias : row.bias) {
      if (bias.id < 0 || bias.id >= n_vocab || std::isnan(bias.delta)) std::abort();
    }
    const auto stat = static_cast<uint8_t>(byte * 37);
    Sampled sampled;
    sampled.id = row.forced.value_or(byte == 255 ? end_id : byte % n_vocab);  // 255: the model would end its thought
    sampled.logprob = -static_cast<float>(stat) / 64;
    sampled.max_prob = static_cast<float>(stat) / 255;
    sampled.entropy = params.max_entropy * (1 - sampled.max_prob);
    if (state.judge(sampled.id, tokens, nullptr) == engine::AnswerState::Verdict::replaced) {
      row = state.before(tokens);
      if (!row.forced) std::abort();
      sampled.id = *row.forced;
    }
    tokens.push_back(sampled.id);
    state.after(sampled, tokens, nullptr);
    if (state.n_thought() > kBudget) std::abort();
    if (!state.is_thinking()) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::string text = all.substr(0, all.find('\0'));
  const auto control = parse_json(text);
  if (!control) return 0;
  const Json body{{"thinking_control", *control}};
  server::JsonFields fields(body);
  orchestrator::ThinkingOptions options;
  server::read_thinking_control(fields, options);
  if (!fields.ok()) return 0;
  const ThinkingParams params = world.resolver->resolve(options);
  const auto n_vocab = static_cast<int32_t>(world.tokenizer->n_vocab());
  if (!params.validate(n_vocab)) std::abort();
  const size_t rest = std::min(size, text.size() + 1);
  think(params, std::span(data, size).subspan(rest), n_vocab);
  return 0;
}
