#include "cache/disk_store.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/platform/atomic_file.h"

namespace chimere {

namespace fs = std::filesystem;

namespace {

// After as many failed writes in a row the disk is full or gone: each further one would only repeat the line.
constexpr int kMaxFailures = 3;
constexpr size_t kMaxPointsOnDisk = 20000;

Status write_atomically(const std::string& path, std::span<const std::byte> bytes) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(bytes));
  return file.commit();
}

Result<std::vector<std::byte>> read_bytes(const std::string& path, uint64_t begin, uint64_t at_most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error{Code::io, "cannot open"};
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  std::vector<std::byte> bytes(std::min(at_most, size > begin ? size - begin : 0));
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file && !bytes.empty()) return Error{Code::io, "cannot read " + std::to_string(bytes.size()) + " bytes"};
  return Result<std::vector<std::byte>>{std::move(bytes)};
}

}  // namespace

uint64_t DiskStore::Write::size_bytes() const {
  uint64_t bytes = state.tail.size() + state.recurrent.size() + record.tokens.size() * sizeof(int32_t);
  for (const auto& page : new_pages) bytes += page.second.size();
  return bytes;
}

DiskStore::DiskStore(DiskConfig config, PointFormat format, std::function<void()> wake,
                     const std::function<void(const PointRecord&)>& found)
    : config_(std::move(config)), format_(format), wake_(std::move(wake)) {
  try {
    const Status opened = open_folder();
    if (opened) scan(found);
    if (!opened) log(opened.error().message + "; nothing is kept on the disk");
    if (!opened) failures_ = kMaxFailures;
  } catch (const std::exception& e) {
    log(std::string("not all of it can be read: ") + e.what());
  }
  thread_ = std::thread([this] { thread_main(); });
}

DiskStore::~DiskStore() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

void DiskStore::log(const std::string& line) const {
  if (config_.log) config_.log("prefix cache: " + line);
}

void DiskStore::add_bytes(int64_t bytes) { disk_bytes_ += static_cast<uint64_t>(bytes); }

Result<PointRecord> DiskStore::read_head(const std::string& path) const {
  TRY_ASSIGN(const auto first, read_bytes(path, 0, kPointHeaderBytes));
  TRY_ASSIGN(const auto head, read_bytes(path, 0, std::max(kPointHeaderBytes, point_head_bytes(first))));
  return parse_point_head(format_, head);
}

// Another key means another folder, so files of other keys are never read.
Status DiskStore::open_folder() {
  TRY_ASSIGN(std::string root, claim_cache_folder(config_.folder));
  TRY_ASSIGN(folder_, claim_model_folder(root, format_.key));
  root_ = std::move(root);
  if (root_ != config_.folder) log(config_.folder + ": holds other things; " + root_ + " is used");
  clear_mark_ = clear_mark(folder_);
  return Ok{};
}

// For when another process has removed it.
Status DiskStore::make_folder_again() {
  TRY_ASSIGN(const std::string root, claim_cache_folder(root_));
  if (root != root_) return Error{Code::invalid_argument, root_ + ": holds other things now"};
  TRY(claim_model_folder(root_, format_.key));
  clear_mark_ = clear_mark(folder_);
  return Ok{};
}

uint64_t DiskStore::limit_bytes() const {
  if (root_.empty()) return 0;
  const uint64_t others = others_bytes_;
  return std::min(config_.quota_bytes, others + std::min(config_.model_quota_bytes, UINT64_MAX - others));
}

void DiskStore::scan(const std::function<void(const PointRecord&)>& found) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, uint64_t>> names;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string file = entry.path().filename().string();
    uint64_t name = 0;
    PageName page;
    if (parse_point_file_name(file, name)) {
      names.push_back({entry.last_write_time(error), name});
    } else if (parse_page_file_name(file, page)) {
      pages_[page] = {entry.file_size(error), 0};
    } else if (const std::string target = file.substr(0, file.find(".tmp-"));
               (parse_page_file_name(target, page) || parse_point_file_name(target, name)) &&
               is_abandoned(entry.path().string())) {
      fs::remove(entry.path(), error);
    }
  }
  std::sort(names.begin(), names.end());
  for (const auto& entry : names) {
    const uint64_t name = entry.second;
    const std::string file = path(point_file_name(name));
    Result<PointRecord> record = read_head(file);
    if (record && record->name(format_.key) != name)
      record = Error{Code::corrupt, "its name is not that of its tokens"};
    const bool is_whole = record && std::all_of(record->pages.begin(), record->pages.end(), [&](const PageName& p) {
                            const auto page = pages_.find(p);
                            return page != pages_.end() && page->second.bytes == format_.page_bytes;
                          });
    if (record && !is_whole) record = Error{Code::corrupt, "pages of it are missing"};
    if (!record || points_.size() >= kMaxPointsOnDisk) {
      if (!record) log(file + ": " + record.error().message + "; ignored");
      fs::remove(file, error);
      continue;
    }
    for (const PageName& p : record->pages) ++pages_[p].holders;
    points_[name] = {fs::file_size(file, error), record->owner, ++tick_, record->pages};
    add_bytes(static_cast<int64_t>(points_[name].bytes));
    found(*record);
  }
  for (auto page = pages_.begin(); page != pages_.end();) {
    if (page->second.holders > 0) {
      add_bytes(static_cast<int64_t>(page->second.bytes));
      ++page;
    } else {
      fs::remove(path(page_file_name(page->first)), error);
      page = pages_.erase(page);
    }
  }
  make_room_among_others(disk_bytes_);
}

// The quota is for all models together; the least recently used ones are removed first, as a whole.
void DiskStore::make_room_among_others(uint64_t own_bytes) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> others;
  for (const std::string& other : model_folders(root_)) {
    if (other == folder_) continue;
    others.push_back({fs::last_write_time(other, error), other});
    others_bytes_ += use_of_folder(other).bytes;
  }
  std::sort(others.begin(), others.end());
  // Half of the quota is for the model that runs, if it can use it.
  const uint64_t reserved = std::min(config_.model_quota_bytes, config_.quota_bytes / 2);
  for (const auto& other : others) {
    if (others_bytes_ + std::max(own_bytes, reserved) <= config_.quota_bytes) return;
    const CacheUse cleared = clear_folder(other.second);
    if (cleared.bytes == 0) continue;
    others_bytes_ -= std::min<uint64_t>(others_bytes_, cleared.bytes);
    log(other.second + ": cleared, the quota of " + std::to_string(config_.quota_bytes) + " bytes is reached");
  }
}

void DiskStore::post(Job job) {
  if (job.write) queued_bytes_ += job.write->size_bytes();
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  ready_.notify_one();
}

void DiskStore::write(Write job) { post({.write = std::move(job)}); }
void DiskStore::read(Read job) { post({.read = std::move(job)}); }
void DiskStore::touch(uint64_t name) { post({.touch = name}); }
void DiskStore::clear(std::optional<uint64_t> owner, std::function<void(CacheUse)> done) {
  post({.clear = Clear{owner, std::move(done)}});
}

DiskStore::Results DiskStore::take_results() {
  std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void DiskStore::thread_main() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      look_again();
    } catch (const std::exception& e) {
      log(folder_ + ": cannot be looked through: " + e.what());
    }
    if (job.write) do_write(*job.write);
    if (job.read) do_read(*job.read);
    if (job.touch) {
      std::error_code error;
      if (const auto point = points_.find(*job.touch); point != points_.end()) {
        point->second.last_used = ++tick_;
        fs::last_write_time(path(point_file_name(*job.touch)), fs::file_time_type::clock::now(), error);
      }
    }
    if (job.clear) do_clear(*job.clear);
    const bool tells = job.write || job.read;
    job = {};
    if (tells && wake_) wake_();
    lock.lock();
  }
}

void DiskStore::look_again() {
  if (root_.empty()) return;
  std::string mark = clear_mark(folder_);
  if (mark == clear_mark_) return;
  // The folder itself may be gone: it is created again, or refused if something else has its name.
  if (mark.empty()) {
    if (const Status made = make_folder_again(); !made && failures_ < kMaxFailures) {
      log(made.error().message + "; no more is written until the next start");
      failures_ = kMaxFailures;
    }
  } else {
    clear_mark_ = std::move(mark);
  }
  std::error_code error;
  std::vector<uint64_t> gone;
  for (const auto& [name, point] : points_) {
    const bool is_whole = fs::exists(path(point_file_name(name)), error) &&
                          std::all_of(point.pages.begin(), point.pages.end(),
                                      [&](const PageName& p) { return fs::exists(path(page_file_name(p)), error); });
    if (!is_whole) gone.push_back(name);
  }
  for (const uint64_t name : gone) remove(name);
  uint64_t others = 0;
  for (const std::string& other : model_folders(root_)) others += other == folder_ ? 0 : use_of_folder(other).bytes;
  others_bytes_ = others;
  std::lock_guard lock(mutex_);
  results_.lost.insert(results_.lost.end(), gone.begin(), gone.end());
}

void DiskStore::do_clear(const Clear& job) {
  CacheUse cleared;
  try {
    std::vector<uint64_t> names;
    for (const auto& [name, point] : points_) {
      if (!job.owner || point.owner == *job.owner) names.push_back(name);
    }
    const uint64_t before = disk_bytes_;
    for (const uint64_t name : names) remove(name);
    cleared.bytes = before - disk_bytes_;
    // Everything includes what another process wrote for the same model, and the folders of other models.
    const bool is_all = !job.owner && !root_.empty();
    for (const std::string& folder : is_all ? model_folders(root_) : std::vector<std::string>()) {
      const CacheUse more = clear_folder(folder);
      cleared.bytes += more.bytes;
      cleared.entries += more.entries;
    }
    if (is_all) others_bytes_ = 0;
    if (is_all) clear_mark_ = clear_mark(folder_);
  } catch (const std::exception& e) {
    log(folder_ + ": not all of it can be cleared: " + e.what());
  }
  job.done(cleared);
}

void DiskStore::do_write(Write& job) {
  const uint64_t size = job.size_bytes();
  const uint64_t name = job.record.name(format_.key);
  if (failures_ < kMaxFailures) {
    Status stored = Ok{};
    try {
      stored = store(job);
    } catch (const std::exception& e) {
      stored = Error{Code::exhausted, e.what()};
    }
    if (stored) {
      failures_ = 0;
    } else {
      const bool is_last = ++failures_ == kMaxFailures;
      log(path(point_file_name(name)) + ": not kept: " + stored.error().message +
          (is_last ? "; no more is written until the next start" : ""));
    }
  }
  std::lock_guard lock(mutex_);
  if (points_.count(name)) {
    results_.written.push_back(std::move(job.record));
  } else {
    results_.lost.push_back(name);
  }
  queued_bytes_ -= size;
}

Status DiskStore::store(Write& job) {
  PointRecord& record = job.record;
  const uint64_t name = record.name(format_.key);
  if (points_.count(name)) return Ok{};
  std::map<PageName, const std::vector<std::byte>*> new_pages;
  for (const auto& page : job.new_pages) {
    const PageName page_id = page_name(page.second);
    record.pages[page.first] = page_id;
    if (!pages_.count(page_id)) new_pages[page_id] = &page.second;
  }
  for (const PageName& p : record.pages) {
    if (!pages_.count(p) && !new_pages.count(p)) return Error{Code::not_found, "a page of it was removed meanwhile"};
  }
  // Held from here on, so that making room does not remove what this position needs.
  for (const PageName& p : record.pages) ++pages_[p].holders;
  auto give_up = [&](Status why) {
    for (const PageName& p : record.pages) release_page(p);
    return why;
  };
  const std::vector<std::byte> bytes = encode_point(format_, record, job.state);
  const uint64_t size = bytes.size() + new_pages.size() * format_.page_bytes;
  if (!make_room(size)) {
    return give_up(Error{Code::exhausted, std::to_string(size) + " bytes are more than the quota of " +
                                              std::to_string(limit_bytes()) + " allows"});
  }
  const auto write_file = config_.write_file ? config_.write_file : write_atomically;
  for (const auto& page : new_pages) {
    if (Status s = write_file(path(page_file_name(page.first)), *page.second); !s) return give_up(std::move(s));
    pages_[page.first].bytes = page.second->size();
    add_bytes(static_cast<int64_t>(page.second->size()));
  }
  if (Status s = write_file(path(point_file_name(name)), bytes); !s) return give_up(std::move(s));
  points_[name] = {bytes.size(), record.owner, ++tick_, record.pages};
  add_bytes(static_cast<int64_t>(bytes.size()));
  return Ok{};
}

bool DiskStore::make_room(uint64_t bytes) {
  const uint64_t others = others_bytes_;
  const uint64_t limit =
      std::min(config_.model_quota_bytes, config_.quota_bytes - std::min(others, config_.quota_bytes));
  if (bytes > limit) return false;
  while (disk_bytes_ + bytes > limit || points_.size() >= kMaxPointsOnDisk) {
    const auto oldest = std::min_element(points_.begin(), points_.end(), [](const auto& a, const auto& b) {
      return a.second.last_used < b.second.last_used;
    });
    if (oldest == points_.end()) return false;
    const uint64_t name = oldest->first;
    remove(name);
    std::lock_guard lock(mutex_);
    results_.lost.push_back(name);
  }
  return true;
}

void DiskStore::remove(uint64_t name) {
  const auto point = points_.find(name);
  if (point == points_.end()) return;
  std::error_code error;
  fs::remove(path(point_file_name(name)), error);
  add_bytes(-static_cast<int64_t>(point->second.bytes));
  const std::vector<PageName> held = std::move(point->second.pages);
  points_.erase(point);
  for (const PageName& p : held) release_page(p);
}

void DiskStore::remove_holders(const PageName& page) {
  std::vector<uint64_t> holders;
  for (const auto& point : points_) {
    const std::vector<PageName>& held = point.second.pages;
    if (std::find(held.begin(), held.end(), page) != held.end()) holders.push_back(point.first);
  }
  for (const uint64_t name : holders) remove(name);
  std::lock_guard lock(mutex_);
  results_.lost.insert(results_.lost.end(), holders.begin(), holders.end());
}

void DiskStore::release_page(const PageName& name) {
  const auto page = pages_.find(name);
  if (page == pages_.end() || --page->second.holders > 0) return;
  std::error_code error;
  fs::remove(path(page_file_name(name)), error);
  add_bytes(-static_cast<int64_t>(page->second.bytes));
  pages_.erase(page);
}

void DiskStore::do_read(Read& job) {
  Results::Loaded loaded;
  const bool known = points_.count(job.name) > 0;
  Result<Results::Loaded> result = Error{Code::not_found, "removed meanwhile"};
  if (known) {
    try {
      result = load(job);
    } catch (const std::exception& e) {
      result = Error{Code::exhausted, e.what()};
    }
  }
  if (result) {
    loaded = std::move(*result);
    loaded.ok = true;
    points_[job.name].last_used = ++tick_;
    std::error_code error;
    fs::last_write_time(path(point_file_name(job.name)), fs::file_time_type::clock::now(), error);
  } else if (known) {
    log(path(point_file_name(job.name)) + ": " + result.error().message + "; ignored");
    remove(job.name);
    if (bad_page_) remove_holders(*std::exchange(bad_page_, std::nullopt));
  }
  loaded.name = job.name;
  std::lock_guard lock(mutex_);
  results_.loaded.push_back(std::move(loaded));
}

Result<DiskStore::Results::Loaded> DiskStore::load(const Read& job) {
  Results::Loaded loaded;
  TRY_ASSIGN(const auto bytes, read_bytes(path(point_file_name(job.name)), 0, UINT64_MAX));
  TRY_ASSIGN(loaded.record, parse_point(format_, bytes, loaded.state));
  if (loaded.record.name(format_.key) != job.name) return Error{Code::corrupt, "its name is not that of its tokens"};
  for (const PageName& p : loaded.record.pages) {
    if (loaded.pages.count(p) || std::binary_search(job.in_memory.begin(), job.in_memory.end(), p)) continue;
    TRY_ASSIGN(auto page, read_bytes(path(page_file_name(p)), 0, format_.page_bytes + 1));
    if (page.size() != format_.page_bytes || page_name(page) != p) {
      bad_page_ = p;
      return Error{Code::corrupt, page_file_name(p) + ": its name is not that of its bytes"};
    }
    loaded.pages[p] = std::move(page);
  }
  return Result<Results::Loaded>{std::move(loaded)};
}

}  // namespace chimere
