// in_use.h  What answers are given with: the artefacts of each owner, opened, as the manifest says at this moment.
//
// A new manifest is noticed between two requests: one look at the file's time a request, and nothing is read where it
// stayed the same. An artefact that can not be opened is left out, and problems() names it. Use it from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engram/table.h"
#include "improve/artefact_store.h"
#include "improve/thought_setting.h"
#include "improve/tool_words.h"
#include "orchestrator/shown_examples.h"

namespace chimere::improve {

struct Served {
  std::shared_ptr<const engram::NgramSource> table;  // null: none
  std::map<std::string, std::string> prompts;        // by route; "": answers of the model alone
  std::string adapter;                               // artefact of a LoRA adapter; empty: none
  std::string closing;                               // behind answers in words; empty: none
  std::vector<ToolWord> words;
  std::shared_ptr<const orchestrator::ShownExamples> examples;  // null: none
  std::optional<ThoughtSetting> thoughts;                       // when they end; none: as the request has it
  std::vector<std::string> names;                               // "engram@1a2b3c4d5e6f": for the journal
};

class InUse {
 public:
  InUse(std::shared_ptr<ArtefactStore> store, engram::Vocabulary vocabulary)
      : store_(std::move(store)), vocabulary_(vocabulary) {}

  // Null: nothing of this owner is in use.
  std::shared_ptr<const Served> of(const std::string& owner);
  std::vector<std::string> problems() const;
  ArtefactStore& store() { return *store_; }

 private:
  Status open_text(const std::string& kind, const std::string& bytes, Served& served) const;
  std::shared_ptr<const Served> opened(const Manifest& manifest, const std::string& owner);

  const std::shared_ptr<ArtefactStore> store_;
  const engram::Vocabulary vocabulary_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Manifest> manifest_;
  std::map<std::string, std::shared_ptr<const Served>> served_;  // by owner, of manifest_
  std::vector<std::string> problems_;
};

}  // namespace chimere::improve
