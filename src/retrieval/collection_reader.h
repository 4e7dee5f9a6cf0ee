// collection_reader.h  A connection that only reads, lent by the collections and given back when it goes. For this folder
// alone.
#pragma once

#include <optional>
#include <utility>

#include "retrieval/collections.h"

namespace chimere::retrieval {

class Collections::Reader {
 public:
  Reader(const Collections& from, Database database) : from_(&from), database_(std::move(database)) {}
  Reader(Reader&& other) noexcept : from_(other.from_), database_(std::move(other.database_)) {
    other.database_.reset();
  }
  Reader& operator=(Reader&&) = delete;
  ~Reader() {
    if (!database_) return;
    database_->end_when({});
    std::lock_guard lock(from_->readers_mutex_);
    if (from_->readers_.size() < kMaxIdleReaders) from_->readers_.push_back(std::move(*database_));
  }
  Database& operator*() { return *database_; }
  Database* operator->() { return &*database_; }

 private:
  static constexpr size_t kMaxIdleReaders = 8;
  const Collections* from_;
  std::optional<Database> database_;  // none once moved from
};

}  // namespace chimere::retrieval
