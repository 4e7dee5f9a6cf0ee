// bench.cpp  chimere bench: tokens a second, and how near that is to what the memory allows.
#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engine/benchmark.h"
#include "models/synthetic.h"

namespace chimere::apps {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::string synthetic;
  engine::BenchmarkPlan plan;
  bool json = false;
};

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Result<std::unique_ptr<models::Model>> load(const BenchOptions& o) {
  if (o.model.path.empty() == o.synthetic.empty()) {
    return Error{Code::invalid_argument, "expected either --model or --synthetic"};
  }
  if (o.synthetic.empty()) return load_model(o.model);
  TRY_ASSIGN(const models::BackendKind backend, models::backend_from_name(o.model.backend));
  TRY_ASSIGN(LoadOptions options, load_options(o.model));
  TRY_ASSIGN(auto source, models::synthetic_source(o.synthetic));
  return models::Model::load(std::move(source), backend, std::move(options));
}

void print_json(const BenchOptions& o, models::Model& model, const engine::BenchmarkReport& report,
                double single_bytes_s, double bandwidth, uint64_t peak) {
  nlohmann::ordered_json streams = nlohmann::ordered_json::array();
  for (const auto& [n, t] : report.decode) {
    streams.push_back({{"streams", n}, {"decode_tok_s", t.median}, {"decode_spread", t.spread}});
  }
  const engine::Timing decode = report.decode.empty() ? engine::Timing{} : report.decode.front().tok_s;
  const nlohmann::ordered_json result = {
      {"model", model.name().empty() ? o.model.path : model.name()},
      {"architecture", model.architecture()},
      {"threads", o.model.threads},
      {"n_prompt", o.plan.n_prompt},
      {"n_decode", o.plan.n_decode},
      {"depth", o.plan.depth},
      {"prefill_tok_s", report.prefill_tok_s.median},
      {"prefill_spread", report.prefill_tok_s.spread},
      {"decode_tok_s", decode.median},
      {"decode_spread", decode.spread},
      {"streams", streams},
      {"bytes_per_token", report.bytes_per_token},
      {"decode_gb_s", single_bytes_s / 1e9},
      {"memory_gb_s", bandwidth / 1e9},
      {"bandwidth_share", bandwidth > 0 ? single_bytes_s / bandwidth : 0.0},
      {"weight_bytes", model.executable().weight_bytes()},
      {"file_bytes", model.file_bytes()},
      {"peak_rss_bytes", peak},
  };
  std::printf("%s\n", result.dump().c_str());
}

void print_text(const BenchOptions& o, models::Model& model, const engine::BenchmarkReport& report,
                double single_bytes_s, double bandwidth, uint64_t peak) {
  const std::string& name = model.name().empty() ? o.model.path : model.name();
  std::printf("%s (%s), weights %.2f GB\n", name.c_str(), model.architecture().c_str(),
              static_cast<double>(model.executable().weight_bytes()) / 1e9);
  if (o.plan.n_prompt > 0) {
    std::printf("  prefill %5d      %9.1f tok/s  +/- %.1f %%\n", o.plan.n_prompt, report.prefill_tok_s.median,
                100 * report.prefill_tok_s.spread);
  }
  for (const auto& [streams, t] : report.decode) {
    if (o.plan.n_decode == 0) break;
    std::printf("  decode  %5d x %-3d%9.1f tok/s  +/- %.1f %%\n", o.plan.n_decode, streams, t.median, 100 * t.spread);
  }
  if (single_bytes_s > 0) {
    std::printf("  %.1f MB a token: %.2f GB/s, %.0f %% of the %.1f GB/s this machine reads\n",
                report.bytes_per_token / 1e6, single_bytes_s / 1e9, 100 * single_bytes_s / bandwidth, bandwidth / 1e9);
  }
  std::printf("  peak memory %.1f MB\n", static_cast<double>(peak) / 1e6);
}

Status run(const BenchOptions& o) {
  TRY_ASSIGN(auto model, load(o));
  TRY_ASSIGN(const engine::BenchmarkReport report, engine::run_benchmark(*model, o.plan));
  const uint64_t peak = peak_rss_bytes();  // before the bandwidth test takes memory of its own
  const double bandwidth = engine::measure_bandwidth(o.model.threads);
  const bool has_single = !report.decode.empty() && report.decode.front().streams == 1;
  const double single = has_single ? report.decode.front().tok_s.median * report.bytes_per_token : 0;
  (o.json ? print_json : print_text)(o, *model, report, single, bandwidth, peak);
  return Ok{};
}

}  // namespace

void add_bench(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed");
  add_model_options(*command, options->model, false);
  command->get_option("--model")->required(false);
  command->add_option("--synthetic", options->synthetic,
                      "random weights of true shapes: qwen3.5-35b-a3b or qwen3.5-tiny, with an optional mix "
                      "(:iq3_s :q4_k :q4_0 :q8_0 :f16)");
  engine::BenchmarkPlan& plan = options->plan;
  command->add_option("-p,--prompt", plan.n_prompt, "tokens to prefill")->capture_default_str();
  command->add_option("-n,--decode", plan.n_decode, "tokens to decode")->capture_default_str();
  command->add_option("-r,--repeat", plan.repeats, "repetitions; the median is reported")->capture_default_str();
  command->add_option("--depth", plan.depth, "tokens already in the context")->capture_default_str();
  command->add_option("--streams", plan.streams, "sequences that decode together, e.g. 1,4,8")->delimiter(',');
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
