#include "terminal/input_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace chimere::apps {
namespace {

constexpr std::streamsize kMaxFileBytes = 64 << 20;

std::string as_line(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

InputHistory::InputHistory(std::string path) : path_(std::move(path)) {
  std::error_code error;
  if (path_.empty() || !std::filesystem::is_regular_file(path_, error) ||
      std::filesystem::file_size(path_, error) > static_cast<uintmax_t>(kMaxFileBytes)) {
    return;
  }
  std::ifstream file(path_);
  size_t n_lines = 0;
  for (std::string line; std::getline(file, line); ++n_lines) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_string()) entries_.push_back(entry.get<std::string>());
  }
  if (entries_.size() > kMaxEntries) {
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kMaxEntries));
  }
  // A failure leaves the longer file, which is no harm.
  if (n_lines >= 2 * kMaxEntries) (void)write(entries_, true);
}

Status InputHistory::add(const std::string& text) {
  if (text.empty() || (!entries_.empty() && entries_.back() == text)) return Ok{};
  entries_.push_back(text);
  if (path_.empty()) return Ok{};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty() && std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  return write({text}, false);
}

Status InputHistory::write(const std::vector<std::string>& entries, bool anew) const {
  std::string bytes;
  for (const std::string& entry : entries) bytes += as_line(entry);
  const std::string path = anew ? path_ + "." + std::to_string(getpid()) + ".new" : path_;
  const auto failed = [&] { return Error{Code::io, "cannot write " + path + ": " + std::strerror(errno)}; };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (anew ? O_TRUNC : O_APPEND), 0600);
  if (file < 0) return failed();
  // One write, so that lines of two programs do not mix.
  const bool written =
      fchmod(file, 0600) == 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (::close(file) != 0 || !written) return failed();
  if (anew && std::rename(path.c_str(), path_.c_str()) != 0) return failed();
  return Ok{};
}

}  // namespace chimere::apps
