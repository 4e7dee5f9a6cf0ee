// batch_store.h  Files that clients upload, and the batches made of them, as OpenAI has them. All of it is on the disk and
// is there again when the server starts.
//
//   FOLDER/key-NAME/file-ID        the content: JSON Lines
//   FOLDER/key-NAME/file-ID.json   its name, purpose and time
//   FOLDER/key-NAME/batch_ID.json  a batch, as the API shows it
//
// Results are put behind a file and on the disk before they are counted: a crash costs the requests that were running,
// which are made again. Other files are written beside their place and renamed. All are readable by the account of the
// server alone. Nobody sees another key's. Use it from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/platform/file_lock.h"
#include "base/result.h"

namespace chimere::server {

struct BatchLimits {
  size_t files = 200;                               // of a key, results among them
  size_t batches = 100;                             // of a key; the oldest that have ended give way
  size_t open_batches = 8;                          // of a key, that have not ended
  size_t lines = 10'000;                            // requests of a batch
  uint64_t owner_bytes = uint64_t{256} << 20;       // of all files of a key
  uint64_t result_file_bytes = uint64_t{64} << 20;  // of one file of results
  uint64_t all_bytes = uint64_t{4} << 30;           // of all files of all keys
  std::chrono::seconds window = std::chrono::hours(24);
};

struct StoredFile {
  std::string id;
  std::string name;
  std::string purpose;
  uint64_t bytes = 0;
  int64_t created = 0;
};

struct Batch {
  std::string id;
  std::string owner;
  std::string endpoint;
  std::string input, output, errors;  // ids of files; empty: there is none (yet)
  std::string status = "validating";  // then in_progress, cancelling; ended: completed, failed, cancelled, expired
  std::string window;
  std::string metadata = "null";  // JSON
  std::string problem;            // of a failed one
  int problem_line = 0;
  int64_t created = 0, expires = 0, started = 0, cancelling = 0, ended = 0;
  uint64_t total = 0, completed = 0, failed = 0;

  bool is_open() const { return status == "validating" || status == "in_progress" || status == "cancelling"; }
  bool is_expired() const;  // its time is over, though it may still be open
};

// One request of a batch.
struct BatchLine {
  std::string custom_id;
  std::string body;
  std::string problem;  // why it can not be made; empty: it can
};

struct BatchResult {
  bool is_success = false;
  std::string line;  // JSON, without its end
};

class BatchStore {
 public:
  // Null where another server has the folder: each batch is run by one.
  static Result<std::shared_ptr<BatchStore>> open(const std::string& folder, BatchLimits limits = {});

  // Exhausted where it does not fit.
  Result<StoredFile> add_file(const std::string& owner, std::string name, std::string purpose,
                              std::string_view content);
  std::vector<StoredFile> files(const std::string& owner) const;  // newest first
  std::optional<StoredFile> file(const std::string& owner, const std::string& id) const;
  // To be read without the store; it stays whole when the file is deleted.
  Result<std::shared_ptr<std::ifstream>> content(const std::string& owner, const std::string& id) const;
  // Invalid where a batch that has not ended needs it; not_found where there is none.
  Status remove_file(const std::string& owner, const std::string& id);

  // Of the batch: owner, endpoint, input, window, metadata. The input's text is looked at when its turn comes.
  Result<Batch> create(Batch batch);
  std::vector<Batch> batches(const std::string& owner) const;  // newest first
  std::optional<Batch> batch(const std::string& owner, const std::string& id) const;
  // What it is then: cancelled where nothing of it has begun; one that has ended stays as it is. not_found where there is
  // none.
  Result<Batch> cancel(const std::string& owner, const std::string& id);

  // For the one who runs them. `changed` is called, on any thread and with the store locked, when a batch was made or is to end.
  void watch(std::function<void()> changed);
  // Those that have not ended, oldest first.
  std::vector<Batch> open_batches() const;
  // The requests that have no result yet. An input that is none ends the batch as failed, and there are none.
  Result<std::vector<BatchLine>> begin(const std::string& owner, const std::string& id);
  Result<Batch> add_results(const std::string& owner, const std::string& id, const std::vector<BatchResult>& results);
  // completed, cancelled, expired or, with a problem, failed.
  Status end(const std::string& owner, const std::string& id, const std::string& status,
             const std::string& problem = {});

 private:
  struct Owner {
    std::filesystem::path folder;
    std::map<std::string, StoredFile> files;
    std::map<std::string, Batch> batches;
    uint64_t bytes = 0;
  };
  BatchStore(std::filesystem::path folder, BatchLimits limits, FileLock lock)
      : folder_(std::move(folder)), limits_(limits), lock_(std::move(lock)) {}
  void read_owner(const std::filesystem::path& folder, const std::string& name);
  const Owner* find_owner(const std::string& name) const;
  Result<Owner*> owner_for(const std::string& name);
  Result<StoredFile*> new_file(Owner& owner, std::string name, std::string purpose, std::string_view content);
  static Status save(const Owner& owner, const Batch& batch);
  Batch* find_batch(const std::string& owner, const std::string& id, Owner*& found);
  Status check_room(const Owner& owner, uint64_t bytes) const;
  void count_bytes(Owner& owner, StoredFile& file, uint64_t bytes);
  // By id: whether it was a success.
  Result<std::map<std::string, bool>> results_of(Owner& owner, const Batch& batch);
  Status append(Owner& owner, Batch& batch, bool is_success, const std::vector<BatchResult>& results);

  const std::filesystem::path folder_;
  const BatchLimits limits_;
  const FileLock lock_;
  mutable std::mutex mutex_;  // guards all below
  std::function<void()> changed_;
  std::map<std::string, Owner> owners_;
  uint64_t all_bytes_ = 0;
};

// An error where it has no id by which its result could be found. `endpoint`: what its url has to be.
Result<BatchLine> parse_batch_line(std::string_view line, const std::string& endpoint);

// The paths that a batch may ask.
bool is_batch_endpoint(std::string_view path);

}  // namespace chimere::server
