// asked_jobs.h  Jobs that are to be done and are not, on the disk: who was told that one will be done need not ask again
// because the server was restarted.
//
// Of a server that shares its journal with nobody; for others it is the database that knows (store/shared_jobs.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::server {

struct AskedJob {
  std::string kind, owner;
  bool operator==(const AskedJob&) const = default;
};

class AskedJobs {
 public:
  explicit AskedJobs(std::string path) : path_(std::move(path)) {}

  // What was written last, in its order; nothing where there is no file. corrupt: it is none of ours.
  Result<std::vector<AskedJob>> read() const;
  // Replaces all. From any thread; of several calls the one with the highest serial stays.
  Status write(uint64_t serial, const std::vector<AskedJob>& jobs);

 private:
  const std::string path_;
  std::mutex mutex_;
  uint64_t written_ = 0;
};

}  // namespace chimere::server
