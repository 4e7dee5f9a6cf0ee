// batch_store.cpp  Files of uploads, batches and results.
#include "server/batch/batch_store.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/platform/atomic_file.h"
#include "base/platform/private_file.h"
#include "server/batch/batch_json.h"
#include "server/http/api_keys.h"
#include "server/http/owner_folder.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeta = ".json";
constexpr size_t kMaxCustomIdBytes = 256;
constexpr std::string_view kBatchPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                            "/v1/embeddings"};

int64_t now_seconds() { return static_cast<int64_t>(std::time(nullptr)); }

// Later ones are greater, so that those of one second have an order; the rest nobody guesses.
std::string new_id(const char* kind) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto time = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  std::string digits(14, '0');
  for (size_t i = digits.size(); i-- > 0; time >>= 4) digits[i] = "0123456789abcdef"[time & 15];
  return kind + digits + random_key().substr(3, 16);
}

template <class T>
bool is_older(const T& a, const T& b) {
  return std::tie(a.created, a.id) < std::tie(b.created, b.id);
}

Status write_whole(const fs::path& path, std::string_view text) {
  TRY_ASSIGN(AtomicFile out, AtomicFile::create(path.string(), Readers::owner));
  TRY(out.write(std::as_bytes(std::span(text))));
  return out.commit();
}

Result<std::string> read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path.string() + ": can not be read"};
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

// Calls `look` with each line that is not empty, and its number from 1, until that returns false.
template <class Look>
void each_line(std::string_view text, Look look) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty() && !look(line, number)) return;
  }
}

Error no_such(const char* what, const std::string& id) {
  return Error{Code::not_found, std::string("there is no ") + what + " '" + id + "'"};
}

Error full(const std::string& what) { return Error{Code::exhausted, "expected at most " + what}; }

template <class T>
std::vector<T> newest_first(const std::map<std::string, T>& all) {
  std::vector<T> list;
  for (const auto& [id, one] : all) list.push_back(one);
  std::sort(list.begin(), list.end(), [](const T& a, const T& b) { return is_older(b, a); });
  return list;
}

}  // namespace

bool Batch::is_expired() const { return now_seconds() >= expires; }

bool is_batch_endpoint(std::string_view path) {
  return std::find(std::begin(kBatchPaths), std::end(kBatchPaths), path) != std::end(kBatchPaths);
}

Result<BatchLine> parse_batch_line(std::string_view line, const std::string& endpoint) {
  const auto wrong = [](const std::string& message) { return Error{Code::invalid_argument, message}; };
  const auto parsed = parse_json(std::string(line));
  if (!parsed) return wrong(parsed.error().message);
  if (!parsed->is_object()) return wrong(std::string("expected an object, found ") + describe(*parsed));
  const auto text = [&](const char* name) -> std::string {
    const auto found = parsed->find(name);
    return found != parsed->end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  BatchLine request{text("custom_id"), {}, {}};
  if (request.custom_id.empty() || request.custom_id.size() > kMaxCustomIdBytes) {
    return wrong("custom_id: expected a text of 1 to " + std::to_string(kMaxCustomIdBytes) + " bytes");
  }
  const auto body = parsed->find("body");
  if (text("method") != "POST") {
    request.problem = "method: expected \"POST\"";
  } else if (text("url") != endpoint) {
    request.problem = "url: expected \"" + endpoint + "\", the endpoint of the batch";
  } else if (body == parsed->end() || !body->is_object()) {
    request.problem = "body: expected an object";
  } else if (const auto stream = body->find("stream"); stream != body->end() && *stream == Json(true)) {
    request.problem = "body.stream: expected false: results of a batch are whole";
  } else {
    request.body = body->dump();
  }
  return Result<BatchLine>{std::move(request)};
}

Result<std::shared_ptr<BatchStore>> BatchStore::open(const std::string& folder, BatchLimits limits) {
  TRY(make_private_folders(folder));
  TRY_ASSIGN(auto lock, FileLock::try_acquire((fs::path(folder) / "lock").string()));
  if (!lock) return std::shared_ptr<BatchStore>();
  std::shared_ptr<BatchStore> store(new BatchStore(folder, limits, std::move(*lock)));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == kFolderWithoutKeys) store->read_owner(entry.path(), {});
    if (name.starts_with(kKeyFolder)) store->read_owner(entry.path(), name.substr(kKeyFolder.size()));
  }
  if (error) return Error{Code::io, folder + ": can not be read: " + error.message()};
  return Result<std::shared_ptr<BatchStore>>{std::move(store)};
}

// What can not be read is passed over: it is none of ours, or damaged beyond use.
void BatchStore::read_owner(const fs::path& folder, const std::string& name) {
  Owner owner;
  owner.folder = folder;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (is_abandoned(path.string())) {
      std::error_code ignored;
      fs::remove(path, ignored);
      continue;
    }
    if (path.extension() != kMeta) continue;
    const auto text = read_whole(path);
    const auto json = text ? parse_json(*text) : Result<Json>(text.error());
    if (!json) continue;
    const std::string id = path.stem().string();
    if (auto batch = batch_from(*json); batch && batch->id == id) {
      batch->owner = name;
      owner.batches[id] = std::move(*batch);
    } else if (auto file = file_from(*json); file && file->id == id) {
      std::error_code missing;
      file->bytes = fs::file_size(folder / id, missing);
      if (missing) continue;
      owner.bytes += file->bytes;
      all_bytes_ += file->bytes;
      owner.files[id] = std::move(*file);
    }
  }
  owners_[name] = std::move(owner);
}

const BatchStore::Owner* BatchStore::find_owner(const std::string& name) const {
  const auto found = owners_.find(name);
  return found == owners_.end() ? nullptr : &found->second;
}

Result<BatchStore::Owner*> BatchStore::owner_for(const std::string& name) {
  Owner& owner = owners_[name];
  if (owner.folder.empty()) {
    owner.folder = folder_ / owner_folder(name);
    TRY(make_private_folders(owner.folder.string()));
  }
  return &owner;
}

Status BatchStore::check_room(const Owner& owner, uint64_t bytes) const {
  if (owner.bytes + bytes > limits_.owner_bytes) {
    return full(std::to_string(limits_.owner_bytes) + " bytes of files of a key");
  }
  if (all_bytes_ + bytes > limits_.all_bytes) return full(std::to_string(limits_.all_bytes) + " bytes of files");
  return Ok{};
}

// That the file has now.
void BatchStore::count_bytes(Owner& owner, StoredFile& file, uint64_t bytes) {
  owner.bytes += bytes - file.bytes;
  all_bytes_ += bytes - file.bytes;
  file.bytes = bytes;
}

// The content first: a file that is listed is there.
Result<StoredFile*> BatchStore::new_file(Owner& owner, std::string name, std::string purpose,
                                         std::string_view content) {
  StoredFile file{new_id("file-"), std::move(name), std::move(purpose), 0, now_seconds()};
  TRY(write_whole(owner.folder / file.id, content));
  TRY(write_whole(owner.folder / (file.id + kMeta), file_json(file).dump()));
  StoredFile& kept = owner.files[file.id];
  kept = std::move(file);
  count_bytes(owner, kept, content.size());
  return &kept;
}

Result<StoredFile> BatchStore::add_file(const std::string& owner, std::string name, std::string purpose,
                                        std::string_view content) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Owner * kept, owner_for(owner));
  if (kept->files.size() >= limits_.files) return full(std::to_string(limits_.files) + " files of a key");
  TRY(check_room(*kept, content.size()));
  TRY_ASSIGN(const StoredFile* file, new_file(*kept, std::move(name), std::move(purpose), content));
  return *file;
}

std::vector<StoredFile> BatchStore::files(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const Owner* kept = find_owner(owner);
  return kept ? newest_first(kept->files) : std::vector<StoredFile>();
}

std::optional<StoredFile> BatchStore::file(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const Owner* kept = find_owner(owner);
  if (!kept) return std::nullopt;
  const auto found = kept->files.find(id);
  return found == kept->files.end() ? std::nullopt : std::optional(found->second);
}

Result<std::shared_ptr<std::ifstream>> BatchStore::content(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const Owner* kept = find_owner(owner);
  if (!kept || !kept->files.contains(id)) return no_such("file", id);
  auto in = std::make_shared<std::ifstream>(kept->folder / id, std::ios::binary);
  if (!*in) return Error{Code::io, (kept->folder / id).string() + ": can not be read"};
  return Result<std::shared_ptr<std::ifstream>>{std::move(in)};
}

Status BatchStore::remove_file(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto kept = owners_.find(owner);
  if (kept == owners_.end() || !kept->second.files.contains(id)) return no_such("file", id);
  for (const auto& [batch_id, batch] : kept->second.batches) {
    if (batch.is_open() && (batch.input == id || batch.output == id || batch.errors == id)) {
      return Error{Code::invalid_argument, "the file belongs to " + batch_id + ", which has not ended"};
    }
  }
  std::error_code error;
  fs::remove(kept->second.folder / (id + kMeta), error);
  fs::remove(kept->second.folder / id, error);
  if (error) return Error{Code::io, (kept->second.folder / id).string() + ": can not be removed"};
  count_bytes(kept->second, kept->second.files[id], 0);
  kept->second.files.erase(id);
  return Ok{};
}

Status BatchStore::save(const Owner& owner, const Batch& batch) {
  return write_whole(owner.folder / (batch.id + kMeta), batch_json(batch).dump());
}

Result<Batch> BatchStore::create(Batch batch) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Owner * kept, owner_for(batch.owner));
  if (!kept->files.contains(batch.input)) return no_such("file", batch.input);
  const auto n_open = std::count_if(kept->batches.begin(), kept->batches.end(),
                                    [](const auto& entry) { return entry.second.is_open(); });
  if (static_cast<size_t>(n_open) >= limits_.open_batches) {
    return full(std::to_string(limits_.open_batches) + " batches of a key that have not ended");
  }
  if (kept->batches.size() >= limits_.batches) {
    const auto oldest = std::min_element(kept->batches.begin(), kept->batches.end(), [](const auto& a, const auto& b) {
      const bool are_alike = a.second.is_open() == b.second.is_open();
      return are_alike ? is_older(a.second, b.second) : b.second.is_open();
    });
    std::error_code ignored;
    fs::remove(kept->folder / (oldest->first + kMeta), ignored);
    kept->batches.erase(oldest);
  }
  batch.id = new_id("batch_");
  batch.created = now_seconds();
  batch.expires = batch.created + limits_.window.count();
  TRY(save(*kept, batch));
  kept->batches[batch.id] = batch;
  if (changed_) changed_();
  return Result<Batch>{std::move(batch)};
}

void BatchStore::watch(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  changed_ = std::move(changed);
}

std::vector<Batch> BatchStore::batches(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const Owner* kept = find_owner(owner);
  return kept ? newest_first(kept->batches) : std::vector<Batch>();
}

std::optional<Batch> BatchStore::batch(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const Owner* kept = find_owner(owner);
  if (!kept) return std::nullopt;
  const auto found = kept->batches.find(id);
  return found == kept->batches.end() ? std::nullopt : std::optional(found->second);
}

Batch* BatchStore::find_batch(const std::string& owner, const std::string& id, Owner*& found) {
  const auto kept = owners_.find(owner);
  if (kept == owners_.end()) return nullptr;
  found = &kept->second;
  const auto batch = kept->second.batches.find(id);
  return batch == kept->second.batches.end() ? nullptr : &batch->second;
}

Result<Batch> BatchStore::cancel(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  Owner* kept = nullptr;
  Batch* batch = find_batch(owner, id, kept);
  if (!batch) return no_such("batch", id);
  if (!batch->is_open() || batch->status == "cancelling") return *batch;
  const bool has_begun = batch->status != "validating";
  batch->status = has_begun ? "cancelling" : "cancelled";
  batch->cancelling = now_seconds();
  if (!has_begun) batch->ended = batch->cancelling;
  TRY(save(*kept, *batch));
  if (changed_) changed_();
  return *batch;
}

std::vector<Batch> BatchStore::open_batches() const {
  const std::lock_guard lock(mutex_);
  std::vector<Batch> open;
  for (const auto& [name, owner] : owners_) {
    for (const auto& [id, batch] : owner.batches) {
      if (batch.is_open()) open.push_back(batch);
    }
  }
  std::sort(open.begin(), open.end(), is_older<Batch>);
  return open;
}

// The ids that have a result. Lines that a crash cut off are no results: they are taken out, and asked for again.
Result<std::map<std::string, bool>> BatchStore::results_of(Owner& owner, const Batch& batch) {
  std::map<std::string, bool> results;
  for (const bool is_success : {true, false}) {
    const std::string& id = is_success ? batch.output : batch.errors;
    if (id.empty()) continue;
    if (!owner.files.contains(id)) return Error{Code::io, "the results " + id + " of the batch are gone"};
    TRY_ASSIGN(const std::string text, read_whole(owner.folder / id));
    std::string whole;
    each_line(text, [&](std::string_view line, int) {
      const auto json = parse_json(std::string(line));
      if (!json || !json->is_object()) return true;
      const auto custom_id = json->find("custom_id");
      if (custom_id == json->end() || !custom_id->is_string()) return true;
      results[custom_id->get<std::string>()] = is_success;
      whole.append(line) += '\n';
      return true;
    });
    if (whole == text) continue;
    TRY(write_whole(owner.folder / id, whole));
    count_bytes(owner, owner.files[id], whole.size());
  }
  return Result<std::map<std::string, bool>>{std::move(results)};
}

Result<std::vector<BatchLine>> BatchStore::begin(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  Owner* kept = nullptr;
  Batch* batch = find_batch(owner, id, kept);
  if (!batch) return no_such("batch", id);
  std::vector<BatchLine> lines;
  if (!batch->is_open()) return Result<std::vector<BatchLine>>{std::move(lines)};
  TRY_ASSIGN(const std::string text, read_whole(kept->folder / batch->input));
  TRY_ASSIGN(const auto results, results_of(*kept, *batch));
  std::set<std::string> ids;
  std::string problem;
  int problem_line = 1;
  each_line(text, [&](std::string_view line, int number) {
    problem_line = number;
    auto request = parse_batch_line(line, batch->endpoint);
    if (!request) {
      problem = request.error().message;
    } else if (!ids.insert(request->custom_id).second) {
      problem = "custom_id: '" + request->custom_id + "' is there twice";
    } else if (ids.size() > limits_.lines) {
      problem = "expected at most " + std::to_string(limits_.lines) + " requests, found more";
    } else if (!results.contains(request->custom_id)) {
      lines.push_back(std::move(*request));
    }
    return problem.empty();
  });
  if (ids.empty() && problem.empty()) problem = "expected a request in each line, found none";
  if (!problem.empty()) {
    batch->status = "failed";
    batch->problem = problem;
    batch->problem_line = problem_line;
    batch->ended = now_seconds();
    lines.clear();
  } else {
    if (batch->status == "validating") batch->status = "in_progress";
    if (batch->started == 0) batch->started = now_seconds();
    batch->total = ids.size();
    batch->completed = batch->failed = 0;
    for (const auto& [custom_id, is_success] : results) ++(is_success ? batch->completed : batch->failed);
  }
  TRY(save(*kept, *batch));
  return Result<std::vector<BatchLine>>{std::move(lines)};
}

Status BatchStore::append(Owner& owner, Batch& batch, bool is_success, const std::vector<BatchResult>& results) {
  std::string text;
  uint64_t n = 0;
  for (const BatchResult& result : results) {
    if (result.is_success != is_success) continue;
    if (n++ > 0) text += '\n';
    text += result.line;
  }
  if (n == 0) return Ok{};
  std::string& file_id = is_success ? batch.output : batch.errors;
  if (file_id.empty()) {
    const std::string name = batch.id + (is_success ? "_output.jsonl" : "_error.jsonl");
    TRY_ASSIGN(const StoredFile* made, new_file(owner, name, "batch_output", {}));
    file_id = made->id;
    // Named by the batch before it has a line: after a crash it is known whose results these are.
    TRY(save(owner, batch));
  }
  StoredFile& file = owner.files[file_id];
  const uint64_t bytes = text.size() + 1;
  if (file.bytes + bytes > limits_.result_file_bytes) {
    return full(std::to_string(limits_.result_file_bytes) + " bytes of results");
  }
  TRY(check_room(owner, bytes));
  TRY(append_private_line((owner.folder / file_id).string(), text));
  count_bytes(owner, file, file.bytes + bytes);
  (is_success ? batch.completed : batch.failed) += n;
  return Ok{};
}

Result<Batch> BatchStore::add_results(const std::string& owner, const std::string& id,
                                      const std::vector<BatchResult>& results) {
  const std::lock_guard lock(mutex_);
  Owner* kept = nullptr;
  Batch* batch = find_batch(owner, id, kept);
  if (!batch) return no_such("batch", id);
  if (results.empty()) return *batch;
  for (const bool is_success : {true, false}) TRY(append(*kept, *batch, is_success, results));
  TRY(save(*kept, *batch));
  return *batch;
}

Status BatchStore::end(const std::string& owner, const std::string& id, const std::string& status,
                       const std::string& problem) {
  const std::lock_guard lock(mutex_);
  Owner* kept = nullptr;
  Batch* batch = find_batch(owner, id, kept);
  if (!batch) return no_such("batch", id);
  batch->status = status;
  batch->problem = problem;
  batch->ended = now_seconds();
  return save(*kept, *batch);
}

}  // namespace chimere::server
