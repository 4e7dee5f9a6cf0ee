// conversation_store.cpp  Files of conversations, and the list of them that is kept in memory.
#include "server/admin/conversation_store.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <utility>

#include "base/platform/atomic_file.h"
#include "base/platform/private_file.h"
#include "server/http/api_keys.h"
#include "server/http/owner_folder.h"
#include "text/json.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".json";
constexpr size_t kMaxHeadBytes = 256;

Status write_file(const fs::path& path, std::string_view head, std::string_view text) {
  TRY_ASSIGN(AtomicFile out, AtomicFile::create(path.string(), Readers::owner));
  TRY(out.write(std::as_bytes(std::span(head))));
  TRY(out.write(std::as_bytes(std::span(text))));
  return out.commit();
}

// The first line of a file, as JSON; null when it is none of ours.
Json read_head(std::ifstream& in) {
  std::string line(kMaxHeadBytes, '\0');
  in.getline(line.data(), static_cast<std::streamsize>(line.size()));
  if (!in) return {};
  line.resize(static_cast<size_t>(in.gcount()) - 1);
  auto parsed = parse_json(line);
  return parsed && parsed->is_object() ? *parsed : Json();
}

uint64_t number_of(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string new_name() { return random_key().substr(3, 16); }

uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

}  // namespace

bool ConversationStore::is_id(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

Result<std::shared_ptr<ConversationStore>> ConversationStore::open(const std::string& folder,
                                                                   ConversationLimits limits) {
  TRY(make_private_folders(folder));
  std::shared_ptr<ConversationStore> store(new ConversationStore(folder, limits));
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) store->all_bytes_ += bytes_of(entry.path());
  }
  if (error) return Error{Code::io, folder + ": can not be read: " + error.message()};
  return Result<std::shared_ptr<ConversationStore>>{std::move(store)};
}

// Lists what lies there. Files that are none of ours, or damaged, are passed over; what a crash left behind goes.
Status ConversationStore::read_folder(Owner& owner) const {
  std::error_code error;
  bool is_damaged = false;
  for (const auto& entry : fs::directory_iterator(owner.folder, error)) {
    const fs::path& path = entry.path();
    if (is_abandoned(path.string())) {
      std::error_code ignored;
      fs::remove(path, ignored);
      continue;
    }
    const std::string id = path.stem().string();
    std::ifstream in(path, std::ios::binary);
    const Json head = read_head(in);
    if (path.filename() == "state" && head.is_object()) {
      const auto store = head.find("store");
      if (store != head.end() && store->is_string()) owner.store = store->get<std::string>();
      owner.revision = std::max(owner.revision, number_of(head, "revision"));
    }
    if (path.extension() != kEnding || !is_id(id)) continue;
    const uint64_t revision = number_of(head, "revision");
    if (revision == 0) {
      is_damaged = true;
      continue;
    }
    const uint64_t bytes = bytes_of(path);
    owner.entries[id] = {id, revision, bytes};
    owner.revision = std::max(owner.revision, revision);
    owner.bytes += bytes;
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Error{Code::io, owner.folder.string() + ": can not be read: " + error.message()};
  }
  // Clients must not take it for deleted, and delete theirs: in a collection of another name nothing was.
  if (is_damaged) owner.store.clear();
  return Ok{};
}

Status ConversationStore::write_state(const Owner& owner, uint64_t revision) {
  const Json json{{"store", owner.store}, {"revision", revision}};
  return write_file(owner.folder / "state", json.dump(), "\n");
}

Result<ConversationStore::Owner*> ConversationStore::owner(const std::string& name) {
  if (const auto found = owners_.find(name); found != owners_.end()) return &found->second;
  Owner owner;
  owner.folder = folder_ / owner_folder(name);
  TRY(make_private_folders(owner.folder.string()));
  TRY(read_folder(owner));
  if (owner.store.empty()) {
    owner.store = new_name();
    TRY(write_state(owner, owner.revision));
  }
  return &(owners_[name] = std::move(owner));
}

Result<ConversationStore::Listing> ConversationStore::list(const std::string& name) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const Owner* kept, owner(name));
  Listing listing{kept->store, kept->revision, {}, kept->bytes};
  for (const auto& [id, entry] : kept->entries) listing.entries.push_back(entry);
  return Result<Listing>{std::move(listing)};
}

Result<std::optional<ConversationStore::Kept>> ConversationStore::get(const std::string& name, const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const Owner* kept, owner(name));
  const auto found = kept->entries.find(id);
  if (found == kept->entries.end()) return std::optional<Kept>();
  const fs::path path = kept->folder / (id + kEnding);
  std::ifstream in(path, std::ios::binary);
  const Json head = read_head(in);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (number_of(head, "revision") != found->second.revision) {
    return Error{Code::io, path.string() + ": expected revision " + std::to_string(found->second.revision) +
                               ", found another: the file was changed by others"};
  }
  return std::optional<Kept>(Kept{found->second.revision, std::move(text)});
}

std::optional<ConversationStore::Change> ConversationStore::refused(const Owner& owner, const std::string& id,
                                                                    const Condition& condition) {
  const auto found = owner.entries.find(id);
  const uint64_t there = found == owner.entries.end() ? 0 : found->second.revision;
  const bool holds = (!condition.is_absent || there == 0) && (!condition.revision || *condition.revision == there);
  if (holds) return std::nullopt;
  return Change{Change::Outcome::changed_meanwhile, there, {}};
}

Result<ConversationStore::Change> ConversationStore::put(const std::string& name, const std::string& id,
                                                         std::string_view json, Condition condition) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Owner * kept, owner(name));
  if (auto no = refused(*kept, id, condition)) return std::move(*no);
  const uint64_t revision = kept->revision + 1;
  const std::string head = Json{{"revision", revision}}.dump() + "\n";
  const auto found = kept->entries.find(id);
  const uint64_t old_bytes = found == kept->entries.end() ? 0 : found->second.bytes;
  const uint64_t bytes = head.size() + json.size();
  const auto no_room = [](const std::string& what, uint64_t limit) {
    return Change{Change::Outcome::no_room, 0, "expected at most " + std::to_string(limit) + " " + what};
  };
  if (old_bytes == 0 && kept->entries.size() >= limits_.owner_count) {
    return no_room("conversations of a key", limits_.owner_count);
  }
  if (kept->bytes - old_bytes + bytes > limits_.owner_bytes) {
    return no_room("bytes of conversations of a key", limits_.owner_bytes);
  }
  if (all_bytes_ - old_bytes + bytes > limits_.all_bytes) {
    return no_room("bytes of conversations of all keys", limits_.all_bytes);
  }
  TRY(write_file(kept->folder / (id + kEnding), head, json));
  kept->entries[id] = {id, revision, bytes};
  kept->revision = revision;
  kept->bytes += bytes - old_bytes;
  all_bytes_ += bytes - old_bytes;
  return Change{Change::Outcome::made, revision, {}};
}

Result<ConversationStore::Change> ConversationStore::remove(const std::string& name, const std::string& id,
                                                            Condition condition) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Owner * kept, owner(name));
  const auto found = kept->entries.find(id);
  if (found == kept->entries.end()) return Change{Change::Outcome::missing, 0, {}};
  if (auto no = refused(*kept, id, condition)) return std::move(*no);
  const uint64_t revision = kept->revision + 1;
  TRY(write_state(*kept, revision));
  std::error_code error;
  fs::remove(kept->folder / (id + kEnding), error);
  if (error) return Error{Code::io, (kept->folder / (id + kEnding)).string() + ": can not be removed"};
  kept->revision = revision;
  kept->bytes -= found->second.bytes;
  all_bytes_ -= found->second.bytes;
  kept->entries.erase(found);
  return Change{Change::Outcome::made, revision, {}};
}

Result<size_t> ConversationStore::clear(const std::string& name) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Owner * kept, owner(name));
  const size_t count = kept->entries.size();
  // The name first: whoever sees some of them missing must not take that for their end.
  kept->store = new_name();
  TRY(write_state(*kept, ++kept->revision));
  for (auto entry = kept->entries.begin(); entry != kept->entries.end(); entry = kept->entries.erase(entry)) {
    std::error_code error;
    fs::remove(kept->folder / (entry->first + kEnding), error);
    if (error) return Error{Code::io, kept->folder.string() + ": conversations can not be removed"};
    kept->bytes -= entry->second.bytes;
    all_bytes_ -= entry->second.bytes;
  }
  return count;
}

}  // namespace chimere::server
