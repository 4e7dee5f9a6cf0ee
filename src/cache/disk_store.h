// disk_store.h  Points of the prefix cache on disk: one folder per model, files named after their content
// (point_file.h), and one thread that reads and writes them in the order of the requests.
//
// Callers never wait: jobs go into a queue, and results come back through take_results() after `wake` was called on the
// store's thread. The store stays within its quota by removing the least recently used points, and reports what it
// removed. A file that is damaged or does not belong is removed with a line in the log; nothing of it is used.
//
// The files hold what people wrote, so a model's folder is readable by its owner alone (mode 0700). cache_folder.h says
// which folders and files are ours; others are not touched.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache_folder.h"
#include "cache/point_file.h"

namespace chimere {

struct DiskConfig {
  std::string folder;                                // for all models; empty: nothing is kept on disk
  uint64_t quota_bytes = 0;                          // for all models together
  uint64_t model_quota_bytes = UINT64_MAX;           // for the model that runs
  std::function<void(const std::string&)> log = {};  // lines for a person; called from any thread
  // Writes a file atomically: all of it or nothing. Tests replace it to make writes fail.
  std::function<Status(const std::string& path, std::span<const std::byte>)> write_file = {};
};

class DiskStore {
 public:
  struct Write {
    PointRecord record;  // pages[i] is known, or new_pages has it
    PointBytes state;
    std::vector<std::pair<size_t, std::vector<std::byte>>> new_pages;  // (index into record.pages, bytes)
    uint64_t size_bytes() const;
  };
  struct Read {
    uint64_t name = 0;
    std::vector<PageName> in_memory;  // pages that need not be read, sorted
  };
  struct Results {
    struct Loaded {
      uint64_t name = 0;
      bool ok = false;
      PointRecord record;
      PointBytes state;
      std::map<PageName, std::vector<std::byte>> pages;
    };
    std::vector<PointRecord> written;  // with the names of all pages
    std::vector<uint64_t> lost;        // points that were not written, or are no longer there
    std::vector<Loaded> loaded;
  };

  // Reads the index of what is there; `found` is called for each usable position, the least recently used first.
  DiskStore(DiskConfig config, PointFormat format, std::function<void()> wake,
            const std::function<void(const PointRecord&)>& found);
  // Finishes the queued jobs.
  ~DiskStore();

  void write(Write job);
  void read(Read job);
  void touch(uint64_t name);  // records that it was used
  // Removes what an owner has here, or everything, other models' included. `done` is called on the store's thread with
  // the bytes that were freed and the number of entries that belonged to other models.
  void clear(std::optional<uint64_t> owner, std::function<void(CacheUse)> done);
  Results take_results();

  uint64_t queued_bytes() const { return queued_bytes_; }  // memory of jobs and results
  uint64_t disk_bytes() const { return disk_bytes_; }
  uint64_t others_bytes() const { return others_bytes_; }  // of other models
  // The limit for these two together.
  uint64_t limit_bytes() const;
  const std::string& folder() const { return root_; }  // of all models; empty when no folder could be used

 private:
  struct Point {
    uint64_t bytes = 0;
    uint64_t owner = 0;
    uint64_t last_used = 0;
    std::vector<PageName> pages;
  };
  struct Page {
    uint64_t bytes = 0;
    int holders = 0;
  };
  struct Clear {
    std::optional<uint64_t> owner;
    std::function<void(CacheUse)> done;
  };
  struct Job {
    std::optional<Write> write = {};
    std::optional<Read> read = {};
    std::optional<uint64_t> touch = {};
    std::optional<Clear> clear = {};
  };

  Status open_folder();
  Status make_folder_again();
  void scan(const std::function<void(const PointRecord&)>& found);
  Result<PointRecord> read_head(const std::string& path) const;
  void make_room_among_others(uint64_t own_bytes);
  void thread_main();
  void post(Job job);
  void do_write(Write& job);
  Status store(Write& job);
  void do_read(Read& job);
  Result<Results::Loaded> load(const Read& job);
  void do_clear(const Clear& job);
  // Forgets points that another process has removed.
  void look_again();
  bool make_room(uint64_t bytes);
  void remove(uint64_t name);
  void remove_holders(const PageName& page);
  void release_page(const PageName& name);
  void add_bytes(int64_t bytes);
  std::string path(const std::string& file) const { return folder_ + "/" + file; }
  void log(const std::string& line) const;

  const DiskConfig config_;
  const PointFormat format_;
  const std::function<void()> wake_;
  std::string root_;    // for all models
  std::string folder_;  // for this model; neither changes once the thread runs

  // Owned by the store's thread once it runs.
  std::map<uint64_t, Point> points_;
  std::map<PageName, Page> pages_;
  uint64_t tick_ = 0;
  int failures_ = 0;                  // in a row
  std::string clear_mark_;            // the folder's marker when it was last scanned
  std::optional<PageName> bad_page_;  // that load() found

  std::atomic<uint64_t> queued_bytes_{0};
  std::atomic<uint64_t> disk_bytes_{0};
  std::atomic<uint64_t> others_bytes_{0};
  std::mutex mutex_;  // guards the three below
  std::condition_variable ready_;
  std::deque<Job> jobs_;
  Results results_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace chimere
