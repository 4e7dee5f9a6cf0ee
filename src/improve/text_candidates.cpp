// text_candidates.cpp  What is learned by counting and by looking, and changes no weight: a closing, what words stand for when
// tools are asked for, and examples that are shown.
#include <set>
#include <utility>

#include "improve/closing.h"
#include "improve/content_hash.h"
#include "improve/example_set.h"
#include "improve/job_state.h"
#include "improve/tool_words.h"

namespace chimere::improve {
namespace {

constexpr size_t kFewestTold = 5;  // conversations that are held out, for a try
constexpr double kOwnShare = 0.9;  // of its tokens first choice: the model says that by itself

Candidate no_try(std::string about) {
  Candidate candidate;
  candidate.about = std::move(about);
  candidate.waits = true;
  return candidate;
}

// The bytes, unless they are what is in use already.
Result<Candidate> candidate_of(JobState& state, Arm before, std::string bytes, std::string about) {
  TRY_ASSIGN(const auto manifest, state.tools.store.manifest());
  const Version* version = manifest->in_use(state.run.slot);
  const std::string hash = content_hash(bytes);
  if (version && version->artefact == hash) return no_try("what is in use is what would be made");
  Candidate candidate;
  candidate.name = state.run.slot.kind + hash.substr(0, 16);
  candidate.about = std::move(about);
  candidate.before = std::move(before);
  TRY_ASSIGN(candidate.after, arm_of_bytes(*state.bench, candidate.before, state.run.slot.kind, bytes));
  candidate.bytes = std::move(bytes);
  return Result<Candidate>{std::move(candidate)};
}

// As candidate_of(), where more answers make more of the same: compared with nothing of the kind.
Result<Candidate> instead_of_its_like(JobState& state, Arm before, std::string bytes, std::string about) {
  std::optional<Arm> replaced;
  if (!before.words.empty() && state.run.slot.kind == "words") replaced = before;
  if (before.examples && state.run.slot.kind == "examples") replaced = before;
  if (state.run.slot.kind == "words") before.words.clear();
  if (state.run.slot.kind == "examples") before.examples = nullptr;
  TRY_ASSIGN(Candidate candidate, candidate_of(state, std::move(before), std::move(bytes), std::move(about)));
  candidate.replaced = std::move(replaced);
  return Result<Candidate>{std::move(candidate)};
}

Result<std::vector<SetEntry>> set_entries(JobState& state, const std::string& closing) {
  std::vector<SetEntry> entries;
  const auto candidates = shown_candidates(state.examples.train);
  state.run.total += 2 * candidates.size() + state.tools.guard.size() / 2;
  for (const TaughtAnswer& example : candidates) {
    SetEntry entry{example.conversation, entry_key(example), question_in(example.asked.messages), {}, {}};
    const Wanted wanted{without_closing(example.wanted.text, closing), {}, false};
    TRY_ASSIGN(const auto share, state.figure("own e" + std::to_string(example.id), [&] {
      return state.bench->own_share(example.asked, wanted, state.run.slot.owner, Arm{});
    }));
    if (share && *share < kOwnShare) entry.answer = wanted.text;
    TRY_ASSIGN(const auto vector, state.bench->vector_of(entry.question));
    entry.vector = packed_vector(vector);
    entries.push_back(std::move(entry));
    TRY(state.step());
  }
  // The other half is what guards look at.
  for (size_t i = 0; i < state.tools.guard.size(); i += 2) {
    SetEntry entry{{}, {}, state.tools.guard[i].question, {}, {}};
    entry.key = content_hash(entry.question).substr(0, 16);
    TRY_ASSIGN(const auto vector, state.bench->vector_of(entry.question));
    entry.vector = packed_vector(vector);
    entries.push_back(std::move(entry));
    TRY(state.step());
  }
  return Result<std::vector<SetEntry>>{std::move(entries)};
}

}  // namespace

Result<Candidate> make_closing(JobState& state) {
  TRY_ASSIGN(Arm before, arm_in_use(state.tools.store, *state.bench, state.run.slot.owner));
  const std::string closing = closing_of(state.examples.train);
  // Whoever has stopped to want one is asked to do without.
  if (closing.empty() && before.closing.empty()) return no_try("no text ends most of the answers");
  return candidate_of(state, std::move(before), closing_bytes(closing),
                      closing.empty() ? "no closing any more" : "behind every answer: " + closing);
}

Result<Candidate> make_words(JobState& state) {
  TRY_ASSIGN(Arm before, arm_in_use(state.tools.store, *state.bench, state.run.slot.owner));
  const std::vector<ToolWord> words = tool_words_of(state.examples.train);
  if (words.empty() && before.words.empty()) return no_try("no word stands for a value of a tool");
  std::set<std::string> told;  // conversations
  for (const TaughtAnswer& example : state.examples.held_out) {
    const std::string question = question_in(example.asked.messages);
    if (with_tool_words(question, example.asked.tools, words) != question) told.insert(example.conversation);
  }
  if (!words.empty() && told.size() < kFewestTold) {
    return no_try(std::to_string(words.size()) + " words stand for values of tools: expected " +
                  std::to_string(kFewestTold) + " conversations with them to prove that, found " +
                  std::to_string(told.size()));
  }
  std::string about = std::to_string(words.size()) + (words.size() == 1 ? " word" : " words");
  for (const ToolWord& word : words) {
    if (about.size() < 400) about += "; " + word.word + " is " + word.argument + " " + word.value;
  }
  return instead_of_its_like(state, std::move(before), tool_words_bytes(words), std::move(about));
}

Result<Candidate> make_examples(JobState& state) {
  TRY_ASSIGN(Arm before, arm_in_use(state.tools.store, *state.bench, state.run.slot.owner));
  TRY_ASSIGN(auto entries, set_entries(state, before.closing));
  const ExampleSet set = example_set(std::move(entries));
  size_t n_shown = 0;
  for (const SetEntry& entry : set.entries) n_shown += !entry.answer.empty();
  const std::string counted = std::to_string(n_shown) + " answers that the model does not give by itself, and " +
                              std::to_string(set.entries.size() - n_shown) + " questions beside them";
  if (set.least == 0) return no_try(counted + ": what is near does not tell which is which");
  return instead_of_its_like(state, std::move(before), example_set_bytes(set, state.bench->vocabulary().fingerprint),
                             counted + "; shown where " + std::to_string(set.least) + " of the " +
                                 std::to_string(orchestrator::ShownExamples::kVoters) + " nearest are of the first");
}

Result<Arm> arm_of_bytes(Workbench& bench, Arm arm, const std::string& kind, const std::string& bytes) {
  if (kind == "closing") {
    TRY_ASSIGN(arm.closing, read_closing(bytes));
  } else if (kind == "words") {
    TRY_ASSIGN(arm.words, read_tool_words(bytes));
  } else if (kind == "examples") {
    TRY_ASSIGN(const ExampleSet set, read_example_set(bytes, bench.vocabulary().fingerprint));
    arm.examples = shown_of(set);
  } else if (kind == "prompts") {
    arm.system_prompt = bytes;
  }
  return Result<Arm>{std::move(arm)};
}

}  // namespace chimere::improve
