#include "improve/manifest.h"

#include <algorithm>
#include <utility>

#include "improve/content_hash.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr int kManifestVersion = 1;

Json slot_json(const Slot& slot) { return {{"owner", slot.owner}, {"kind", slot.kind}, {"route", slot.route}}; }

Error manifest_error(const std::string& what) { return {Code::corrupt, "manifest: " + what}; }

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

Slot slot_of(const Json& json) { return {text_in(json, "owner"), text_in(json, "kind"), text_in(json, "route")}; }

Result<SlotVersions> slot_versions(const Json& json) {
  if (!json.is_object() || !json.contains("versions") || !json["versions"].is_array()) {
    return manifest_error("in_use: expected objects with versions");
  }
  SlotVersions entry{slot_of(json), {}};
  for (const Json& version : json["versions"]) {
    if (!version.is_object()) return manifest_error("versions: expected objects");
    entry.versions.push_back({text_in(version, "artefact"), number_in(version, "since"), text_in(version, "run")});
    const std::string& artefact = entry.versions.back().artefact;
    if (!is_content_hash(artefact)) {
      return manifest_error("artefact: expected 64 hexadecimal digits, found '" + artefact.substr(0, 80) + "'");
    }
  }
  return Result<SlotVersions>{std::move(entry)};
}

}  // namespace

const Version* Manifest::in_use(const Slot& slot) const {
  for (const SlotVersions& entry : slots) {
    if (entry.slot == slot && !entry.versions.empty()) return &entry.versions.back();
  }
  return nullptr;
}

SlotVersions* Manifest::find(const Slot& slot) {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const auto& entry) { return entry.slot == slot; });
  return found == slots.end() ? nullptr : &*found;
}

void Manifest::note(Change change) {
  history.push_back(std::move(change));
  if (history.size() > kMaxHistory) history.erase(history.begin());
}

void Manifest::promote(const Slot& slot, Version version) {
  SlotVersions* entry = find(slot);
  if (!entry) {
    slots.push_back({slot, {}});
    entry = &slots.back();
  }
  note({version.since, "promote", slot, version.artefact, version.run});
  entry->versions.push_back(std::move(version));
  if (entry->versions.size() > kMaxVersions) entry->versions.erase(entry->versions.begin());
}

Status Manifest::rollback(const Slot& slot, int64_t at) {
  SlotVersions* entry = find(slot);
  if (!entry || entry->versions.empty()) {
    return Error{Code::not_found, "no artefact '" + slot.kind + "' is in use" +
                                      (slot.route.empty() ? "" : " for the route '" + slot.route + "'")};
  }
  entry->versions.pop_back();
  Change change{at, "rollback", slot, {}, {}};
  if (!entry->versions.empty()) {
    entry->versions.back().since = at;
    change.artefact = entry->versions.back().artefact;
    change.run = entry->versions.back().run;
  } else {
    std::erase_if(slots, [&](const SlotVersions& other) { return other.slot == slot; });
  }
  note(std::move(change));
  return Ok{};
}

size_t Manifest::forget(std::string_view owner) {
  std::erase_if(history, [&](const Change& change) { return change.slot.owner == owner; });
  return std::erase_if(slots, [&](const SlotVersions& entry) { return entry.slot.owner == owner; });
}

Result<Manifest> parse_manifest(std::string_view text) {
  TRY_ASSIGN(const Json json, parse_json(text));
  const int64_t version = json.is_object() ? number_in(json, "version") : 0;
  if (version > kManifestVersion) {
    return Error{Code::unsupported, "manifest: was written by a newer program: expected version " +
                                        std::to_string(kManifestVersion) + ", found " + std::to_string(version)};
  }
  if (version != kManifestVersion) return manifest_error("expected an object of version 1");
  Manifest manifest;
  manifest.serial = static_cast<uint64_t>(number_in(json, "serial"));
  for (const Json& entry : json.value("in_use", Json::array())) {
    TRY_ASSIGN(SlotVersions slot, slot_versions(entry));
    manifest.slots.push_back(std::move(slot));
  }
  for (const Json& change : json.value("history", Json::array())) {
    if (!change.is_object()) return manifest_error("history: expected objects");
    manifest.note({number_in(change, "at"), text_in(change, "action"), slot_of(change), text_in(change, "artefact"),
                   text_in(change, "run")});
  }
  return Result<Manifest>{std::move(manifest)};
}

std::string manifest_text(const Manifest& manifest) {
  Json json{{"version", kManifestVersion}, {"serial", manifest.serial}};
  json["in_use"] = Json::array();
  for (const SlotVersions& entry : manifest.slots) {
    Json one = slot_json(entry.slot);
    one["versions"] = Json::array();
    for (const Version& v : entry.versions) {
      one["versions"].push_back({{"artefact", v.artefact}, {"since", v.since}, {"run", v.run}});
    }
    json["in_use"].push_back(std::move(one));
  }
  json["history"] = Json::array();
  for (const Change& change : manifest.history) {
    Json one = slot_json(change.slot);
    one.update({{"at", change.at}, {"action", change.action}, {"artefact", change.artefact}, {"run", change.run}});
    json["history"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chimere::improve
