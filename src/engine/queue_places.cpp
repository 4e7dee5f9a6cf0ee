#include "engine/queue_places.h"

#include <utility>

namespace chimere::engine {

QueuePlace::~QueuePlace() { places_->give_back(owner_); }

Result<std::vector<QueuePlacePtr>> QueuePlaces::take(OwnerId owner, int n) {
  {
    std::lock_guard lock(mutex_);
    TRY(check_locked(owner, n));
    taken_[owner] += n;
    n_taken_ += n;
  }
  std::vector<QueuePlacePtr> places;
  for (int i = 0; i < n; ++i) places.push_back(std::make_shared<QueuePlace>(shared_from_this(), owner));
  return Result<std::vector<QueuePlacePtr>>{std::move(places)};
}

Status QueuePlaces::check(OwnerId owner, int n) const {
  std::lock_guard lock(mutex_);
  return check_locked(owner, n);
}

Status QueuePlaces::check_locked(OwnerId owner, int n) const {
  const auto entry = taken_.find(owner);
  // Who has nothing here always gets in: several answers to one prompt come together or not at all.
  if (entry == taken_.end() || n_taken_ + n <= max_) return Ok{};
  if (entry->second + n <= max_ / static_cast<int>(taken_.size())) return Ok{};
  return Error{Code::exhausted, "the queue is full: " + std::to_string(n_taken_) + " " + what_ + " wait"};
}

void QueuePlaces::give_back(OwnerId owner) {
  std::lock_guard lock(mutex_);
  --n_taken_;
  const auto entry = taken_.find(owner);
  if (--entry->second == 0) taken_.erase(entry);
}

}  // namespace chimere::engine
