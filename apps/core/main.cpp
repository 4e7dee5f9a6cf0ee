// main.cpp  chimere-core: logits, their comparison, bench and what checks need, from the standard library alone. Builds
// on a bare machine (-DCHIMERE_CORE_ONLY=ON), where the kernels can be checked and timed without any package.
//
//   chimere-core logits  --model F --ids-file IDS.i32 --out OUT.f32 [--backend B] [--step N] [--exact]
//                        [--kv-k T --kv-v T] [--cpu-moe N|all|auto] [--adapter FILE[=SCALE]] [-t N]
//   chimere-core hidden  the same without --step and --adapter: final hidden states, of encoders too
//   chimere-core adapter --model F --out FILE [--rank N] [--seed N]: a LoRA adapter of random values
//   chimere-core learn   --model F --examples IDS.txt --out FILE [--held-out IDS.txt] [--method head|mezo] [--rank N]
//                        [--targets REGEX] [--steps N] [--batch N] [--rate X] [--eps X] [--directions N] [--seconds N]
//                        [--start FILE]: a LoRA adapter that is learned
//   chimere-core contract --model F --ids-file IDS.i32 [--backend B] [--exact] [--kv-k T --kv-v T] [--cpu-moe N|all|auto]
//                        [--adapter FILE[=SCALE]]
//   chimere-core compare --expected A.f32 --found B.f32 --rows N
//   chimere-core bench   (--model F | --synthetic SPEC) [-p N] [-n N] [-r N] [-t N] [--depth N] [--streams N,..]
//                        [--backend B] [--vram BYTES] [--cpu-moe N|all|auto] [--gpu-layers N|all|auto] [--ctx N]
//                        [--profile] [--sleep]
//                        [--ram BYTES --experts-folder FOLDER] [--ram-experts auto|cpu|card]
//                        [--routing model|uniform|zipf:S]
//                        [--speculate auto|mtp|draft|dflash|always --acceptance P,.. --draft-max N --draft-depths N,..]
//                        [--draft-model F] [--drafter F]
//   chimere-core streams (--model F | --synthetic SPEC) [-p N] [-n N] [-r PAIRS] [--streams N] [--speculate MODE]
//                        [--backend B] [--drafter F]: answers together, with guesses and without, by turns
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "adapters.h"
#include "cache/sequence.h"
#include "contract.h"
#include "engine/benchmark.h"
#include "engine/score.h"
#include "learn.h"
#include "models/model.h"
#include "models/synthetic.h"
#include "streams.h"

namespace chimere {
namespace {

using Options = std::map<std::string, std::string>;

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--exact" || flag == "--profile" || flag == "--sleep") {
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

// Of a list with commas.
std::vector<double> numbers(const std::string& text) {
  std::vector<double> all;
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    all.push_back(std::strtod(at, &end));
    at = *end == ',' ? end + 1 : "";
  }
  return all;
}

// Of a benchmark: at least one, and each at least one.
std::vector<int> stream_numbers(const Options& o) {
  std::vector<int> all;
  for (const double n : numbers(get(o, "--streams", "1"))) all.push_back(std::max(1, static_cast<int>(n)));
  if (all.empty()) all.push_back(1);
  return all;
}

// for_engine: for answers that an engine writes, and not for batches that are made by hand.
Result<std::unique_ptr<models::Model>> load(const Options& o, bool for_engine = false) {
  LoadOptions options;
  options.exact = o.count("--exact") > 0;
  options.n_threads = get_int(o, "-t", 0);
  const std::string vram = get(o, "--vram", "0");
  if (vram.empty() || vram.find_first_not_of("0123456789") != std::string::npos) {
    return Error{Code::invalid_argument, "--vram: expected a number of bytes, found '" + vram + "'"};
  }
  options.device_bytes = std::strtoull(vram.c_str(), nullptr, 10);
  const bool no_card = o.count("--vram") > 0 && options.device_bytes == 0;
  TRY_ASSIGN(const models::BackendKind backend,
             models::backend_from_name(get(o, "--backend", no_card ? "cpu" : "auto")));
  options.ram_bytes = std::strtoull(get(o, "--ram", "0").c_str(), nullptr, 10);
  options.experts_folder = get(o, "--experts-folder", o.count("--ram") ? "." : "");
  TRY_ASSIGN(options.cpu_moe, cpu_moe_from_text(get(o, "--cpu-moe", "auto")));
  TRY_ASSIGN(options.gpu_layers, gpu_layers_from_text(get(o, "--gpu-layers", "auto")));
  TRY_ASSIGN(options.ram_experts, ram_experts_from_text(get(o, "--ram-experts", "auto")));
  TRY_ASSIGN(options.imposed_skew, imposed_skew_from_text(get(o, "--routing", "model")));
  if (options.cpu_moe != 0 && options.cpu_moe != kFittingMixtures && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--cpu-moe: expected a CUDA card to compute on, found none in use"};
  }
  if (options.gpu_layers != kFittingLayers && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--gpu-layers: expected a CUDA card to compute on, found none in use"};
  }
  const auto k = dtype_from_name(get(o, "--kv-k", "f16")), v = dtype_from_name(get(o, "--kv-v", "f16"));
  if (!k || !v) return Error{Code::invalid_argument, "--kv-k, --kv-v: expected f32, f16, q8_0 or q4_0"};
  options.kv = {*k, *v, false};
  const std::vector<int> streams = stream_numbers(o);
  options.n_sequences = *std::max_element(streams.begin(), streams.end());
  options.context_tokens = std::max(0, get_int(o, "--ctx", 0));
  if (o.count("--depth")) options.context_tokens = get_int(o, "--depth", 0) + models::kUsualContext;
  options.drafts = get(o, "--speculate", "off") == "mtp";
  if (for_engine) {
    TRY_ASSIGN(const speculative::Mode mode, speculative::mode_from_text(get(o, "--speculate", "off")));
    options.drafts = speculative::uses_draft_pass(mode);
    options.decode_rows = std::max(options.decode_rows, options.n_sequences);
  }
  options.drafter = get(o, "--drafter", "");
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
  TRY_ASSIGN(const AdapterSet adapters, adapter_argument(get(o, "--adapter", ""), *model));
  const auto write = [&](std::span<const float> row) {
    out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
  };
  TRY(engine::all_logits(*model, ids, steps, write, adapters.uses.empty() ? nullptr : &adapters));
  out.close();
  if (!out) return Error{Code::io, "--out: can not be written"};
  return Ok{};
}

// The final hidden states of every token, of a text that is read as a whole.
Status hidden(const Options& o) {
  TRY_ASSIGN(auto model, load(o));
  TRY_ASSIGN(const std::vector<int32_t> ids, engine::read_ids(get(o, "--ids-file", ""), model->n_vocab()));
  const int n = static_cast<int>(ids.size());
  if (n > model->executable().max_rows()) {
    return Error{Code::invalid_argument, "--ids-file: expected at most " +
                                             std::to_string(model->executable().max_rows()) + " tokens, found " +
                                             std::to_string(n)};
  }
  TRY_ASSIGN(Sequence sequence, Sequence::create(model->executable()));
  TRY_ASSIGN(const Slice slice, sequence.begin(n));
  Batch batch{ids, {slice}, {}};
  for (int i = 0; i < n; ++i) batch.logit_rows.push_back(i);
  std::vector<float> rows(ids.size() * static_cast<size_t>(model->d_model()));
  TRY(model->executable().run(batch, {.hidden = rows.data()}));
  std::ofstream out(get(o, "--out", ""), std::ios::binary);
  out.write(reinterpret_cast<const char*>(rows.data()), static_cast<std::streamsize>(rows.size() * sizeof(float)));
  out.close();
  if (!out) return Error{Code::io, "--out: can not be written"};
  return Ok{};
}

Status adapter(const Options& o) {
  return write_random_adapter(get(o, "--model", ""), get_int(o, "--rank", 16),
                              static_cast<uint64_t>(get_int(o, "--seed", 1)), get(o, "--out", ""));
}

Status learn_adapter(const Options& o) {
  TRY_ASSIGN(auto model, load(o));
  improve::TrainOptions t;
  const std::string method = get(o, "--method", "head");
  if (method != "head" && method != "mezo") {
    return Error{Code::invalid_argument, "--method: expected head or mezo, found '" + method + "'"};
  }
  const auto number = [&](const char* flag, double fallback) {
    return o.count(flag) ? std::atof(o.at(flag).c_str()) : fallback;
  };
  t.method = method == "head" ? improve::TrainMethod::head : improve::TrainMethod::mezo;
  t.rank = get_int(o, "--rank", t.rank);
  t.targets = get(o, "--targets", "");
  t.start = get(o, "--start", "");
  t.steps = get_int(o, "--steps", 0);
  t.batch = get_int(o, "--batch", 0);
  t.directions = get_int(o, "--directions", 1);
  t.learning_rate = static_cast<float>(number("--rate", 0));
  t.eps = static_cast<float>(number("--eps", 0));
  t.seconds = number("--seconds", 0);
  return learn(*model, get(o, "--examples", ""), get(o, "--held-out", ""), t, get(o, "--out", ""));
}

Result<std::vector<float>> read_floats(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  const std::streamoff bytes = in.tellg();
  std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float));
  in.seekg(0).read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return Result<std::vector<float>>{std::move(values)};
}

// How far two files of logits are apart: the largest difference, the mean Kullback-Leibler divergence in nats, and the
// share of rows with the same winner.
Status compare(const Options& o) {
  TRY_ASSIGN(const std::vector<float> expected, read_floats(get(o, "--expected", "")));
  TRY_ASSIGN(const std::vector<float> found, read_floats(get(o, "--found", "")));
  const int rows = get_int(o, "--rows", 0);
  if (rows < 1 || expected.empty() || expected.size() != found.size() || expected.size() % rows != 0) {
    return Error{Code::invalid_argument, "compare: expected two files of --rows equal rows, found " +
                                             std::to_string(expected.size()) + " and " + std::to_string(found.size()) +
                                             " values for " + std::to_string(rows) + " rows"};
  }
  const size_t v = expected.size() / rows;
  double worst = 0, divergence = 0;
  int same = 0;
  for (size_t at = 0; at < expected.size(); at += v) {
    const std::span<const float> p(&expected[at], v), q(&found[at], v);
    const double lp = engine::log_sum_exp(p), lq = engine::log_sum_exp(q);
    for (size_t i = 0; i < v; ++i) {
      const double d = std::abs(static_cast<double>(p[i]) - q[i]);
      worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
      divergence += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
    }
    same += std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
  }
  std::printf("{\"max_difference\": %.2e, \"kl\": %.2e, \"same_top\": %.4f}\n", worst, divergence / rows,
              static_cast<double>(same) / rows);
  return Ok{};
}

// Null when none was given. It is a file whatever the model is.
Result<std::unique_ptr<models::Model>> load_draft_model(Options o) {
  if (!o.count("--draft-model")) return std::unique_ptr<models::Model>();
  o["--model"] = o.at("--draft-model");
  for (const char* of_the_model : {"--synthetic", "--cpu-moe", "--gpu-layers", "--speculate"}) o.erase(of_the_model);
  return load(o);
}

Status bench(const Options& o) {
  TRY_ASSIGN(const auto draft_model, load_draft_model(o));
  TRY_ASSIGN(auto model, load(o));
  engine::BenchmarkPlan plan;
  plan.draft_model = draft_model.get();
  plan.n_prompt = get_int(o, "-p", plan.n_prompt);
  plan.n_decode = get_int(o, "-n", plan.n_decode);
  plan.repeats = get_int(o, "-r", plan.repeats);
  plan.depth = get_int(o, "--depth", 0);
  plan.streams = stream_numbers(o);
  plan.profile = o.count("--profile") > 0;
  plan.sleep = o.count("--sleep") > 0;
  TRY_ASSIGN(plan.speculate, speculative::mode_from_text(get(o, "--speculate", "off")));
  if (o.count("--acceptance")) plan.acceptance = numbers(o.at("--acceptance"));
  for (const double depth : numbers(get(o, "--draft-depths", ""))) plan.draft_depths.push_back(static_cast<int>(depth));
  plan.draft_max = std::clamp(get_int(o, "--draft-max", plan.draft_max), 1, kDecodeTokens - 1);
  TRY_ASSIGN(const engine::BenchmarkReport report, engine::run_benchmark(*model, plan));
  const double decode = report.decode.front().tok_s.median;
  std::printf(
      "{\"prefill_tok_s\": %.2f, \"decode_tok_s\": %.2f, \"bytes_per_token\": %.0f, \"decode_gb_s\": %.3f, "
      "\"copy_gb_s\": %.1f}\n",
      report.prefill_tok_s.median, decode, report.bytes_per_token, decode * report.bytes_per_token / 1e9,
      report.device ? report.device->copy_bytes_s / 1e9 : 0.0);
  for (const engine::StreamTiming& d : report.decode) {
    if (report.decode.size() == 1) break;
    const double tok_s = d.tok_s.median;
    std::printf("%2d streams %.2f tok/s +- %.1f %%, a step of them %.1f us\n", d.streams, tok_s, 100 * d.tok_s.spread,
                1e6 * d.streams / tok_s);
  }
  for (const engine::DraftTiming& d : report.drafts) {
    std::printf("drafts   %.2f right, %d guesses a step, %.2f tokens a step: %.2f tok/s\n", d.acceptance, d.depth,
                d.tokens_per_step, d.tok_s.median);
  }
  for (const auto& [rows, seconds] : report.draft_step_s) {
    std::printf("draft of %2d rows, all but one taken back %.1f us\n", rows, 1e6 * seconds);
  }
  const bool in_blocks = plan.speculate == speculative::Mode::dflash;
  const char* made = plan.draft_model ? "guess of the draft model"
                     : in_blocks      ? "block of the drafter"
                                      : "guess of the MTP block";
  if (report.draft_pass_s > 0) std::printf("a %s %.1f us\n", made, 1e6 * report.draft_pass_s);
  if (report.experts) {
    std::printf("  experts on disk: %.1f %% of uses in RAM, %.1f MB a token read\n", 100 * report.experts->hit_share,
                report.experts->bytes_per_token / 1e6);
  }
  if (report.card_experts) {
    std::printf("  experts in RAM: %.1f %% of uses on the card, %.1f MB a token over the bus\n",
                100 * report.card_experts->hit_share, report.card_experts->bytes_per_token / 1e6);
  }
  if (report.sleep) {
    std::printf("sleep    %.2f GB given away in %.3f s, taken again in %.3f s, first step %.3f s\n",
                static_cast<double>(report.sleep->bytes) / 1e9, report.sleep->sleep_s, report.sleep->wake_s,
                report.sleep->first_step_s);
  }
  if (report.device) std::fprintf(stderr, "%s: %s\n", report.device->name.c_str(), report.device->memory.c_str());
  if (const auto placed = model->executable().placement()) std::fprintf(stderr, "%s\n", placed->text.c_str());
  for (const auto* profile : {&report.decode_profile, &report.prefill_profile}) {
    for (const FamilyTime& f : *profile) {
      std::printf("%-8s %-22s %4d launches %9.1f us  %7.2f us each\n",
                  profile == &report.decode_profile ? "decode" : "prefill", f.name.c_str(), f.n_launches,
                  1e6 * f.seconds, 1e6 * f.seconds / f.n_launches);
    }
  }
  if (report.between_steps_s) std::printf("decode   between steps %32.1f us\n", 1e6 * *report.between_steps_s);
  return Ok{};
}

Status streams(Options o) {
  StreamsPlan plan;
  plan.streams = std::max(1, get_int(o, "--streams", plan.streams));
  plan.n_prompt = std::max(1, get_int(o, "-p", plan.n_prompt));
  plan.n_decode = std::max(1, get_int(o, "-n", plan.n_decode));
  plan.repeats = std::max(1, get_int(o, "-r", plan.repeats));
  o["--streams"] = std::to_string(plan.streams);
  o.try_emplace("--speculate", speculative::name(plan.speculate));
  TRY_ASSIGN(plan.speculate, speculative::mode_from_text(o.at("--speculate")));
  TRY_ASSIGN(const auto model, load(o, true));
  return time_streams(*model, plan);
}

Status contract(const Options& o) {
  TRY_ASSIGN(auto model, load(o));
  TRY_ASSIGN(const std::vector<int32_t> ids, engine::read_ids(get(o, "--ids-file", ""), model->n_vocab()));
  TRY_ASSIGN(const AdapterSet adapters, adapter_argument(get(o, "--adapter", ""), *model));
  return check_contract(*model, ids, adapters.uses.empty() ? nullptr : &adapters);
}

Status run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  TRY_ASSIGN(const Options options, parse(argc, argv));
  if (command == "logits") return logits(options);
  if (command == "hidden") return hidden(options);
  if (command == "adapter") return adapter(options);
  if (command == "learn") return learn_adapter(options);
  if (command == "compare") return compare(options);
  if (command == "bench") return bench(options);
  if (command == "contract") return contract(options);
  if (command == "streams") return streams(options);
  return Error{Code::invalid_argument,
               "expected 'logits', 'hidden', 'adapter', 'learn', 'compare', 'contract', 'bench' or 'streams', found '" +
                   command + "'"};
}

}  // namespace
}  // namespace chimere

int main(int argc, char** argv) {
  const chimere::Status status = chimere::run(argc, argv);
  if (status) return 0;
  std::fprintf(stderr, "chimere-core: %s\n", status.error().message.c_str());
  return 1;
}
