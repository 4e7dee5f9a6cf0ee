// improve.cpp  `chimere improve journal|export|erase`: what is kept of answers to learn from: how much, of whom; out of it
// and away with it.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "commands.h"
#include "common.h"
#include "journal_place.h"
#include "server/learning/export_forms.h"
#include "store/journal.h"

namespace chimere::apps {
namespace {

constexpr int kPage = 200;

struct ImproveOptions {
  std::string journal;
  std::string owner;
  std::string form = "journal";
  std::string conversation;
  bool is_sure = false;
};

const char* shown(const std::string& owner) { return owner.empty() ? "(without a name)" : owner.c_str(); }

Status show(const ImproveOptions& o) {
  TRY_ASSIGN(const auto journal, open_existing_journal(o.journal));
  TRY_ASSIGN(const auto owners, journal->owners());
  std::printf("%-32s %10s %10s %12s %s\n", "owner", "answers", "feedback", "bytes", "agreed");
  for (const std::string& owner : owners) {
    TRY_ASSIGN(const store::JournalState state, journal->state(owner));
    std::printf("%-32s %10" PRIu64 " %10" PRIu64 " %12" PRIu64 " %s\n", shown(owner), state.answers, state.feedback,
                state.bytes,
                !state.agreed   ? "was not asked"
                : *state.agreed ? "yes"
                                : "no");
  }
  if (owners.empty()) std::printf("Nothing is kept yet.\n");
  return Ok{};
}

// The newest first.
Status write_lines(const ImproveOptions& o) {
  const auto form = server::parse_export_form(o.form);
  TRY_ASSIGN(const auto journal, open_existing_journal(o.journal));
  int64_t before = 0;
  for (;;) {
    TRY_ASSIGN(const auto page, journal->list(o.owner, before, kPage));
    for (const store::KeptAnswer& kept : page) {
      const auto line = server::export_line(kept, *form);
      if (line && std::printf("%s\n", line->c_str()) < 0) return Error{Code::io, "the output can not be written"};
    }
    if (page.size() < static_cast<size_t>(kPage)) break;
    before = page.back().id;
  }
  return Ok{};
}

Status erase(const ImproveOptions& o) {
  TRY_ASSIGN(const auto journal, open_existing_journal(o.journal));
  TRY_ASSIGN(const store::JournalState state, journal->state(o.owner));
  if (!o.is_sure) {
    return Error{Code::invalid_argument, std::string("this would erase what is kept of ") + shown(o.owner) + " (" +
                                             std::to_string(state.answers) + " answers" +
                                             (o.conversation.empty() ? ")" : ", those of one conversation)") +
                                             ": say --yes if you mean it"};
  }
  Result<uint64_t> erased =
      o.conversation.empty() ? journal->erase(o.owner) : journal->erase_conversation(o.owner, o.conversation);
  if (!erased) return erased.error();
  std::printf("%" PRIu64 " answers erased.\n", *erased);
  return Ok{};
}

}  // namespace

void add_improve(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ImproveOptions>();
  CLI::App* command =
      app.add_subcommand("improve", "Learning from answers: what is kept, what was tried and proven, what is in use");
  command->require_subcommand(1);
  const auto verb = [&](const char* name, const char* about, Status (*work)(const ImproveOptions&)) {
    CLI::App* sub = command->add_subcommand(name, about);
    sub->add_option("--journal", o->journal, kJournalHelp);
    sub->callback([o, work, &outcome] {
      if (Status done = work(*o); !done) outcome.code = fail(done.error());
    });
    return sub;
  };
  const auto of_owner = [&](CLI::App* sub) {
    sub->add_option("--owner", o->owner, "whose, as `improve journal` shows it; else of requests without a name");
    return sub;
  };
  verb("journal", "who has answers there, how many, and who agreed to that", show);
  of_owner(verb("export", "one owner's answers as lines of JSON, the newest first", write_lines))
      ->add_option("--form", o->form,
                   "journal (everything), training_pairs, quality_scores, spin_pairs (answers with a correction)")
      ->check(CLI::IsMember({"journal", "training_pairs", "quality_scores", "spin_pairs"}))
      ->capture_default_str();
  CLI::App* erasing = of_owner(verb("erase", "one owner's answers, or those of one conversation", erase));
  erasing->add_option("--conversation", o->conversation, "only this one, as the export names it");
  erasing->add_flag("--yes", o->is_sure, "do it");
  add_improve_train(*command, outcome);
  add_improve_runs(*command, outcome);
  add_improve_simulate(*command, outcome);
}

}  // namespace chimere::apps
