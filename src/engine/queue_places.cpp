#include "engine/queue_places.h"

#include <utility>

namespace chimere::engine {

QueuePlace::~QueuePlace() { places_->give_back(owner_); }

Result<std::vector<QueuePlacePtr>> QueuePlaces::take(OwnerId owner, int n) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = taken_.find(owner);
    const int own = entry == taken_.end() ? 0 : entry->second;
    const int n_owners = static_cast<int>(taken_.size()) + (own == 0 ? 1 : 0);
    // Who has nothing here always gets in: several answers to one prompt come together or not at all.
    if (own > 0 && n_taken_ + n > max_ && own + n > max_ / n_owners) {
      return Error{Code::exhausted, "the queue is full: " + std::to_string(n_taken_) + " " + what_ + " wait"};
    }
    taken_[owner] = own + n;
    n_taken_ += n;
  }
  std::vector<QueuePlacePtr> places;
  for (int i = 0; i < n; ++i) places.push_back(std::make_shared<QueuePlace>(shared_from_this(), owner));
  return Result<std::vector<QueuePlacePtr>>{std::move(places)};
}

void QueuePlaces::give_back(OwnerId owner) {
  std::lock_guard lock(mutex_);
  --n_taken_;
  const auto entry = taken_.find(owner);
  if (--entry->second == 0) taken_.erase(entry);
}

}  // namespace chimere::engine
