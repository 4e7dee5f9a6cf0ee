// improve_runs.cpp  `chimere improve run|list|show|promote|rollback|forget|report`: one try to become better, and what
// came of all of them.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/platform/stand_still.h"
#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "gguf/gguf.h"
#include "improve/artefact_store.h"
#include "improve/forget.h"
#include "improve/job.h"
#include "improve/report.h"
#include "journal_place.h"
#include "orchestrator/chat_model.h"
#include "store/journal.h"

namespace chimere::apps {
namespace {

using improve::ArtefactStore;
using improve::RunRecord;

volatile std::sig_atomic_t is_told_to_end = 0;

struct RunsOptions {
  ModelOptions model;
  std::string journal, folder, owner, kind, run, conversation, engram, guard, general;
  double seconds = 3600, joules = 0;
  uint64_t seed = 1;
  int context = 2048;
  bool now = false, as_child = false, keeps_back = false, json = false, is_sure = false;
};

Result<std::shared_ptr<ArtefactStore>> open_store(const RunsOptions& o) {
  const std::string folder = o.folder.empty() ? default_improve_folder() : o.folder;
  if (folder.empty()) return Error{Code::invalid_argument, "--dir: expected a folder, as no data folder is known"};
  return ArtefactStore::open(folder);
}

Result<std::unique_ptr<improve::Workbench>> open_bench(const RunsOptions& o) {
  TRY_ASSIGN(auto model, load_model(o.model));
  const int context = std::min(o.context, model->context_length());
  TRY_ASSIGN(auto chat, orchestrator::ChatModel::from_model(std::move(model)));
  chat.open_memories(o.engram, shipped_tables());
  return std::make_unique<improve::Workbench>(std::move(chat), context);
}

void print_run(const RunRecord& run) {
  std::printf("%s  %s%s%s  %s\n", run.id.empty() ? "(no run)" : run.id.c_str(), run.slot.kind.c_str(),
              run.slot.route.empty() ? "" : " of ", run.slot.route.c_str(), run.state.c_str());
  if (!run.problem.empty()) std::printf("  %s\n", run.problem.c_str());
  if (!run.about.empty()) std::printf("  %s\n", run.about.c_str());
  if (run.verdict.gain.n > 0) {
    std::printf("  gain %s %s, of %zu conversations held out; try %d, alpha %.4f\n",
                improve::shown_gain(run.verdict.gain).c_str(), improve::gain_unit(run.slot.kind), run.verdict.gain.n,
                run.verdict.attempt, run.verdict.alpha);
  }
  for (const improve::Guard& guard : run.verdict.guards) {
    std::printf("  guard %s: %s, margin %.4f, %s\n", guard.name.c_str(), improve::shown_gain(guard.gain).c_str(),
                guard.margin, guard.holds ? "holds" : "broken");
  }
  if (!run.verdict.reason.empty()) std::printf("  %s\n", run.verdict.reason.c_str());
  if (!run.id.empty()) {
    std::printf(
        "  made from %zu answers, %zu held out, %zu near-duplicates and %zu foreign ones left out; %.1f s of cpu",
        run.examples, run.held_out, run.duplicates, run.foreign, run.cpu_seconds);
    if (run.joules >= 0) std::printf(", %.0f J", run.joules);
    std::printf("\n");
  }
}

// Of a server: it ends with it, and is the last to have the processor.
void become_child() {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_NAME, "chimere-improve");
}

Status run_one(const RunsOptions& o) {
  // Before there is another thread.
  stand_still_when_asked();
  if (o.as_child) become_child();
  if (!o.now) setpriority(PRIO_PROCESS, 0, 19);
  std::signal(SIGTERM, [](int) { is_told_to_end = 1; });
  std::signal(SIGINT, [](int) { is_told_to_end = 1; });
  TRY_ASSIGN(const auto store, open_store(o));
  TRY_ASSIGN(const auto journal, open_existing_journal(o.journal));
  std::unique_ptr<improve::Workbench> bench;
  improve::JobTools tools{*journal, *store, {}, {}, {o.seconds, o.joules}, {}};
  tools.rules.seed = o.seed;
  tools.promotes = !o.keeps_back;
  if (o.as_child) tools.patience = std::chrono::seconds(60);
  tools.bench = [&]() -> Result<improve::Workbench*> {
    TRY_ASSIGN(bench, open_bench(o));
    return bench.get();
  };
  const std::string guard = o.guard.empty() ? shipped_guard() : o.guard;
  if (!guard.empty()) {
    TRY_ASSIGN(tools.guard, improve::read_guard(guard));
  }
  const std::string general = o.general.empty() ? shipped_general_text() : o.general;
  if (!general.empty()) {
    TRY_ASSIGN(tools.general, improve::read_passages(general));
  }
  tools.must_end = [] { return is_told_to_end != 0; };
  tools.tell = [&](const RunRecord& run) {
    if (o.as_child || o.json || !isatty(STDERR_FILENO)) return;
    std::fprintf(stderr, "\r%s: %llu of %llu%s", run.slot.kind.c_str(), static_cast<unsigned long long>(run.done),
                 static_cast<unsigned long long>(run.total), run.is_over() ? "\n" : "");
  };
  TRY_ASSIGN(const RunRecord run, improve::run_job(tools, {o.owner, o.kind, ""}));
  if (o.json) {
    std::printf("%s\n", improve::run_text(run).c_str());
  } else {
    print_run(run);
  }
  if (run.state == "failed") return Error{Code::internal, run.problem};
  return Ok{};
}

Status list_runs(const RunsOptions& o) {
  TRY_ASSIGN(const auto store, open_store(o));
  TRY_ASSIGN(const auto manifest, store->manifest());
  for (const improve::SlotVersions& entry : manifest->slots) {
    const improve::Version& now = entry.versions.back();
    std::printf("in use  %-20s %-9s %-10s %s  %s  %s\n",
                entry.slot.owner.empty() ? "(without a name)" : entry.slot.owner.c_str(), entry.slot.kind.c_str(),
                entry.slot.route.c_str(), now.artefact.substr(0, 12).c_str(), improve::shown_time(now.since).c_str(),
                now.run.c_str());
  }
  TRY_ASSIGN(const auto runs, store->runs(std::nullopt));
  for (const RunRecord& run : runs) {
    std::printf("%-40s %-20s %-8s %s\n", run.id.c_str(),
                run.slot.owner.empty() ? "(without a name)" : run.slot.owner.c_str(), run.state.c_str(),
                improve::shown_gain(run.verdict.gain).c_str());
  }
  if (manifest->slots.empty() && runs.empty()) std::printf("Nothing was tried yet.\n");
  return Ok{};
}

Status show_run(const RunsOptions& o) {
  TRY_ASSIGN(const auto store, open_store(o));
  TRY_ASSIGN(const RunRecord run, store->run(o.run));
  if (o.json) {
    std::printf("%s\n", improve::run_text(run).c_str());
    return Ok{};
  }
  print_run(run);
  std::printf("  artefact %s\n", run.artefact.empty() ? "none" : run.artefact.c_str());
  for (const std::string& name : run.learned_from) std::printf("  learned from %s\n", name.c_str());
  return Ok{};
}

Status promote_run(const RunsOptions& o) {
  TRY_ASSIGN(const auto store, open_store(o));
  TRY(improve::promote_run(*store, o.run, o.is_sure));
  std::printf("%s is in use from the next request on.\n", o.run.c_str());
  return Ok{};
}

Status roll_back(const RunsOptions& o) {
  TRY_ASSIGN(const auto store, open_store(o));
  TRY(store->update([&](improve::Manifest& manifest) {
    return manifest.rollback({o.owner, o.kind, ""}, static_cast<int64_t>(std::time(nullptr)));
  }));
  TRY_ASSIGN(const auto manifest, store->manifest());
  const improve::Version* now = manifest->in_use({o.owner, o.kind, ""});
  std::printf("%s: %s\n", o.kind.c_str(),
              now ? (now->artefact + " is in use again").c_str() : "nothing is in use any more");
  return Ok{};
}

Status forget_learned(const RunsOptions& o) {
  if (!o.is_sure) return Error{Code::invalid_argument, "this can not be undone: say --yes if you mean it"};
  TRY_ASSIGN(const auto store, open_store(o));
  TRY_ASSIGN(const auto journal, open_existing_journal(o.journal));
  improve::ForgottenCounts counts;
  if (o.conversation.empty()) {
    TRY_ASSIGN(counts, improve::forget_owner(*journal, *store, o.owner));
  } else {
    TRY_ASSIGN(const std::string path, model_path(o.model.path));
    TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
    TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
    TRY_ASSIGN(counts, improve::forget_conversation(*journal, *store, tokenizer, o.owner, o.conversation));
  }
  std::printf("%llu answers erased, %llu artefacts made anew, %llu gone.\n",
              static_cast<unsigned long long>(counts.answers), static_cast<unsigned long long>(counts.rebuilt),
              static_cast<unsigned long long>(counts.dropped));
  return Ok{};
}

Status print_report(const RunsOptions& o) {
  TRY_ASSIGN(const auto store, open_store(o));
  TRY_ASSIGN(const auto manifest, store->manifest());
  TRY_ASSIGN(auto runs, store->runs(o.owner));
  const improve::Report report = improve::report_of(*manifest, std::move(runs), o.owner);
  std::printf("%s\n", o.json ? improve::report_json(report).c_str() : improve::report_markdown(report).c_str());
  return Ok{};
}

}  // namespace

void add_improve_runs(CLI::App& command, Outcome& outcome) {
  auto o = std::make_shared<RunsOptions>();
  o->model.backend = "cpu";
  const auto verb = [&](const char* name, const char* about, Status (*work)(const RunsOptions&)) {
    CLI::App* sub = command.add_subcommand(name, about);
    sub->add_option("--dir", o->folder,
                    "where what was learned lies; else improve/ in $CHIMERE_HOME or the XDG data folder");
    sub->callback([o, work, &outcome] {
      if (Status done = work(*o); !done) outcome.code = fail(done.error());
    });
    return sub;
  };
  const auto of_owner = [&](CLI::App* sub) {
    sub->add_option("--owner", o->owner, "whose, as `improve journal` shows it; else of requests without a name");
    return sub;
  };
  const auto with_journal = [&](CLI::App* sub) {
    sub->add_option("--journal", o->journal, kJournalHelp);
    return sub;
  };
  const auto of_kind = [&](CLI::App* sub) {
    sub->add_option("KIND", o->kind, "what is made")->required()->check(CLI::IsMember(improve::job_kinds()));
    return sub;
  };
  CLI::App* run =
      of_kind(with_journal(of_owner(verb("run", "learn from the journal, prove it, and use what is proven", run_one))));
  add_model_options(*run, o->model, false);
  run->add_option("--ctx", o->context, "tokens of one conversation")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  run->add_option("--engram", o->engram, "folder of what users taught, as `serve` has it");
  run->add_option("--guard", o->guard,
                  "lines of {\"question\", \"answer\"} that guard general ability; else those of the program");
  run->add_option(
      "--general", o->general,
      "a text, an empty line between its passages, whose perplexity may not rise; else that of the program");
  run->add_option("--limit-seconds", o->seconds, "ends then; the next one goes on where it was")
      ->check(above(0))
      ->capture_default_str();
  run->add_option("--limit-joules", o->joules, "the same of energy, where the processor tells it; 0: any")
      ->check(at_least(0))
      ->capture_default_str();
  run->add_option("--seed", o->seed, "of what is drawn")->capture_default_str();
  run->add_flag("--now", o->now, "with the priority of other programs; else everybody else comes first");
  run->add_flag("--keep-back", o->keeps_back, "prove it and do not use it");
  run->add_flag("--json", o->json, "print one JSON object");
  run->add_flag("--child", o->as_child, "ends with the program that started it")->group("");
  verb("list", "what is in use, and what was tried", list_runs);
  CLI::App* show = verb("show", "one try: its figures, and what it learned from", show_run);
  show->add_option("RUN", o->run, "as the list names it")->required();
  show->add_flag("--json", o->json, "print one JSON object");
  CLI::App* promote = verb("promote", "use what a run has made", promote_run);
  promote->add_option("RUN", o->run, "as the list names it")->required();
  promote->add_flag("--yes", o->is_sure, "also where it was not proven");
  of_kind(of_owner(verb("rollback", "use what was in use before", roll_back)));
  CLI::App* forget = with_journal(of_owner(
      verb("forget", "an owner, or one conversation: out of the journal and of what was made", forget_learned)));
  forget->add_option("--conversation", o->conversation, "only this one, as the export names it");
  forget->add_option("--model", o->model.path, "whose words the tables are made of; else the model in the box");
  forget->add_flag("--yes", o->is_sure, "do it");
  CLI::App* report =
      of_owner(verb("report", "what was tried, what it gained and cost, what is in use since when", print_report));
  report->add_flag("--json", o->json, "as JSON instead of Markdown");
}

}  // namespace chimere::apps
