// improve_train.cpp  `chimere improve train`: learn an adapter from examples, with the model as it serves.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "improve/examples/example_file.h"
#include "improve/mezo/trainer.h"

namespace chimere::apps {
namespace {

struct TrainCommand {
  ModelOptions model;
  improve::TrainOptions train;
  std::string examples, held_out, out, method = "head", schedule = "linear";
  bool json = false, has_curve = false;
};

nlohmann::ordered_json score_json(const improve::ExampleScore& s) {
  return {{"loss", s.loss}, {"token_accuracy", s.accuracy}, {"exact", s.exact}, {"tokens", s.tokens}};
}

Status run_training(TrainCommand o) {
  o.train.method = o.method == "head" ? improve::TrainMethod::head : improve::TrainMethod::mezo;
  o.train.schedule = o.schedule == "constant" ? improve::RateSchedule::constant
                     : o.schedule == "cosine" ? improve::RateSchedule::cosine
                                              : improve::RateSchedule::linear;
  TRY_ASSIGN(const auto model, load_model(o.model));
  TRY_ASSIGN(const auto examples, improve::read_examples_file(o.examples, *model));
  const bool shows = isatty(STDERR_FILENO);
  TRY_ASSIGN(const improve::TrainReport report,
             improve::train_adapter(*model, examples, o.train, o.out, [&](const improve::TrainStep& s) {
               if (shows)
                 std::fprintf(stderr, "\rstep %d of %d  loss %.4f  %.0f s ", s.step, s.steps, s.loss, s.seconds);
               return true;
             }));
  if (shows) std::fprintf(stderr, "\n");
  nlohmann::ordered_json json = {{"out", o.out},
                                 {"method", o.method},
                                 {"examples", examples.size()},
                                 {"parameters", report.parameters},
                                 {"steps", report.curve.empty() ? 0 : report.curve.back().step},
                                 {"resumed_at", report.resumed_at},
                                 {"skipped", report.skipped},
                                 {"seconds", report.seconds},
                                 {"tokens", report.tokens},
                                 {"ran_out_of_time", report.ran_out_of_time},
                                 {"loss_before", report.loss_before},
                                 {"loss_after", report.loss_after},
                                 {"kept_divergence", report.kept_divergence}};
  if (!o.held_out.empty()) {
    TRY_ASSIGN(const auto held_out, improve::read_examples_file(o.held_out, *model));
    TRY_ASSIGN(const auto before, improve::score_examples(*model, held_out, o.train.start));
    TRY_ASSIGN(const auto after, improve::score_examples(*model, held_out, o.out));
    json["held_out"] = {{"examples", held_out.size()}, {"before", score_json(before)}, {"after", score_json(after)}};
  }
  if (o.has_curve) {
    for (const improve::TrainStep& s : report.curve) json["curve"].push_back({s.step, s.loss, s.seconds, s.tokens});
  }
  if (o.json) {
    std::printf("%s\n", json.dump().c_str());
    return Ok{};
  }
  std::printf("%s: loss %.4f -> %.4f nats a token, %d steps in %.1f s, %llu tokens read%s\n", o.out.c_str(),
              report.loss_before, report.loss_after, json["steps"].get<int>(), report.seconds,
              static_cast<unsigned long long>(report.tokens), report.ran_out_of_time ? "; the time was up" : "");
  if (json.contains("held_out")) {
    for (const char* when : {"before", "after"}) {
      const auto& s = json["held_out"][when];
      std::printf("  held out, %-6s loss %.4f, %.1f %% of tokens first choice, %.1f %% of answers exact\n", when,
                  s["loss"].get<double>(), 100 * s["token_accuracy"].get<double>(), 100 * s["exact"].get<double>());
    }
  }
  return Ok{};
}

}  // namespace

void add_improve_train(CLI::App& improve, Outcome& outcome) {
  auto o = std::make_shared<TrainCommand>();
  CLI::App* command = improve.add_subcommand("train", "Learn a LoRA adapter from examples (docs/improve-lora.md)");
  command->footer(
      "Examples are lines of JSON: {\"prompt\": ..., \"answer\": ...}, {\"messages\": [...]} or {\"text\": ...};\n"
      "\"weight\" counts one more, \"keep\": true makes it one of what shall stay as it is.\n\n"
      "  chimere improve train --examples mine.jsonl --out mine.gguf && chimere chat --lora mine=mine.gguf");
  add_model_options(*command, o->model, false);
  improve::TrainOptions& t = o->train;
  command->add_option("--examples", o->examples, "file of examples")->required();
  command->add_option("--out", o->out, "the adapter to write")->required();
  command->add_option("--held-out", o->held_out, "file of examples to measure on, before and after");
  command
      ->add_option("--method", o->method,
                   "head: the output head, by its gradient. mezo: any matrices, by forward passes")
      ->check(CLI::IsMember({"head", "mezo"}))
      ->capture_default_str();
  command->add_option("--rank", t.rank, "of the change")->capture_default_str();
  command->add_option("--alpha", t.alpha, "a change counts alpha / rank")->capture_default_str();
  command->add_option("--targets", t.targets,
                      "mezo: regular expression over names of matrices; else what the last block adds");
  command->add_option("--start", t.start, "an adapter to go on from")->check(CLI::ExistingFile);
  command->add_option("--steps", t.steps, "else 400 (head), 600 (mezo)")->check(at_least(0));
  command->add_option("--batch", t.batch, "of a step: answer tokens (head), examples (mezo)")->check(at_least(0));
  command->add_option("--rate", t.learning_rate, "learning rate")->check(at_least(0));
  command->add_option("--eps", t.eps, "mezo: how far apart the two passes are")->check(at_least(0));
  command->add_option("--directions", t.directions, "mezo: pairs of passes in a step")->capture_default_str();
  command->add_option("--momentum", t.momentum, "mezo: of the steps")->capture_default_str();
  command->add_flag("--train-a", t.train_a, "mezo: learn A, too; else it stays as drawn");
  command->add_option("--decay", t.decay, "head: of the weights, a step")->capture_default_str();
  command->add_option("--keep", t.keep, "weight of examples that are kept")->capture_default_str();
  command->add_option("--own-text", t.own_text,
                      "tokens that the model writes itself, to keep; else 3072 (head), 0 (mezo)");
  command->add_option("--schedule", o->schedule, "of the rate")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}))
      ->capture_default_str();
  command->add_option("--seed", t.seed, "of what is drawn")->capture_default_str();
  command->add_option("--seconds", t.seconds, "stop learning after so many")->check(at_least(0));
  command->add_option("--checkpoint", t.checkpoint, "file that a run which was stopped goes on from");
  command->add_flag("--json", o->json, "print one JSON object");
  command->add_flag("--curve", o->has_curve, "with --json: step, loss, seconds and tokens of every step");
  command->callback([o, &outcome] {
    if (Status done = run_training(*o); !done) outcome.code = fail(done.error());
  });
}

}  // namespace chimere::apps
