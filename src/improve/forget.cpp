#include "improve/forget.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <utility>

#include "improve/closing.h"
#include "improve/example_set.h"
#include "improve/job_state.h"
#include "improve/thought_setting.h"
#include "improve/tool_words.h"
#include "tokenizer/fingerprint.h"

namespace chimere::improve {
namespace {

constexpr std::chrono::seconds kPatience{5};  // with a run that was just ended for this

Error run_under_way() { return {Code::exhausted, "a run is under way: try again when it has ended"}; }

void clear_work(const ArtefactStore& store) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(store.folder() + "/work", error)) {
    std::filesystem::remove_all(entry.path(), error);
  }
}

bool is_rebuilt(const std::string& kind) {
  return kind == "engram" || kind == "closing" || kind == "words" || kind == "examples" || kind == "thinking";
}

// As it would have been made then; empty: nothing is left to make it from.
Result<std::string> rebuilt(store::Journal& journal, ArtefactStore& store, const Tokenizer& tokenizer,
                            const RunRecord& run) {
  TRY_ASSIGN(auto answers, all_answers(journal, run.slot.owner, kMaxTaught));
  std::erase_if(answers, [&](const store::KeptAnswer& kept) { return kept.id > run.last_answer; });
  const Examples examples = examples_from(run.slot.owner, answers);
  if (examples.train.empty()) return std::string();
  std::string bytes;
  if (run.slot.kind == "engram") {
    TRY_ASSIGN(bytes, engram_bytes(tokenizer, examples.train, store.work_file("table")));
  } else if (run.slot.kind == "closing") {
    bytes = closing_bytes(closing_of(examples.train));
  } else if (run.slot.kind == "words") {
    bytes = tool_words_bytes(tool_words_of(examples.train));
  } else if (run.slot.kind == "thinking") {
    TRY_ASSIGN(const std::string old, store.read(run.artefact));
    TRY_ASSIGN(const auto fitted, thoughts_without(old, vocabulary_fingerprint(tokenizer), tokenizer, examples.train));
    if (!fitted || fitted->empty()) return std::string();
    bytes = *fitted;
  } else {
    TRY_ASSIGN(const std::string old, store.read(run.artefact));
    TRY_ASSIGN(const auto set, set_without(old, vocabulary_fingerprint(tokenizer), examples.train));
    if (!set) return std::string();
    bytes = *set;
  }
  return store.put(bytes);
}

}  // namespace

Result<ForgottenCounts> forget_owner(store::Journal& journal, ArtefactStore& store, const std::string& owner) {
  TRY_ASSIGN(const auto of_replicas, journal.lock_runs(kPatience));
  TRY_ASSIGN(const auto lock, store.lock_runs());
  if (!of_replicas || !lock) return run_under_way();
  ForgottenCounts counts;
  TRY_ASSIGN(counts.answers, journal.erase(owner));
  TRY(store.update([&](Manifest& manifest) -> Status {
    counts.dropped = manifest.forget(owner);
    return Ok{};
  }));
  TRY_ASSIGN(const auto runs, store.runs(owner));
  for (const RunRecord& run : runs) TRY(store.remove_run(run.id));
  counts.runs = runs.size();
  clear_work(store);
  TRY(store.sweep());
  return counts;
}

Result<ForgottenCounts> forget_conversation(store::Journal& journal, ArtefactStore& store, const Tokenizer& tokenizer,
                                            const std::string& owner, const std::string& conversation) {
  TRY_ASSIGN(const auto of_replicas, journal.lock_runs(kPatience));
  TRY_ASSIGN(const auto lock, store.lock_runs());
  if (!of_replicas || !lock) return run_under_way();
  ForgottenCounts counts;
  TRY_ASSIGN(counts.answers, journal.erase_conversation(owner, conversation));
  TRY_ASSIGN(auto runs, store.runs(owner));
  std::map<std::string, std::string> instead;  // of artefacts of these runs; empty: none
  for (RunRecord& run : runs) {
    const auto seen = std::find(run.learned_from.begin(), run.learned_from.end(), conversation);
    if (seen == run.learned_from.end()) continue;
    run.learned_from.erase(seen);
    ++counts.runs;
    if (run.artefact.empty()) {
      run.about.clear();
      continue;
    }
    std::string next;
    if (is_rebuilt(run.slot.kind)) {
      TRY_ASSIGN(next, rebuilt(journal, store, tokenizer, run));
    }
    ++(next.empty() ? counts.dropped : counts.rebuilt);
    instead[run.artefact] = next;
    run.artefact = next;
    run.about.clear();
    run.problem = next.empty() ? "taken out of use: a conversation it was made from was forgotten"
                               : "made anew without a conversation that was forgotten";
    if (next.empty() && run.state == "proven") run.state = "refused";
  }
  // What is in use first: whoever ends us here has the old records, and comes again.
  const auto now = static_cast<int64_t>(std::time(nullptr));
  TRY(store.update([&](Manifest& manifest) -> Status {
    for (SlotVersions& entry : manifest.slots) {
      if (entry.slot.owner != owner) continue;
      const size_t before = entry.versions.size();
      for (Version& version : entry.versions) {
        const auto found = instead.find(version.artefact);
        if (found == instead.end()) continue;
        version.artefact = found->second;
        if (!found->second.empty()) manifest.note({now, "rebuild", entry.slot, version.artefact, version.run});
      }
      std::erase_if(entry.versions, [](const Version& version) { return version.artefact.empty(); });
      if (entry.versions.size() == before) continue;
      const bool has_one = !entry.versions.empty();
      manifest.note({now, "forget", entry.slot, has_one ? entry.versions.back().artefact : "",
                     has_one ? entry.versions.back().run : ""});
    }
    std::erase_if(manifest.slots, [](const SlotVersions& entry) { return entry.versions.empty(); });
    for (Change& change : manifest.history) {
      const auto found = instead.find(change.artefact);
      if (found != instead.end()) change.artefact = found->second;
    }
    return Ok{};
  }));
  for (const RunRecord& run : runs) TRY(store.save_run(run));
  clear_work(store);
  TRY(store.sweep());
  return counts;
}

}  // namespace chimere::improve
