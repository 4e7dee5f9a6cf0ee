// conversation_store.h  Conversations that clients keep on this server, so that the browsers of one person agree.
//
//   FOLDER/key-NAME/ID.json   a line {"revision":12}, then the conversation as it was sent
//   FOLDER/key-NAME/state     {"store":"9f...","revision":15}
//
// Each change of an owner has a revision, one more than the last. A client that changes what it knows names the
// revision it knows (If-Match); where another has been faster it is told so and nothing is lost. Deleting is a change,
// too: `state` remembers its revision, so that none is given twice. `store` names this collection: a client that finds
// another name knows that what is missing was not deleted by its owner, but was never there.
//
// Files are written beside their place and renamed, so that a crash leaves the old text or the new. They are readable
// by the account of the server alone. Nobody sees another owner's. Use it from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::server {

struct ConversationLimits {
  size_t owner_count = 2000;
  uint64_t owner_bytes = uint64_t{128} << 20;
  uint64_t all_bytes = uint64_t{4} << 30;
};

class ConversationStore {
 public:
  // Makes the folder where it is missing, and looks how much lies there.
  static Result<std::shared_ptr<ConversationStore>> open(const std::string& folder, ConversationLimits limits);

  struct Entry {
    std::string id;
    uint64_t revision = 0;
    uint64_t bytes = 0;
  };
  struct Listing {
    std::string store;
    uint64_t revision = 0;       // of the last change
    std::vector<Entry> entries;  // by id
    uint64_t bytes = 0;
  };
  struct Kept {
    uint64_t revision = 0;
    std::string json;
  };
  // What must hold for a change to be made.
  struct Condition {
    std::optional<uint64_t> revision;  // it is at this one
    bool is_absent = false;            // there is none of this id
  };
  struct Change {
    enum class Outcome { made, missing, changed_meanwhile, no_room };
    Outcome outcome = Outcome::made;
    uint64_t revision = 0;  // of the change; of what is there, where it was changed meanwhile (0: nothing)
    std::string no_room;    // which limit stands against it
  };

  // `owner`: the name of a key; empty where there are none. `id`: see is_id().
  Result<Listing> list(const std::string& owner);
  Result<std::optional<Kept>> get(const std::string& owner, const std::string& id);
  Result<Change> put(const std::string& owner, const std::string& id, std::string_view json, Condition condition);
  Result<Change> remove(const std::string& owner, const std::string& id, Condition condition);
  // All of this owner's, and the name of the collection with them; how many there were.
  Result<size_t> clear(const std::string& owner);

  const ConversationLimits& limits() const { return limits_; }
  // 1 to 64 letters, digits, '-' and '_'.
  static bool is_id(std::string_view text);

 private:
  struct Owner {
    std::filesystem::path folder;
    std::string store;
    uint64_t revision = 0;
    uint64_t bytes = 0;
    std::map<std::string, Entry> entries;
  };
  ConversationStore(std::filesystem::path folder, ConversationLimits limits)
      : folder_(std::move(folder)), limits_(limits) {}
  Result<Owner*> owner(const std::string& name);
  Status read_folder(Owner& owner) const;
  static std::optional<Change> refused(const Owner& owner, const std::string& id, const Condition& condition);
  static Status write_state(const Owner& owner, uint64_t revision);

  const std::filesystem::path folder_;
  const ConversationLimits limits_;
  std::mutex mutex_;
  std::map<std::string, Owner> owners_;  // those that were asked for
  uint64_t all_bytes_ = 0;
};

}  // namespace chimere::server
