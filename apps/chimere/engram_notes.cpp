// engram_notes.cpp  chimere engram notes: the texts that a user accepted, seen and taken back without a server.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engram/table.h"
#include "retrieval/note_library.h"

namespace chimere::apps {
namespace {

struct NoteOptions {
  std::string folder;
  std::string user;
  std::vector<std::string> inputs;
  std::string source;
  uint64_t note = 0;
  bool everything = false;
  bool json = false;
};

Status list_notes(const NoteOptions& o) {
  TRY_ASSIGN(const retrieval::NoteFile file,
             retrieval::read_notes(retrieval::NoteLibrary::file_of(o.folder, o.user).string()));
  for (const retrieval::Note& note : file.notes) {
    if (o.json) {
      std::printf("%s\n", retrieval::note_line(note).c_str());
    } else {
      std::printf("%llu  (%s)  %s\n", static_cast<unsigned long long>(note.id), note.source.c_str(), note.text.c_str());
    }
  }
  if (file.notes.empty() && !o.json) std::printf("%s has no notes\n", o.user.c_str());
  return Ok{};
}

Status add_notes(const NoteOptions& o) {
  retrieval::NoteLibrary library(o.folder, {});
  for (const std::string& path : o.inputs) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Code::io, path + ": can not be opened"};
    retrieval::Note note;
    note.source = o.source.empty() ? path : o.source;
    note.day = engram::today();
    note.score = 5;
    note.text.assign(std::istreambuf_iterator<char>(in), {});
    // Nobody asks this notebook: its tokens are not needed.
    TRY_ASSIGN(const uint64_t id,
               library.add(o.user, std::move(note), [](std::string_view) { return std::vector<int32_t>(); }));
    std::printf("%s: note %llu of %s\n", path.c_str(), static_cast<unsigned long long>(id), o.user.c_str());
  }
  return Ok{};
}

Status forget_notes(const NoteOptions& o) {
  if (o.everything + (o.note != 0) + !o.source.empty() != 1) {
    return Error{Code::invalid_argument, "expected one of --source, --note and --all"};
  }
  retrieval::NoteLibrary library(o.folder, {});
  TRY_ASSIGN(const size_t removed, library.forget(o.user, [&](const retrieval::Note& note) {
    return o.everything || (o.note != 0 ? note.id == o.note : note.source == o.source);
  }));
  if (removed == 0)
    return Error{Code::not_found, o.user + " has no such notes; `chimere engram notes list` shows them"};
  std::printf("removed %zu notes\n", removed);
  return Ok{};
}

CLI::App* add_notes_verb(CLI::App& notes, Outcome& outcome, const std::shared_ptr<NoteOptions>& o, const char* name,
                         const char* description, Status (*work)(const NoteOptions&)) {
  CLI::App* verb = notes.add_subcommand(name, description);
  verb->add_option("folder", o->folder, "the folder of `serve --engram`")->required();
  verb->add_option("--user", o->user, "whose notes; below a key KEY/USER")->required();
  verb->callback([o, work, &outcome] {
    if (Status s = work(*o); !s) outcome.code = fail(s.error());
  });
  return verb;
}

}  // namespace

void add_engram_notes(CLI::App& engram, Outcome& outcome) {
  auto o = std::make_shared<NoteOptions>();
  CLI::App* notes = engram.add_subcommand("notes", "List, add and forget the texts that a user accepted");
  notes->require_subcommand(1);
  CLI::App* list = add_notes_verb(*notes, outcome, o, "list", "print a user's notes", list_notes);
  list->add_flag("--json", o->json, "one JSON object a line");
  CLI::App* add = add_notes_verb(*notes, outcome, o, "add", "add a note a file", add_notes);
  add->add_option("--text", o->inputs, "UTF-8 files")->required();
  add->add_option("--source", o->source, "name under which they can be forgotten; the file's name when absent");
  CLI::App* forget = add_notes_verb(*notes, outcome, o, "forget", "remove notes", forget_notes);
  forget->add_option("--source", o->source, "all notes of this source");
  forget->add_option("--note", o->note, "the note with this id");
  forget->add_flag("--all", o->everything, "all notes of the user");
}

}  // namespace chimere::apps
