#include "server/learning/asked_jobs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "base/platform/atomic_file.h"
#include "improve/job.h"
#include "text/json.h"

namespace chimere::server {

Result<std::vector<AskedJob>> AskedJobs::read() const {
  std::vector<AskedJob> jobs;
  std::ifstream in(path_, std::ios::binary);
  if (!in) return Result<std::vector<AskedJob>>{std::move(jobs)};
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto json = parse_json(text);
  const Error broken{Code::corrupt, path_ + ": expected a list of jobs, each with its kind and its owner"};
  if (!json || !json->is_array()) return broken;
  const std::vector<std::string>& kinds = improve::job_kinds();
  for (const Json& one : *json) {
    if (!one.is_object() || !one.contains("kind") || !one.contains("owner")) return broken;
    if (!one["kind"].is_string() || !one["owner"].is_string()) return broken;
    AskedJob job{one["kind"].get<std::string>(), one["owner"].get<std::string>()};
    // One of a version that knew more kinds can not be done.
    if (std::find(kinds.begin(), kinds.end(), job.kind) != kinds.end()) jobs.push_back(std::move(job));
  }
  return Result<std::vector<AskedJob>>{std::move(jobs)};
}

Status AskedJobs::write(uint64_t serial, const std::vector<AskedJob>& jobs) {
  const std::lock_guard lock(mutex_);
  if (serial <= written_) return Ok{};
  Json list = Json::array();
  for (const AskedJob& job : jobs) list.push_back({{"kind", job.kind}, {"owner", job.owner}});
  const std::string text = to_text(list) + "\n";
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path_, Readers::owner));
  TRY(file.write(std::as_bytes(std::span(text.data(), text.size()))));
  TRY(file.commit());
  written_ = serial;
  return Ok{};
}

}  // namespace chimere::server
