// perplexity.cpp  chimere perplexity: how well a model predicts a text.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engine/score.h"
#include "engram/table_memory.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string text;
  int context = 512;
  bool json = false;
  std::vector<std::string> tables;
  float alpha = 1;
  float log_rule = 0;
};

using Tables = std::vector<engram::WeightedTable>;

Result<Tables> open_tables(const PerplexityOptions& o, const Tokenizer& tokenizer) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
  Tables tables;
  for (const std::string& path : o.tables) {
    TRY_ASSIGN(auto table, engram::Table::open(path, vocabulary, engram::today()));
    tables.push_back({std::move(table), 1});
  }
  return Result<Tables>{std::move(tables)};
}

// The rule that tables were once applied with, to compare: the logit of each continuation of the last five tokens
// gets alpha * log(its share), which is never positive.
Result<std::vector<float>> score_by_log_rule(models::Model& model, std::span<const int32_t> tokens,
                                             const engram::NgramSource& table, float alpha) {
  constexpr int kOrder = 5;
  std::vector<float> logprobs;
  engram::Hit hit;
  size_t next = 1;
  TRY(engine::all_logits(model, tokens.first(tokens.size() - 1), 0, [&](std::span<const float> row) {
    const double total = engine::log_sum_exp(row);
    double logprob = row[tokens[next]] - total, change = 0;
    if (table.find(engram::Table::context_of(tokens.first(next)), kOrder, hit)) {
      for (const engram::Hit::Next& n : hit.next) {
        const double bias = alpha * std::log(n.count / hit.total + 1e-10);
        change += std::exp(row[n.token] - total) * std::expm1(bias);
        if (n.token == tokens[next]) logprob += bias;
      }
    }
    logprobs.push_back(static_cast<float>(logprob - std::log1p(change)));
    ++next;
  }));
  return Result<std::vector<float>>{std::move(logprobs)};
}

Result<std::vector<float>> score(const PerplexityOptions& o, models::Model& model, const Tables& tables,
                                 std::span<const int32_t> tokens) {
  if (tables.empty()) return engine::score_tokens(model, tokens);
  if (o.log_rule > 0) return score_by_log_rule(model, tokens, *tables.front().table, o.log_rule);
  engram::TableMemory memory(tables, {.alpha = o.alpha});
  return engine::score_tokens(model, tokens, &memory);
}

// The text is cut into windows of `context` tokens, each read on its own; the second half of a window is scored, so
// that every scored token has at least half a window before it.
Status run(const PerplexityOptions& o) {
  if (o.context < 2) return Error{Code::invalid_argument, "--ctx: expected at least 2"};
  std::ifstream in(o.text, std::ios::binary);
  if (!in) return Error{Code::io, o.text + ": can not be opened"};
  const std::string text(std::istreambuf_iterator<char>(in), {});
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  TRY_ASSIGN(const Tables tables, open_tables(o, tokenizer));
  const std::vector<int32_t> ids = tokenizer.encode(text, EncodeMode::plain, false);
  const size_t n_windows = ids.size() / o.context;
  if (n_windows == 0) {
    return Error{Code::invalid_argument, o.text + ": has " + std::to_string(ids.size()) +
                                             " tokens, a window of --ctx " + std::to_string(o.context) +
                                             " needs as many"};
  }
  double sum = 0, sum_squares = 0;
  size_t n = 0;
  const int32_t bos = tokenizer.special_ids().bos;
  for (size_t w = 0; w < n_windows; ++w) {
    std::vector<int32_t> window(ids.begin() + w * o.context, ids.begin() + (w + 1) * o.context);
    if (tokenizer.adds_bos() && bos >= 0) window.front() = bos;
    TRY_ASSIGN(const std::vector<float> logprobs, score(o, *model, tables, window));
    for (size_t i = logprobs.size() / 2; i < logprobs.size(); ++i) {
      sum -= logprobs[i];
      sum_squares += static_cast<double>(logprobs[i]) * logprobs[i];
      ++n;
    }
    if (!o.json) std::fprintf(stderr, "\r%zu of %zu windows  %.4f", w + 1, n_windows, std::exp(sum / n));
  }
  const double mean = sum / n, deviation = std::sqrt(std::max(0.0, sum_squares / n - mean * mean) / n);
  const double perplexity = std::exp(mean);
  if (o.json) {
    const nlohmann::ordered_json result = {{"perplexity", perplexity},
                                           {"standard_error", perplexity * deviation},
                                           {"mean_nll", mean},
                                           {"tokens_scored", n},
                                           {"ctx", o.context}};
    std::printf("%s\n", result.dump().c_str());
  } else {
    std::fprintf(stderr, "\n");
    std::printf("perplexity %.4f +/- %.4f over %zu tokens, windows of %d\n", perplexity, perplexity * deviation, n,
                o.context);
  }
  return Ok{};
}

}  // namespace

void add_perplexity(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  add_model_options(*command, options->model, false);
  command->add_option("--text", options->text, "UTF-8 text file")->required();
  command->add_option("--ctx", options->context, "tokens in a window; its second half is scored")
      ->capture_default_str();
  command->add_option("--engram", options->tables, "Engram tables that are mixed with the model");
  command->add_option("--engram-alpha", options->alpha, "how much of their claim tables get; 0: nothing")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  command
      ->add_option("--engram-log-rule", options->log_rule,
                   "apply the first table by the old rule instead, alpha * log(p) on the logits, to compare")
      ->check(CLI::Range(0.0, 2.0));
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
