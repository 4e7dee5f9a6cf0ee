// artefact_store.h  The folder of everything that was learned: artefacts by the hash of their bytes, what is in use, and
// what was tried.
//
//   FOLDER/artefacts/HASH     never changed, only removed
//   FOLDER/manifest.json      what is in use (manifest.h)
//   FOLDER/runs/ID.json       what was tried (run_record.h)
//   FOLDER/work/              of a run that is under way: what it has computed so far
//   FOLDER/lock, run.lock     of whoever changes the manifest; of the one run there may be
//
// Folders and files are readable by the account of the server alone. Several processes may use it at once.
#pragma once

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
#include "improve/manifest.h"
#include "improve/run_record.h"

namespace chimere::improve {

class ArtefactStore {
 public:
  static Result<std::shared_ptr<ArtefactStore>> open(const std::string& folder);

  const std::string& folder() const { return folder_; }

  // Keeps bytes; gives their hash.
  Result<std::string> put(std::string_view bytes);
  Result<std::string> put_file(const std::string& path);
  // Checked against its name: what was damaged is not served.
  Result<std::string> read(const std::string& artefact) const;
  std::string path_of(const std::string& artefact) const;

  // What is in use now; of a file that was read already and has not changed since, without reading it again.
  Result<std::shared_ptr<const Manifest>> manifest() const;
  // Changes it as a whole: `change` sees the newest state, and what it leaves is in use from then on.
  Status update(const std::function<Status(Manifest&)>& change);

  Status save_run(const RunRecord& run);
  Result<RunRecord> run(const std::string& id) const;
  // Of an owner, or of all; the newest first.
  Result<std::vector<RunRecord>> runs(const std::optional<std::string>& owner) const;
  Status remove_run(const std::string& id);
  // Removes artefacts that no run and no slot names; how many.
  Result<size_t> sweep();

  // For the one run there may be at a time; nullopt: another process has one.
  Result<std::optional<FileLock>> lock_runs();
  std::string work_file(const std::string& name) const;

 private:
  explicit ArtefactStore(std::string folder) : folder_(std::move(folder)) {}

  struct Seen {
    int64_t inode = -1, nanoseconds = 0, bytes = -1;
    bool operator==(const Seen&) const = default;
  };
  Seen look() const;

  const std::string folder_;
  mutable std::mutex mutex_;
  mutable Seen seen_;
  mutable std::shared_ptr<const Manifest> manifest_;
};

// "20261118-040000-engram-1a2b3c": sorts by time.
std::string new_run_id(const Slot& slot, int64_t now);
bool is_run_id(std::string_view id);

}  // namespace chimere::improve
