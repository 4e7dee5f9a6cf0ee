// example_set.h  Accepted answers that are shown before questions that are like theirs (orchestrator/shown_examples.h), as an
// artefact.
//
//   {"least": N, "vocabulary": FINGERPRINT, "entries": [{"conversation", "key", "question", "answer", "vector"}]}
//
// Entries without an answer only vote: what the model answers well by itself, and the first half of the guard's questions
// (those without a conversation). Values of vectors are sixteen bits, in hexadecimal digits. `least` follows from the
// entries, so that a set without a conversation is the set that never saw it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "improve/examples.h"
#include "orchestrator/shown_examples.h"

namespace chimere::improve {

struct SetEntry {
  std::string conversation;  // empty: of the guard
  std::string key;           // of what it was made from: entry_key()
  std::string question, answer;
  std::vector<int16_t> vector;
};

struct ExampleSet {
  std::vector<SetEntry> entries;
  size_t least = 0;  // 0: nothing is shown
};

inline constexpr size_t kMaxSetEntries = 1'000;

// Of these the ones that a set has entries of: a question alone, answered in words, both short; the newest.
std::vector<TaughtAnswer> shown_candidates(const std::vector<TaughtAnswer>& train);
std::string entry_key(const TaughtAnswer& example);
std::vector<int16_t> packed_vector(const std::vector<float>& vector);

// In their one order, with the `least` at which the nearest of an entry tell best whether it is one that is shown; 0 where
// they do not tell.
ExampleSet example_set(std::vector<SetEntry> entries);
std::string example_set_bytes(const ExampleSet& set, uint64_t vocabulary);
// unsupported: of another vocabulary.
Result<ExampleSet> read_example_set(std::string_view bytes, uint64_t vocabulary);
// Null where nothing is shown.
std::shared_ptr<const orchestrator::ShownExamples> shown_of(const ExampleSet& set);

// The set that these answers alone would have made; nullopt: it lacks one of them, so only a model can make it.
Result<std::optional<std::string>> set_without(std::string_view bytes, uint64_t vocabulary,
                                               const std::vector<TaughtAnswer>& train);

}  // namespace chimere::improve
