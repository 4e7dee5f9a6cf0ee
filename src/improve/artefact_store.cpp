#include "improve/artefact_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "base/platform/private_file.h"
#include "improve/content_hash.h"

namespace chimere::improve {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;  // of a manifest or a run

Result<std::string> read_bytes(const std::string& path, uint64_t limit) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return Error{Code::not_found, path + ": is not there"};
  if (bytes > limit) return Error{Code::exhausted, path + ": is larger than " + std::to_string(limit) + " bytes"};
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.good() && !in.eof()) return Error{Code::io, path + ": can not be read"};
  return text;
}

Status write_bytes(const std::string& path, std::string_view bytes) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, Readers::owner));
  TRY(file.write(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  return file.commit();
}

}  // namespace

std::string new_run_id(const Slot& slot, int64_t now) {
  const auto time = static_cast<std::time_t>(now);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char stamp[32], tail[16];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
  timespec clock{};
  clock_gettime(CLOCK_MONOTONIC, &clock);
  const uint64_t hash = hash64(slot.owner + "\n" + slot.route, static_cast<uint64_t>(clock.tv_nsec));
  std::snprintf(tail, sizeof tail, "%06x", static_cast<unsigned>(hash & 0xffffff));
  return std::string(stamp) + "-" + slot.kind + "-" + tail;
}

bool is_run_id(std::string_view id) {
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; };
  return !id.empty() && id.size() <= 80 && std::all_of(id.begin(), id.end(), fits);
}

Result<std::shared_ptr<ArtefactStore>> ArtefactStore::open(const std::string& folder) {
  for (const char* part : {"", "/artefacts", "/runs", "/work"}) TRY(make_private_folders(folder + part));
  return std::shared_ptr<ArtefactStore>(new ArtefactStore(folder));
}

std::string ArtefactStore::path_of(const std::string& artefact) const { return folder_ + "/artefacts/" + artefact; }

Result<std::string> ArtefactStore::put(std::string_view bytes) {
  const std::string hash = content_hash(bytes);
  std::error_code error;
  if (!fs::exists(path_of(hash), error)) TRY(write_bytes(path_of(hash), bytes));
  return hash;
}

Result<std::string> ArtefactStore::put_file(const std::string& path) {
  TRY_ASSIGN(const std::string bytes, read_bytes(path, UINT64_MAX));
  return put(bytes);
}

Result<std::string> ArtefactStore::read(const std::string& artefact) const {
  if (!is_content_hash(artefact)) return Error{Code::invalid_argument, "expected the hash of an artefact"};
  TRY_ASSIGN(std::string bytes, read_bytes(path_of(artefact), UINT64_MAX));
  if (content_hash(bytes) != artefact) {
    return Error{Code::corrupt, path_of(artefact) + ": its bytes are not those of its name"};
  }
  return bytes;
}

ArtefactStore::Seen ArtefactStore::look() const {
  struct stat status {};
  if (stat((folder_ + "/manifest.json").c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_ino), int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          int64_t{status.st_size}};
}

Result<std::shared_ptr<const Manifest>> ArtefactStore::manifest() const {
  const std::lock_guard lock(mutex_);
  const Seen now = look();
  if (manifest_ && now == seen_) return manifest_;
  auto next = std::make_shared<Manifest>();
  if (now.bytes >= 0) {
    TRY_ASSIGN(const std::string text, read_bytes(folder_ + "/manifest.json", kMaxTextBytes));
    TRY_ASSIGN(*next, parse_manifest(text));
  }
  manifest_ = std::move(next);
  seen_ = now;
  return manifest_;
}

Status ArtefactStore::update(const std::function<Status(Manifest&)>& change) {
  TRY_ASSIGN(const FileLock lock, FileLock::acquire(folder_ + "/lock"));
  TRY_ASSIGN(const auto now, manifest());
  Manifest next = *now;
  TRY(change(next));
  ++next.serial;
  return write_bytes(folder_ + "/manifest.json", manifest_text(next));
}

Status ArtefactStore::save_run(const RunRecord& run) {
  return write_bytes(folder_ + "/runs/" + run.id + ".json", run_text(run) + "\n");
}

Result<RunRecord> ArtefactStore::run(const std::string& id) const {
  if (!is_run_id(id)) return Error{Code::not_found, "no run '" + id.substr(0, 80) + "'"};
  auto text = read_bytes(folder_ + "/runs/" + id + ".json", kMaxTextBytes);
  if (!text)
    return Error{text.error().code,
                 text.error().code == Code::not_found ? "no run '" + id + "'" : text.error().message};
  return parse_run(*text);
}

Result<std::vector<RunRecord>> ArtefactStore::runs(const std::optional<std::string>& owner) const {
  std::vector<std::string> ids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ + "/runs", error)) {
    if (entry.path().extension() == ".json") ids.push_back(entry.path().stem().string());
  }
  std::sort(ids.rbegin(), ids.rend());
  std::vector<RunRecord> all;
  for (const std::string& id : ids) {
    auto one = run(id);
    // One that is damaged hides no others.
    if (one && (!owner || one->slot.owner == *owner)) all.push_back(std::move(*one));
  }
  return Result<std::vector<RunRecord>>{std::move(all)};
}

Status ArtefactStore::remove_run(const std::string& id) {
  if (!is_run_id(id)) return Error{Code::not_found, "no run '" + id.substr(0, 80) + "'"};
  std::error_code error;
  fs::remove(folder_ + "/runs/" + id + ".json", error);
  return error ? Status{Error{Code::io, id + ": " + error.message()}} : Status{Ok{}};
}

Result<size_t> ArtefactStore::sweep() {
  TRY_ASSIGN(const FileLock lock, FileLock::acquire(folder_ + "/lock"));
  TRY_ASSIGN(const auto now, manifest());
  std::set<std::string> named;
  for (const SlotVersions& slot : now->slots) {
    for (const Version& version : slot.versions) named.insert(version.artefact);
  }
  TRY_ASSIGN(const auto tried, runs(std::nullopt));
  for (const RunRecord& run : tried) named.insert(run.artefact);
  size_t removed = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ + "/artefacts", error)) {
    if (named.count(entry.path().filename().string()) > 0) continue;
    removed += fs::remove(entry.path(), error) ? 1 : 0;
  }
  return removed;
}

Result<std::optional<FileLock>> ArtefactStore::lock_runs() { return FileLock::try_acquire(folder_ + "/run.lock"); }

std::string ArtefactStore::work_file(const std::string& name) const { return folder_ + "/work/" + name; }

}  // namespace chimere::improve
