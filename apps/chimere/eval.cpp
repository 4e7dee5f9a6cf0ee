// eval.cpp  chimere eval odo: how much each stage of ODO helps, on questions with known answers.
#include <array>
#include <string>

#include "commands.h"
#include "common.h"
#include "eval_stages.h"

namespace chimere::apps {
namespace {

struct Stage {
  const char* name;
  Status (*run)(const EvalOptions&);
};

// A stage that can be measured is a line here and a file eval_NAME.cpp.
constexpr std::array kStages = {
    Stage{"all", eval_all},           Stage{"routing", eval_routing}, Stage{"tools", eval_tools},
    Stage{"entropy", eval_entropy},   Stage{"search", eval_search},   Stage{"gate", eval_gate},
    Stage{"few_shot", eval_few_shot}, Stage{"sources", eval_sources}, Stage{"retrieval", eval_retrieval}};

Status run_stage(const EvalOptions& o) {
  for (const Stage& stage : kStages) {
    if (o.stage == stage.name) return stage.run(o);
  }
  std::string known;
  for (const Stage& stage : kStages) known += std::string(known.empty() ? "" : ", ") + stage.name;
  return Error{Code::invalid_argument, "--stage: expected " + known + ", found '" + o.stage + "'"};
}

}  // namespace

void add_eval(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Measure how good answers are, on questions with known answers");
  command->require_subcommand(1);
  CLI::App* odo = command->add_subcommand("odo", "Measure the stages of ODO");
  add_model_options(*odo, options->model, false);
  odo->add_option(
         "--stage", options->stage,
         "which one: all (each stage on and off); routing; tools (sums of two operations, made by the program); "
         "entropy (when to think); search (several answers, and the best); gate (bad answers once more); "
         "few_shot (accepted answers as examples); sources (n-grams of texts that were found); retrieval (notes that "
         "are "
         "in a collection)")
      ->capture_default_str();
  odo->add_option("--questions", options->questions, "routing: lines of: route, tab, source, tab, question");
  odo->add_option("-n", options->n, "how many tasks of a kind; of routing: as many as there are")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  odo->add_option("--arms", options->arms,
                  "only rows that have this in their name, but for routing, tools and entropy");
  odo->add_option("--seed", options->seed, "of the tasks that are made, but for routing, tools and entropy")
      ->capture_default_str();
  odo->add_option("--routes", options->routes, "folder of routes; without it those in the box");
  odo->add_option("--lora", options->adapters, "NAME=FILE[:SCALE], a LoRA adapter; `prm` judges answers");
  odo->add_flag("--no-judge", options->no_judge, "leave out the judge that lies beside the model (MODEL.prm.gguf)");
  odo->add_flag("--no-model", options->no_model, "leave out the stages that need the model");
  odo->add_option("--embedding-model", options->embedding_model,
                  "routing: GGUF file of the model whose vectors are compared, else the encoder in the box; none: the "
                  "model itself");
  odo->add_option("--dump", options->dump, "write what each stage made of each question to this file, as JSON lines");
  odo->add_flag("--json", options->json, "print one JSON object");
  odo->callback([options, &outcome] {
    if (Status s = run_stage(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
