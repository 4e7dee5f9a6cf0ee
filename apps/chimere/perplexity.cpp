// perplexity.cpp  chimere perplexity: how well a model predicts a text.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engine/score.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string text;
  int context = 512;
  bool json = false;
};

// The text is cut into windows of `context` tokens, each read on its own; the second half of a window is scored, so
// that every scored token has at least half a window before it.
Status run(const PerplexityOptions& o) {
  if (o.context < 2) return Error{Code::invalid_argument, "--ctx: expected at least 2"};
  std::ifstream in(o.text, std::ios::binary);
  if (!in) return Error{Code::io, o.text + ": can not be opened"};
  const std::string text(std::istreambuf_iterator<char>(in), {});
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
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
    TRY_ASSIGN(const std::vector<float> logprobs, engine::score_tokens(*model, window));
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
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
