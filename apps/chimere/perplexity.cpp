// perplexity.cpp  chimere perplexity: how well a model predicts a text.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engine/score.h"
#include "engram/table_memory.h"
#include "quantizer/divergence.h"
#include "text_windows.h"
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
  std::string save_logits, kld;
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

void show_windows(const PerplexityOptions& o, size_t done, size_t total) {
  if (!o.json) std::fprintf(stderr, "\r%zu of %zu windows%s", done, total, done == total ? "\n" : "");
}

Status save_logits(const PerplexityOptions& o, models::Model& model, const Tokenizer& tokenizer) {
  TRY_ASSIGN(const quantizer::Windows windows, read_windows({o.text}, tokenizer, o.context, 0));
  TRY(quantizer::write_base(model, windows, o.save_logits,
                            [&](size_t done) { show_windows(o, done, windows.n_windows()); }));
  std::printf("%s: predictions of %zu tokens\n", o.save_logits.c_str(), windows.n_windows() * windows.rows_in_window());
  return Ok{};
}

Status compare_with_base(const PerplexityOptions& o, models::Model& model) {
  TRY_ASSIGN(const quantizer::Base base, quantizer::open_base(o.kld));
  const size_t n = base.windows.n_windows();
  TRY_ASSIGN(const quantizer::Divergence d,
             quantizer::measure_divergence(model, base, [&](size_t done) { show_windows(o, done, n); }));
  if (o.json) {
    const nlohmann::ordered_json result = {{"tokens_scored", d.n_tokens},
                                           {"mean_kld", d.mean},
                                           {"mean_kld_standard_error", d.mean_error},
                                           {"median_kld", d.median},
                                           {"kld_99", d.p99},
                                           {"kld_99_9", d.p999},
                                           {"max_kld", d.largest},
                                           {"same_top", d.same_top},
                                           {"same_top_standard_error", d.same_top_error},
                                           {"perplexity", d.perplexity},
                                           {"base_perplexity", d.base_perplexity},
                                           {"perplexity_ratio", d.ratio},
                                           {"perplexity_ratio_standard_error", d.ratio_error},
                                           {"ctx", base.windows.context}};
    std::printf("%s\n", result.dump().c_str());
    return Ok{};
  }
  std::printf(
      "KL divergence over %zu tokens: mean %.6f +/- %.6f, median %.6f, 99 %% %.5f, 99.9 %% %.5f, largest %.4f\n",
      d.n_tokens, d.mean, d.mean_error, d.median, d.p99, d.p999, d.largest);
  std::printf("same best token %.3f +/- %.3f %%\n", 100 * d.same_top, 100 * d.same_top_error);
  std::printf("perplexity %.4f, of the base %.4f, ratio %.5f +/- %.5f\n", d.perplexity, d.base_perplexity, d.ratio,
              d.ratio_error);
  return Ok{};
}

// The text is cut into windows of `context` tokens, each read on its own; the second half of a window is scored, so
// that every scored token has at least half a window before it.
Status run(const PerplexityOptions& o) {
  if (o.context < 2) return Error{Code::invalid_argument, "--ctx: expected at least 2"};
  if (o.kld.empty() == o.text.empty()) {
    return Error{Code::invalid_argument, o.kld.empty() ? "expected --text, or --kld with a file that has its tokens"
                                                       : "--kld: the file has the text's tokens, --text is not needed"};
  }
  TRY_ASSIGN(auto model, load_model(o.model));
  if (!o.kld.empty()) return compare_with_base(o, *model);
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  if (!o.save_logits.empty()) return save_logits(o, *model, tokenizer);
  TRY_ASSIGN(const Tables tables, open_tables(o, tokenizer));
  TRY_ASSIGN(const quantizer::Windows windows, read_windows({o.text}, tokenizer, o.context, 0));
  const size_t n_windows = windows.n_windows();
  double sum = 0, sum_squares = 0;
  size_t n = 0;
  for (size_t w = 0; w < n_windows; ++w) {
    TRY_ASSIGN(const std::vector<float> logprobs, score(o, *model, tables, windows.window(w)));
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
  command->footer(
      "How much a quantised file differs from the original, token by token (KL divergence, in nats):\n\n"
      "  chimere perplexity --model big.gguf --text some.txt --save-logits big.kld\n"
      "  chimere perplexity --model small.gguf --kld big.kld\n\n"
      "With --exact on both, it is the weights alone that differ.");
  command->add_option("--text", options->text, "UTF-8 text file");
  command->add_option(
      "--save-logits", options->save_logits,
      "write the model's predictions of the text to this file, to compare others with: two bytes for each "
      "token scored and word of the vocabulary");
  command->add_option("--kld", options->kld, "compare with the predictions in this file, on the text they are of");
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
