// manifest.h  What is in use: for each owner, kind and route one artefact, and those that were before it.
//
// One JSON file, replaced as a whole: a reader sees the old state or the new one, also when the power fails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::improve {

// What an artefact is for. Each owner moves only their own.
struct Slot {
  std::string owner;  // as the journal has it; empty: requests without a name
  std::string kind;   // closing, words, examples, engram, lora, prompts, thinking
  std::string route;  // of odo; empty: answers of the model alone, or of any route

  bool operator==(const Slot&) const = default;
};

struct Version {
  std::string artefact;  // content_hash()
  int64_t since = 0;     // seconds since 1970
  std::string run;       // that made and proved it
};

struct SlotVersions {
  Slot slot;
  std::vector<Version> versions;  // oldest first; the last one is in use
};

struct Change {
  int64_t at = 0;
  std::string action;  // promote, rollback, forget, rebuild
  Slot slot;
  std::string artefact;  // in use from then on; empty: none
  std::string run;
};

struct Manifest {
  uint64_t serial = 0;
  std::vector<SlotVersions> slots;
  std::vector<Change> history;  // oldest first, at most kMaxHistory

  static constexpr size_t kMaxHistory = 1'000, kMaxVersions = 32;

  const Version* in_use(const Slot& slot) const;
  SlotVersions* find(const Slot& slot);

  void promote(const Slot& slot, Version version);
  // Back to the one before; not_found: nothing is in use. Whoever has one version goes back to none.
  Status rollback(const Slot& slot, int64_t at);
  // All of an owner, without a trace.
  size_t forget(std::string_view owner);
  void note(Change change);
};

Result<Manifest> parse_manifest(std::string_view text);
std::string manifest_text(const Manifest& manifest);

}  // namespace chimere::improve
