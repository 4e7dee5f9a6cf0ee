// kept_responses.cpp  A list by age; there are few enough to look through it.
#include "server/protocols/kept_responses.h"

#include <algorithm>
#include <utility>

namespace chimere::server {
namespace {

constexpr size_t kOverhead = 128;  // of an entry or an item, beside its texts

size_t bytes_of(const KeptResponses::Entry& entry) {
  size_t bytes = kOverhead + entry.id.size() + entry.owner.size() + entry.body.size();
  for (const KeptResponses::Item& item : entry.items) bytes += kOverhead + item.id.size() + item.json.size();
  return bytes;
}

}  // namespace

void KeptResponses::erase(std::deque<Kept>::iterator kept) {
  bytes_ -= kept->bytes;
  kept_.erase(kept);
}

void KeptResponses::put(Entry entry) {
  const size_t bytes = bytes_of(entry);
  if (!is_on() || bytes > kMaxOwnerBytes) return;
  std::lock_guard lock(mutex_);
  const Clock::time_point now = entry.time;
  while (!kept_.empty() && !is_fresh(kept_.front(), now)) erase(kept_.begin());
  const auto is_owners = [&](const Kept& kept) { return kept.entry.owner == entry.owner; };
  size_t n_owner = 0, owner_bytes = bytes;
  for (const Kept& kept : kept_) {
    if (!is_owners(kept)) continue;
    ++n_owner;
    owner_bytes += kept.bytes;
  }
  while (n_owner >= kMaxOwnerCount || owner_bytes > kMaxOwnerBytes) {
    const auto oldest = std::find_if(kept_.begin(), kept_.end(), is_owners);
    --n_owner;
    owner_bytes -= oldest->bytes;
    erase(oldest);
  }
  while (kept_.size() >= kMaxCount || bytes_ + bytes > kMaxBytes) erase(kept_.begin());
  bytes_ += bytes;
  kept_.push_back({std::move(entry), bytes});
}

const KeptResponses::Kept* KeptResponses::find(std::string_view owner, std::string_view id,
                                               Clock::time_point now) const {
  for (const Kept& kept : kept_) {
    if (kept.entry.id == id && kept.entry.owner == owner && is_fresh(kept, now)) return &kept;
  }
  return nullptr;
}

std::optional<std::vector<KeptResponses::Item>> KeptResponses::conversation(std::string_view owner, std::string_view id,
                                                                            Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  const Kept* kept = find(owner, id, now);
  if (!kept) return std::nullopt;
  return kept->entry.items;
}

std::optional<std::vector<KeptResponses::Item>> KeptResponses::input(std::string_view owner, std::string_view id,
                                                                     Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  const Kept* kept = find(owner, id, now);
  if (!kept) return std::nullopt;
  const auto begin = kept->entry.items.begin();
  return std::vector<Item>(begin, begin + static_cast<std::ptrdiff_t>(kept->entry.n_input));
}

std::optional<std::string> KeptResponses::item(std::string_view owner, std::string_view id,
                                               Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
    if (kept->entry.owner != owner || !is_fresh(*kept, now)) continue;
    for (const Item& item : kept->entry.items) {
      if (!id.empty() && item.id == id) return item.json;
    }
  }
  return std::nullopt;
}

std::optional<std::string> KeptResponses::body(std::string_view owner, std::string_view id,
                                               Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  const Kept* kept = find(owner, id, now);
  if (!kept) return std::nullopt;
  return kept->entry.body;
}

void KeptResponses::drop_old(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  while (!kept_.empty() && !is_fresh(kept_.front(), now)) erase(kept_.begin());
}

bool KeptResponses::forget(std::string_view owner, std::string_view id, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.entry.id == id && k.entry.owner == owner && is_fresh(k, now);
  });
  if (kept == kept_.end()) return false;
  erase(kept);
  return true;
}

}  // namespace chimere::server
