// main.cpp  chimere-core: logits, bench and nothing else, from the standard library alone. Builds on a bare machine
// (-DCHIMERE_CORE_ONLY=ON), where the kernels can be checked and timed without any package.
//
//   chimere-core logits --model F --ids-file IDS.i32 --out OUT.f32 [--backend B] [--step N] [--exact] [--kv-k T --kv-v
//   T] chimere-core bench  (--model F | --synthetic SPEC) [-p N] [-n N] [-r N] [-t N] [--depth N] [--backend B]
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "engine/benchmark.h"
#include "engine/score.h"
#include "models/model.h"
#include "models/synthetic.h"

namespace chimere {
namespace {

using Options = std::map<std::string, std::string>;

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--exact") {
      options[flag] = "1";
    } else if (flag.rfind("-", 0) == 0 && i + 1 < argc) {
      options[flag] = argv[++i];
    } else {
      return Error{Code::invalid_argument, "'" + flag + "': expected an option with its value"};
    }
  }
  return Result<Options>{std::move(options)};
}

std::string get(const Options& o, const std::string& flag, const std::string& fallback) {
  const auto it = o.find(flag);
  return it == o.end() ? fallback : it->second;
}

int get_int(const Options& o, const std::string& flag, int fallback) {
  const auto it = o.find(flag);
  return it == o.end() ? fallback : std::atoi(it->second.c_str());
}

Result<std::unique_ptr<models::Model>> load(const Options& o) {
  TRY_ASSIGN(const models::BackendKind backend, models::backend_from_name(get(o, "--backend", "cpu")));
  LoadOptions options;
  options.exact = o.count("--exact") > 0;
  options.n_threads = get_int(o, "-t", 0);
  const auto k = dtype_from_name(get(o, "--kv-k", "f16")), v = dtype_from_name(get(o, "--kv-v", "f16"));
  if (!k || !v) return Error{Code::invalid_argument, "--kv-k, --kv-v: expected f32, f16, q8_0 or q4_0"};
  options.kv = {*k, *v, false};
  if (!o.count("--synthetic")) return models::Model::load(get(o, "--model", ""), backend, std::move(options));
  TRY_ASSIGN(auto source, models::synthetic_source(get(o, "--synthetic", "")));
  return models::Model::load(std::move(source), backend, std::move(options));
}

Status logits(const Options& o) {
  TRY_ASSIGN(auto model, load(o));
  TRY_ASSIGN(const std::vector<int32_t> ids, engine::read_ids(get(o, "--ids-file", ""), model->n_vocab()));
  const int steps = get_int(o, "--step", 0);
  if (steps < 0 || steps > static_cast<int>(ids.size())) {
    return Error{Code::invalid_argument, "--step: expected 0 to " + std::to_string(ids.size())};
  }
  std::ofstream out(get(o, "--out", ""), std::ios::binary);
  TRY(engine::all_logits(*model, ids, steps, [&](std::span<const float> row) {
    out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
  }));
  out.close();
  if (!out) return Error{Code::io, "--out: can not be written"};
  return Ok{};
}

Status bench(const Options& o) {
  TRY_ASSIGN(auto model, load(o));
  engine::BenchmarkPlan plan;
  plan.n_prompt = get_int(o, "-p", plan.n_prompt);
  plan.n_decode = get_int(o, "-n", plan.n_decode);
  plan.repeats = get_int(o, "-r", plan.repeats);
  plan.depth = get_int(o, "--depth", 0);
  TRY_ASSIGN(const engine::BenchmarkReport report, engine::run_benchmark(*model, plan));
  const double decode = report.decode.front().tok_s.median;
  std::printf("{\"prefill_tok_s\": %.2f, \"decode_tok_s\": %.2f, \"bytes_per_token\": %.0f, \"decode_gb_s\": %.3f}\n",
              report.prefill_tok_s.median, decode, report.bytes_per_token, decode * report.bytes_per_token / 1e9);
  return Ok{};
}

Status run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  TRY_ASSIGN(const Options options, parse(argc, argv));
  if (command == "logits") return logits(options);
  if (command == "bench") return bench(options);
  return Error{Code::invalid_argument, "expected 'logits' or 'bench', found '" + command + "'"};
}

}  // namespace
}  // namespace chimere

int main(int argc, char** argv) {
  const chimere::Status status = chimere::run(argc, argv);
  if (status) return 0;
  std::fprintf(stderr, "chimere-core: %s\n", status.error().message.c_str());
  return 1;
}
