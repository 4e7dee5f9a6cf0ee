// engram_candidate.cpp  A table of n-grams of what was accepted, and what an owner has in use.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "engram/edit.h"
#include "engram/table.h"
#include "improve/job_state.h"
#include "text/json.h"
#include "tokenizer/fingerprint.h"

namespace chimere::improve {
namespace {

constexpr int64_t kSecondsOfDay = 86'400;

engram::Vocabulary vocabulary_of(const Tokenizer& tokenizer) {
  return {vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
}

}  // namespace

// Sources are conversations, so that each of them can be found in the table; sorted, so that the order in which answers
// came does not show.
Result<std::string> engram_bytes(const Tokenizer& tokenizer, const std::vector<TaughtAnswer>& train,
                                 const std::string& scratch) {
  std::vector<const TaughtAnswer*> sorted;
  for (const TaughtAnswer& example : train) sorted.push_back(&example);
  std::sort(sorted.begin(), sorted.end(), [](const TaughtAnswer* a, const TaughtAnswer* b) {
    return std::tuple(a->conversation, a->created, a->wanted.shown()) <
           std::tuple(b->conversation, b->created, b->wanted.shown());
  });
  std::vector<engram::Lesson> lessons;
  for (const TaughtAnswer* example : sorted) {
    if (lessons.empty() || lessons.back().source.id != example->conversation) {
      lessons.emplace_back();
      lessons.back().source.id = example->conversation;
      lessons.back().source.day = static_cast<uint32_t>(example->created / kSecondsOfDay);
      lessons.back().source.score = 5;
    }
    lessons.back().texts.push_back(tokenizer.encode(example->wanted.shown(), EncodeMode::plain, false));
  }
  TRY(engram::build_table(scratch, {vocabulary_of(tokenizer)}, lessons, 1, Readers::owner));
  std::ifstream in(scratch, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  std::error_code error;
  std::filesystem::remove(scratch, error);
  if (bytes.empty()) return Error{Code::io, scratch + ": can not be read"};
  return bytes;
}

std::string in_use_text(const Manifest& manifest, const std::string& owner) {
  std::string text;
  for (const SlotVersions& entry : manifest.slots) {
    if (entry.slot.owner == owner && !entry.versions.empty()) {
      text += entry.slot.kind + " " + entry.slot.route + " " + entry.versions.back().artefact + "\n";
    }
  }
  return text;
}

Result<Arm> arm_in_use(const ArtefactStore& store, Workbench& bench, const std::string& owner) {
  TRY_ASSIGN(const auto manifest, store.manifest());
  Arm arm;
  for (const std::string& kind : job_kinds()) {
    const Version* version = manifest->in_use({owner, kind, ""});
    if (!version) continue;
    TRY_ASSIGN(arm, arm_with(store, bench, std::move(arm), kind, version->artefact));
  }
  return Result<Arm>{std::move(arm)};
}

Result<Arm> arm_with(const ArtefactStore& store, Workbench& bench, Arm arm, const std::string& kind,
                     const std::string& artefact) {
  if (kind == "engram") {
    TRY_ASSIGN(auto opened, engram::Table::open(store.path_of(artefact), bench.vocabulary(), engram::today()));
    arm.tables = {{std::move(opened), 1}};
  } else if (kind == "lora") {
    TRY_ASSIGN(arm.adapters, adapter_set(bench, store.path_of(artefact), artefact.substr(0, 12)));
  } else {
    TRY_ASSIGN(const std::string bytes, store.read(artefact));
    return arm_of_bytes(bench, std::move(arm), kind, bytes);
  }
  return Result<Arm>{std::move(arm)};
}

Result<Candidate> take_given(JobState& state) {
  Candidate candidate;
  const ArtefactStore& store = state.tools.store;
  candidate.bytes = state.tools.given;
  candidate.name = "given";
  candidate.about = "made elsewhere, " + std::to_string(candidate.bytes.size()) + " bytes";
  TRY_ASSIGN(const std::string artefact, state.tools.store.put(candidate.bytes));
  TRY_ASSIGN(candidate.before, arm_in_use(store, *state.bench, state.run.slot.owner));
  TRY_ASSIGN(candidate.after, arm_with(store, *state.bench, candidate.before, state.run.slot.kind, artefact));
  return Result<Candidate>{std::move(candidate)};
}

Result<Candidate> make_engram(JobState& state) {
  Candidate candidate;
  candidate.name = "engram";
  const std::string scratch = state.tools.store.work_file("table");
  TRY_ASSIGN(candidate.bytes, engram_bytes(state.bench->tokenizer(), state.examples.train, scratch));
  TRY_ASSIGN(candidate.before, arm_in_use(state.tools.store, *state.bench, state.run.slot.owner));
  candidate.after = candidate.before;
  std::vector<uint64_t> image((candidate.bytes.size() + 7) / 8);
  std::copy(candidate.bytes.begin(), candidate.bytes.end(), reinterpret_cast<char*>(image.data()));
  TRY_ASSIGN(auto table,
             engram::Table::from_image(std::move(image), "candidate", state.bench->vocabulary(), engram::today()));
  candidate.about = "a table of " + std::to_string(table->header().n_keys) + " n-grams from " +
                    std::to_string(state.examples.train.size()) + " accepted answers";
  candidate.after.tables = {{std::move(table), 1}};
  return Result<Candidate>{std::move(candidate)};
}

}  // namespace chimere::improve
