#include "server/learning/learned_adapters.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace chimere::server {
namespace {

// Read before their owners ask; of more, those whose owners do.
constexpr size_t kReadAhead = 32;

}  // namespace

std::shared_ptr<const Adapter> LearnedAdapters::find(const std::string& artefact) {
  if (const auto held = held_.find(artefact); held != held_.end()) return held->second;
  look_at_manifest();
  const bool waits = artefact == reading_ || (!wanted_.empty() && wanted_.back() == artefact);
  if (!waits && in_use_.count(artefact) && !broken_.count(artefact)) {
    std::erase(wanted_, artefact);
    wanted_.push_back(artefact);
  }
  read_next();
  return nullptr;
}

void LearnedAdapters::tick() {
  look_at_manifest();
  if (job_) {
    auto loaded = job_->poll();
    if (!loaded) return;
    job_.reset();
    const std::string artefact = std::exchange(reading_, {});
    if (!*loaded) {
      broken_.insert(artefact);
      spdlog::warn("improve: {}", loaded->error().message);
    } else if (in_use_.count(artefact)) {
      held_[artefact] = std::move(**loaded);
    }
  }
  read_next();
}

void LearnedAdapters::look_at_manifest() {
  auto now = store_.manifest();
  // One that can not be read: what was in use stays.
  if (!now || *now == manifest_) return;
  manifest_ = *now;
  std::vector<const improve::Version*> versions;
  for (const improve::SlotVersions& entry : manifest_->slots) {
    if (entry.slot.kind == "lora" && !entry.versions.empty()) versions.push_back(&entry.versions.back());
  }
  std::stable_sort(versions.begin(), versions.end(), [](const auto* a, const auto* b) { return a->since < b->since; });
  in_use_.clear();
  wanted_.clear();
  for (const improve::Version* version : versions) {
    if (!in_use_.insert(version->artefact).second) continue;
    if (!held_.count(version->artefact)) wanted_.push_back(version->artefact);
  }
  if (wanted_.size() > kReadAhead) wanted_.erase(wanted_.begin(), wanted_.end() - kReadAhead);
  std::erase_if(held_, [&](const auto& held) { return in_use_.count(held.first) == 0; });
  std::erase_if(broken_, [&](const std::string& artefact) { return in_use_.count(artefact) == 0; });
}

void LearnedAdapters::read_next() {
  while (!job_ && !wanted_.empty()) {
    reading_ = wanted_.back();
    wanted_.pop_back();
    if (held_.count(reading_) || broken_.count(reading_)) continue;
    const auto read = [&library = library_, path = store_.path_of(reading_), name = reading_.substr(0, 12)] {
      return library.read(path, "improve-" + name);
    };
    job_ = workers_.run<Loaded>(read, [] {});
  }
  if (!job_) reading_.clear();
}

}  // namespace chimere::server
