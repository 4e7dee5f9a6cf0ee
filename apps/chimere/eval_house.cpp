#include "eval_house.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <utility>

#include "odo/own_tools.h"
#include "orchestrator/collection_models.h"
#include "tools/calculator.h"

namespace chimere::apps {
namespace {

constexpr int32_t kMaxAnswerTokens = 600;

Status open_shelf(const EvalOptions& options, const std::string& path, EvalHouse& house) {
  TRY_ASSIGN(house.collections, retrieval::Collections::open(path));
  if (const std::string file = embedder_path(options.embedding_model); !file.empty()) {
    ModelOptions embedding;
    embedding.path = file;
    embedding.threads = options.model.threads;
    TRY_ASSIGN(auto model, load_model(embedding));
    TRY_ASSIGN(house.embedder, orchestrator::EmbeddingModel::open(std::move(model), {}));
    house.collections->use(orchestrator::text_embedder(house.embedder->embedder()));
  }
  return house.box.add(odo::make_retrieve(*house.collections));
}

}  // namespace

Result<std::unique_ptr<EvalHouse>> open_house(const EvalOptions& options, std::shared_ptr<store::Journal> journal,
                                              const std::string& collections) {
  auto house = std::make_unique<EvalHouse>();
  TRY_ASSIGN(auto model, load_model(options.model));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  TRY(load_adapters(options.adapters, *chat_model.adapters));
  if (!options.no_judge) {
    TRY_ASSIGN(const std::string file, model_path(options.model.path));
    if (const std::string problem = load_judge_beside(file, *chat_model.adapters); !problem.empty()) {
      std::fprintf(stderr, "chimere: %s\n", problem.c_str());
    }
  }
  house->chat = std::make_unique<orchestrator::ChatService>(std::move(chat_model), engine::EngineConfig{});
  TRY(house->box.add(tools::make_calculator()));
  odo::OdoConfig config;
  config.route_folders = {options.routes.empty() ? shipped_routes() : options.routes};
  config.journal = std::move(journal);
  odo::Shelves shelves;
  if (!collections.empty()) {
    TRY(open_shelf(options, collections, *house));
    shelves.collections = house->collections.get();
  }
  house->odo = std::make_unique<odo::Odo>(*house->chat, house->box, shelves, std::move(config));
  return Result<std::unique_ptr<EvalHouse>>{std::move(house)};
}

orchestrator::ChatRequest asked(const EvalHouse& house, const std::string& text, std::optional<bool> thinks) {
  orchestrator::ChatRequest request;
  house.chat->defaults().apply_to(request);
  request.messages.emplace_back();
  request.messages.back().role = "user";
  request.messages.back().content = text;
  request.sampling.temperature = 0;
  request.max_tokens = kMaxAnswerTokens;
  request.given = {"temperature", "max_tokens"};
  if (thinks) {
    request.enable_thinking = *thinks;
    request.given.emplace_back("enable_thinking");
  }
  return request;
}

Result<EvalAnswer> answer_of(EvalHouse& house, orchestrator::ChatRequest request, std::optional<odo::Ask> ask) {
  const auto began = std::chrono::steady_clock::now();
  const std::unique_ptr<orchestrator::AnswerStream> stream =
      ask ? house.odo->start(std::move(*ask), std::move(request), {}) : house.chat->start(std::move(request));
  EvalAnswer answer;
  for (;;) {
    auto chunk = stream->poll();
    if (!chunk) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    answer.content += chunk->content;
    answer.tokens.insert(answer.tokens.end(), chunk->tokens.begin(), chunk->tokens.end());
    if (!chunk->is_terminal()) continue;
    if (chunk->error) return *chunk->error;
    answer.last = std::move(*chunk);
    answer.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    return Result<EvalAnswer>{std::move(answer)};
  }
}

void EvalTally::add(bool is_right, int64_t tokens, double ms) {
  answers.push_back({1, is_right ? size_t{1} : size_t{0}, 1, ms});
  n_tokens += tokens;
}

std::string EvalTally::more_than(const EvalTally& other) const {
  constexpr size_t kSamples = 1000;
  const size_t n = std::min(answers.size(), other.answers.size());
  std::vector<int> gains(n);
  for (size_t i = 0; i < n; ++i) {
    gains[i] = static_cast<int>(answers[i].chosen) - static_cast<int>(other.answers[i].chosen);
  }
  std::mt19937 random(1);
  std::vector<double> means;
  for (size_t sample = 0; n > 0 && sample < kSamples; ++sample) {
    int sum = 0;
    for (size_t i = 0; i < n; ++i) sum += gains[random() % n];
    means.push_back(100.0 * sum / static_cast<double>(n));
  }
  if (means.empty()) return "";
  std::sort(means.begin(), means.end());
  int sum = 0;
  for (const int gain : gains) sum += gain;
  char text[96];
  std::snprintf(text, sizeof text, "%+.1f %% (%.1f to %.1f)", 100.0 * sum / static_cast<double>(n),
                means[kSamples * 25 / 1000], means[kSamples * 975 / 1000 - 1]);
  return text;
}

void EvalTally::print_row(const std::string& name) const {
  const odo::Scoreboard board = odo::score_choices(answers, 2);
  std::printf("| %s | %.1f %% (%.1f to %.1f) | %.1f | %.0f |", name.c_str(), 100 * board.accuracy.value,
              100 * board.accuracy.low, 100 * board.accuracy.high,
              static_cast<double>(n_tokens) / static_cast<double>(answers.size()), board.median_ms);
}

}  // namespace chimere::apps
