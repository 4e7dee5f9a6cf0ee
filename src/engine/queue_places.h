// queue_places.h  Places in a queue, shared by those who want some.
//
// One owner alone may have all places. When they are taken, an owner that has less than its share of them still gets
// one: those who came first keep theirs, and the number of places is exceeded by less than its double for seven owners
// (max + max / 2 + max / 3 + ...). So it is the one that has the most who is refused.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/fair_share.h"

namespace chimere::engine {

class QueuePlaces;

// A place that is taken; it is given back with the object. It may outlive the queue.
class QueuePlace {
 public:
  QueuePlace(std::shared_ptr<QueuePlaces> places, OwnerId owner) : places_(std::move(places)), owner_(owner) {}
  ~QueuePlace();
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;

 private:
  const std::shared_ptr<QueuePlaces> places_;
  const OwnerId owner_;
};

using QueuePlacePtr = std::shared_ptr<const QueuePlace>;

// Any thread.
class QueuePlaces : public std::enable_shared_from_this<QueuePlaces> {
 public:
  // what: of those that wait, for messages: "requests".
  QueuePlaces(int max, std::string what) : max_(max), what_(std::move(what)) {}

  // All n of them or an error (exhausted).
  Result<std::vector<QueuePlacePtr>> take(OwnerId owner, int n);
  // Whether take() would give them at this moment.
  Status check(OwnerId owner, int n) const;

 private:
  friend class QueuePlace;
  Status check_locked(OwnerId owner, int n) const;
  void give_back(OwnerId owner);

  const int max_;
  const std::string what_;
  mutable std::mutex mutex_;  // guards the two below
  std::map<OwnerId, int> taken_;
  int n_taken_ = 0;
};

}  // namespace chimere::engine
