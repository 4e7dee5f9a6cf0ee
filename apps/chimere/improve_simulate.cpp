// improve_simulate.cpp  `chimere improve simulate`: a made-up person's week, from one seed, and a summary of several.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "commands.h"
#include "common.h"
#include "improve/job.h"
#include "improve/simulated_week.h"
#include "orchestrator/chat_model.h"

namespace chimere::apps {
namespace {

struct SimulateOptions {
  ModelOptions model;
  uint64_t seed = 1;
  int nights = 7;
  std::string folder, out, plot;
  std::vector<std::string> results, kinds;
};

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) return Error{Code::io, path + ": can not be written"};
  return Ok{};
}

Status summarise(const SimulateOptions& o) {
  std::vector<std::string> texts;
  for (const std::string& path : o.results) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Code::io, path + ": can not be opened"};
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  TRY_ASSIGN(const improve::WeekSummary summary, improve::summarise_weeks(texts));
  std::printf("%s", summary.markdown.c_str());
  return o.plot.empty() ? Status{Ok{}} : write_text(o.plot, summary.svg);
}

Status simulate(const SimulateOptions& o) {
  if (!o.results.empty()) return summarise(o);
  if (o.folder.empty()) return Error{Code::invalid_argument, "--dir: expected a folder for the week, found none"};
  improve::WeekOptions week;
  week.seed = o.seed;
  week.nights = o.nights;
  week.folder = o.folder;
  if (!o.kinds.empty()) week.kinds = o.kinds;
  if (shipped_guard().empty() || shipped_general_text().empty()) {
    return Error{Code::not_found, "the questions and the text that guard general ability are not beside the program"};
  }
  TRY_ASSIGN(week.guard, improve::read_guard(shipped_guard()));
  TRY_ASSIGN(week.general, improve::read_passages(shipped_general_text()));
  week.tell = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(auto chat, orchestrator::ChatModel::from_model(std::move(model)));
  const std::string notes = o.folder + "/notes";
  std::error_code error;
  std::filesystem::create_directories(notes, error);
  chat.open_memories(notes);
  improve::Workbench bench(std::move(chat), 1024);
  TRY_ASSIGN(const std::string result, improve::simulate_week(bench, week));
  if (o.out.empty()) std::printf("%s\n", result.c_str());
  return o.out.empty() ? Status{Ok{}} : write_text(o.out, result + "\n");
}

}  // namespace

void add_improve_simulate(CLI::App& command, Outcome& outcome) {
  auto o = std::make_shared<SimulateOptions>();
  o->model.backend = "cpu";
  CLI::App* sub = command.add_subcommand(
      "simulate", "measure the whole of it: a made-up person's week, seven nights, an exam after each");
  add_model_options(*sub, o->model, false);
  sub->add_option("--seed", o->seed, "of the person and of all that is drawn")->capture_default_str();
  sub->add_option("--nights", o->nights, "how many")->check(CLI::Range(1, 7))->capture_default_str();
  sub->add_option("--dir", o->folder, "where the week lies; one that was ended goes on there");
  sub->add_option("--kinds", o->kinds,
                  "of the jobs that run, in this order; else closing, words, examples, lora, engram, prompts")
      ->delimiter(',')
      ->check(CLI::IsMember(improve::job_kinds()));
  sub->add_option("--out", o->out, "write the result to this file instead of the terminal");
  sub->add_option("--summary", o->results, "instead: a table of these results, one file for each seed");
  sub->add_option("--plot", o->plot, "with --summary: write the plot of the nights to this file, as SVG");
  sub->callback([o, &outcome] {
    if (Status done = simulate(*o); !done) outcome.code = fail(done.error());
  });
}

}  // namespace chimere::apps
