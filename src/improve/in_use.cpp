#include "improve/in_use.h"

#include <utility>

#include "improve/closing.h"
#include "improve/example_set.h"
#include "improve/job.h"

namespace chimere::improve {
namespace {

constexpr size_t kShownDigits = 12;
constexpr size_t kMaxServedPrompt = 16 << 10;

}  // namespace

std::shared_ptr<const Served> InUse::of(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  auto now = store_->manifest();
  // A manifest that can not be read: what was in use stays.
  if (now && *now != manifest_) {
    manifest_ = *now;
    served_.clear();
    problems_.clear();
  }
  if (!now && problems_.empty()) problems_.push_back(now.error().message);
  if (!manifest_) return nullptr;
  const auto found = served_.find(owner);
  if (found != served_.end()) return found->second;
  return served_[owner] = opened(*manifest_, owner);
}

std::shared_ptr<const Served> InUse::opened(const Manifest& manifest, const std::string& owner) {
  auto served = std::make_shared<Served>();
  for (const SlotVersions& entry : manifest.slots) {
    if (entry.slot.owner != owner || entry.versions.empty()) continue;
    const std::string& artefact = entry.versions.back().artefact;
    if (entry.slot.kind == "engram") {
      auto table = engram::Table::open(store_->path_of(artefact), vocabulary_, engram::today());
      if (!table) {
        problems_.push_back(table.error().message);
        continue;
      }
      served->table = std::move(*table);
    } else if (entry.slot.kind == "prompts") {
      auto prompt = store_->read(artefact);
      if (!prompt || prompt->size() > kMaxServedPrompt) {
        problems_.push_back(prompt ? artefact + ": is too long for a prompt" : prompt.error().message);
        continue;
      }
      served->prompts[entry.slot.route] = std::move(*prompt);
    } else if (entry.slot.kind == "lora") {
      served->adapter = artefact;
    } else {
      auto bytes = store_->read(artefact);
      Status opened = bytes ? open_text(entry.slot.kind, *bytes, *served) : Status{bytes.error()};
      if (!opened) {
        problems_.push_back(opened.error().message);
        continue;
      }
    }
    served->names.push_back(entry.slot.kind + (entry.slot.route.empty() ? "" : ":" + entry.slot.route) + "@" +
                            artefact.substr(0, kShownDigits));
  }
  if (served->names.empty()) return nullptr;
  return served;
}

Status InUse::open_text(const std::string& kind, const std::string& bytes, Served& served) const {
  if (kind == "closing") {
    TRY_ASSIGN(served.closing, read_closing(bytes));
  } else if (kind == "words") {
    TRY_ASSIGN(served.words, read_tool_words(bytes));
  } else if (kind == "examples") {
    TRY_ASSIGN(const ExampleSet set, read_example_set(bytes, vocabulary_.fingerprint));
    served.examples = shown_of(set);
  } else if (kind == "thinking") {
    TRY_ASSIGN(const FittedThoughts fitted, read_thoughts(bytes, vocabulary_.fingerprint));
    served.thoughts = fitted.setting;
  } else {
    return Error{Code::unsupported, "'" + kind.substr(0, 40) + "' in use: expected one of " + kind_names()};
  }
  return Ok{};
}

std::vector<std::string> InUse::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

}  // namespace chimere::improve
