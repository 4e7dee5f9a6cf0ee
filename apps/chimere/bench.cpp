// bench.cpp  chimere bench: tokens a second, and how near that is to what the memory allows.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "common.h"
#include "engine/benchmark.h"
#include "expected_speed.h"
#include "models/synthetic.h"
#include "speculate.h"

namespace chimere::apps {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::string synthetic;
  std::string draft_model;
  engine::BenchmarkPlan plan;
  bool json = false;
};

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Result<std::unique_ptr<models::Model>> load(BenchOptions o) {
  // Other modes play drafts that cost nothing to make.
  using speculative::Mode;
  if (o.plan.speculate == Mode::mtp || o.plan.speculate == Mode::dflash) o.model.speculate = o.plan.speculate;
  for (const int n : o.plan.streams) o.model.n_sequences = std::max(o.model.n_sequences, n);
  o.model.context = o.plan.depth + std::max(o.plan.n_prompt, o.plan.n_decode);
  if (!o.model.path.empty() && !o.synthetic.empty()) {
    return Error{Code::invalid_argument, "expected either --model or --synthetic, found both"};
  }
  TRY_ASSIGN(const models::BackendKind backend, backend_of(o.model));
  if (o.model.routing != "model" && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--routing: expected a CUDA card to compute on, found none in use"};
  }
  if (o.synthetic.empty()) return load_model(o.model);
  TRY_ASSIGN(LoadOptions options, load_options(o.model));
  TRY_ASSIGN(auto source, models::synthetic_source(o.synthetic));
  const auto said = std::make_shared<std::string>();
  expect_speed(options, false, said);
  TRY_ASSIGN(auto model, models::Model::load(std::move(source), backend, std::move(options)));
  model->expect(*said);
  TRY(check_drafts(o.model, *model));
  return Result<std::unique_ptr<models::Model>>{std::move(model)};
}

// What is left to print once the model is gone.
struct Facts {
  std::string name;
  std::string architecture;
  uint64_t weight_bytes;
  uint64_t file_bytes;
  uint64_t peak_rss_bytes;
  double memory_bytes_s;  // what the machine reads, or the card copies
  double decode_bytes_s;  // what decoding one stream read; 0 when that was not measured
  std::optional<Placement> placement;
  std::string card_problem;  // why there is none although there is a card
  std::string placed;        // in words, with the speed that was expected
};

void print_json(const BenchOptions& o, const Facts& f, const engine::BenchmarkReport& report) {
  nlohmann::ordered_json streams = nlohmann::ordered_json::array();
  for (const auto& [n, t] : report.decode) {
    streams.push_back({{"streams", n}, {"decode_tok_s", t.median}, {"decode_spread", t.spread}});
  }
  nlohmann::ordered_json drafts = nlohmann::ordered_json::array();
  for (const engine::DraftTiming& d : report.drafts) {
    drafts.push_back({{"acceptance", d.acceptance},
                      {"depth", d.depth},
                      {"tokens_per_step", d.tokens_per_step},
                      {"accepted_by_position", d.accepted},
                      {"decode_tok_s", d.tok_s.median},
                      {"decode_spread", d.tok_s.spread}});
  }
  const engine::Timing decode = report.decode.empty() ? engine::Timing{} : report.decode.front().tok_s;
  nlohmann::ordered_json result = {
      {"model", f.name},
      {"architecture", f.architecture},
      {"threads", o.model.threads},
      {"n_prompt", o.plan.n_prompt},
      {"n_decode", o.plan.n_decode},
      {"depth", o.plan.depth},
      {"prefill_tok_s", report.prefill_tok_s.median},
      {"prefill_spread", report.prefill_tok_s.spread},
      {"decode_tok_s", decode.median},
      {"decode_spread", decode.spread},
      {"streams", streams},
      {"drafts", drafts},
      {"bytes_per_token", report.bytes_per_token},
      {"decode_gb_s", f.decode_bytes_s / 1e9},
      {"memory_gb_s", f.memory_bytes_s / 1e9},
      {"bandwidth_share", f.decode_bytes_s / f.memory_bytes_s},
      {"weight_bytes", f.weight_bytes},
      {"file_bytes", f.file_bytes},
      {"peak_rss_bytes", f.peak_rss_bytes},
  };
  if (report.device) {
    result["device"] = report.device->name;
    result["device_memory"] = report.device->memory;
  }
  if (!f.card_problem.empty()) result["placement"] = {{"text", f.card_problem}};
  if (f.placement) {
    result["placement"] = {{"expert_layers", f.placement->n_mixtures},
                           {"expert_layers_in_ram", f.placement->n_hosted},
                           {"layers", f.placement->n_layers},
                           {"layers_in_ram", f.placement->n_layers_in_ram},
                           {"ram_bytes", f.placement->host_bytes},
                           {"card_bytes", f.placement->card_bytes},
                           {"card_budget_bytes", f.placement->budget_bytes},
                           {"text", f.placement->text}};
  }
  const auto profile = [&](const char* key, const std::vector<FamilyTime>& families) {
    for (const FamilyTime& family : families) {
      result[key].push_back({{"family", family.name}, {"launches", family.n_launches}, {"seconds", family.seconds}});
    }
  };
  profile("decode_profile", report.decode_profile);
  profile("prefill_profile", report.prefill_profile);
  if (report.draft_pass_s > 0) result["draft_pass_s"] = report.draft_pass_s;
  if (report.between_steps_s) result["between_steps_s"] = *report.between_steps_s;
  if (report.card_experts) {
    result["experts_in_ram"] = {{"hit_share", report.card_experts->hit_share},
                                {"bytes_per_token", report.card_experts->bytes_per_token}};
  }
  if (report.experts) {
    result["experts_on_disk"] = {{"hit_share", report.experts->hit_share},
                                 {"bytes_per_token", report.experts->bytes_per_token}};
  }
  if (report.sleep) {
    result["sleep"] = {{"bytes", report.sleep->bytes},
                       {"sleep_s", report.sleep->sleep_s},
                       {"wake_s", report.sleep->wake_s},
                       {"first_step_s", report.sleep->first_step_s}};
  }
  std::printf("%s\n", result.dump().c_str());
}

void print_profile(const char* what, const std::vector<FamilyTime>& families) {
  if (families.empty()) return;
  std::printf("  %s, each family of launches by itself:\n", what);
  for (const FamilyTime& f : families) {
    std::printf("    %-22s %4d launches %9.1f us  %7.2f us each\n", f.name.c_str(), f.n_launches, 1e6 * f.seconds,
                1e6 * f.seconds / f.n_launches);
  }
}

// Of the guesses at each place of a draft, those that were taken.
std::string taken_text(const std::vector<double>& accepted) {
  std::string text;
  for (const double share : accepted) text += " " + std::to_string(static_cast<int>(100 * share + 0.5));
  return text.empty() ? "" : "; taken by position, in %:" + text;
}

void print_text(const BenchOptions& o, const Facts& f, const engine::BenchmarkReport& report) {
  std::printf("%s (%s), weights %.2f GB\n", f.name.c_str(), f.architecture.c_str(),
              static_cast<double>(f.weight_bytes) / 1e9);
  if (o.plan.n_prompt > 0) {
    std::printf("  prefill %5d      %9.1f tok/s  +/- %.1f %%\n", o.plan.n_prompt, report.prefill_tok_s.median,
                100 * report.prefill_tok_s.spread);
  }
  for (const auto& [streams, t] : report.decode) {
    if (o.plan.n_decode == 0) break;
    std::printf("  decode  %5d x %-3d%9.1f tok/s  +/- %.1f %%\n", o.plan.n_decode, streams, t.median, 100 * t.spread);
  }
  for (const engine::DraftTiming& d : report.drafts) {
    std::printf("  drafts  %3.0f %% right %9.1f tok/s  +/- %.1f %%  (%d guesses a step, %.2f tokens%s)\n",
                100 * d.acceptance, d.tok_s.median, 100 * d.tok_s.spread, d.depth, d.tokens_per_step,
                taken_text(d.accepted).c_str());
  }
  if (report.draft_pass_s > 0) {
    const char* made = o.plan.speculate == speculative::Mode::draft    ? "guess of the draft model"
                       : o.plan.speculate == speculative::Mode::dflash ? "block of the drafter"
                                                                       : "guess of the MTP block";
    std::printf("  a %s %.3f ms\n", made, 1e3 * report.draft_pass_s);
  }
  if (f.decode_bytes_s > 0) {
    const double share = f.decode_bytes_s / f.memory_bytes_s;
    std::printf("  %.1f MB a token: %.2f GB/s, %.0f %% of the %.1f GB/s this %s%s\n", report.bytes_per_token / 1e6,
                f.decode_bytes_s / 1e9, 100 * share, f.memory_bytes_s / 1e9,
                report.device ? "card copies" : "machine reads",
                share > 1 ? " (part of the model stays in the cache)" : "");
  }
  if (report.card_experts) {
    std::printf(
        "  experts in RAM: %.0f %% of those that were used were on the card, %.1f MB a token came over the bus\n",
        100 * report.card_experts->hit_share, report.card_experts->bytes_per_token / 1e6);
  }
  if (report.experts) {
    std::printf(
        "  experts on disk: %.0f %% of those that were used were in RAM, %.1f MB a token were read: %.2f GB/s\n",
        100 * report.experts->hit_share, report.experts->bytes_per_token / 1e6,
        report.experts->bytes_per_token * report.decode.front().tok_s.median / 1e9);
  }
  if (report.sleep) {
    std::printf("  sleep   %.2f GB of the card given away in %.2f s, taken again in %.2f s, first step %.3f s\n",
                static_cast<double>(report.sleep->bytes) / 1e9, report.sleep->sleep_s, report.sleep->wake_s,
                report.sleep->first_step_s);
  }
  if (report.device) std::printf("  %s: %s\n", report.device->name.c_str(), report.device->memory.c_str());
  if (!f.placed.empty()) std::printf("  %s\n", f.placed.c_str());
  if (o.plan.profile && !report.device) std::printf("  no profile: only a card has launches to be timed\n");
  print_profile("a decode step", report.decode_profile);
  if (report.between_steps_s) std::printf("    %-22s %23.1f us\n", "between steps", 1e6 * *report.between_steps_s);
  print_profile("a prompt", report.prefill_profile);
  std::printf("  peak memory %.1f MB\n", static_cast<double>(f.peak_rss_bytes) / 1e6);
}

Status run(BenchOptions o) {
  TRY_ASSIGN(auto draft_model, load_draft_model(o.draft_model, o.model));
  TRY_ASSIGN(auto model, load(o));
  o.plan.draft_model = draft_model.get();
  TRY_ASSIGN(const engine::BenchmarkReport report, engine::run_benchmark(*model, o.plan));
  Facts f{.name = model->name().empty() ? o.model.path : model->name(),
          .architecture = model->architecture(),
          .weight_bytes = model->executable().weight_bytes(),
          .file_bytes = model->file_bytes(),
          .peak_rss_bytes = peak_rss_bytes(),
          .memory_bytes_s = 0,
          .decode_bytes_s = 0,
          .placement = model->executable().placement(),
          .card_problem = model->card_problem(),
          .placed = placement_text(*model)};
  // The bandwidth test takes the memory the model gave back, so that measuring does not raise what is measured.
  model.reset();
  draft_model.reset();
  f.memory_bytes_s =
      report.device ? report.device->copy_bytes_s : engine::measure_bandwidth(o.model.threads, f.weight_bytes);
  const bool has_single = !report.decode.empty() && report.decode.front().streams == 1;
  if (has_single) f.decode_bytes_s = report.decode.front().tok_s.median * report.bytes_per_token;
  (o.json ? print_json : print_text)(o, f, report);
  return Ok{};
}

}  // namespace

void add_bench(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed");
  add_model_options(*command, options->model, false);
  command->add_option("--synthetic", options->synthetic,
                      "MODEL or MODEL:MIX, random weights of true shapes; models: " + models::synthetic_models() +
                          "; mixes: " + models::synthetic_mixes());
  command
      ->add_option("--routing", options->model.routing,
                   "on a card: which experts decoded tokens use: model, as its routers choose; uniform; zipf:S, drawn "
                   "by 1/rank^S, ranks shuffled in every layer: what random weights do not tell of a cache")
      ->capture_default_str();
  engine::BenchmarkPlan& plan = options->plan;
  command->add_option("-p,--prompt", plan.n_prompt, "tokens to prefill")->capture_default_str();
  command->add_option("-n,--decode", plan.n_decode, "tokens to decode")->capture_default_str();
  command->add_option("-r,--repeat", plan.repeats, "repetitions; the median is reported")->capture_default_str();
  command->add_option("--depth", plan.depth, "tokens already in the context")->capture_default_str();
  command->add_option("--streams", plan.streams, "sequences that decode together, e.g. 1,4,8")->delimiter(',');
  command->add_flag("--profile", plan.profile, "on a card: time by family of kernels");
  command->add_flag("--sleep", plan.sleep, "on a card: time how long it takes to give its memory away and to wake up");
  command
      ->add_option_function<std::string>(
          "--speculate",
          [options](const std::string& name) { options->plan.speculate = *speculative::mode_from_text(name); },
          "also decode with drafts of imposed acceptance: auto, as many guesses as pay; mtp, draft and dflash, the "
          "same with what it costs the MTP block, the draft model or the drafter to make them; always, --draft-max; "
          "off")
      ->check(CLI::IsMember({"auto", "off", "mtp", "draft", "dflash", "always"}))
      ->default_str("off");
  add_drafter_option(*command, options->model);
  add_draft_model_option(*command, options->draft_model);
  command->add_option("--acceptance", plan.acceptance, "chances that a guess is right, e.g. 0.6,0.75")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--draft-max", plan.draft_max, "guesses in a step, at most")
      ->check(CLI::Range(1, kDecodeTokens - 1))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
