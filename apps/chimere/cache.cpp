// cache.cpp  `chimere cache stat|clear`: what is kept on the disk of prompts, and experts that RAM did not hold.
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cache/cache_folder.h"
#include "commands.h"
#include "common.h"
#include "data_folder.h"

namespace chimere::apps {
namespace {

// Empty when there is none yet.
Result<std::string> cache_folder(const std::string& given) {
  const std::string wanted = given.empty() ? default_cache_folder() : given;
  if (wanted.empty()) return Error{Code::not_found, "no home folder is known: expected --cache-dir"};
  auto found = find_cache_folder(wanted);
  if (found) return found;
  std::printf("%s\n", found.error().message.c_str());
  return std::string();
}

void print_use(const char* what, const CacheUse& use) {
  std::printf("%s: %llu entries, %.1f MB\n", what, static_cast<unsigned long long>(use.entries),
              static_cast<double>(use.bytes) / 1e6);
}

// Files of packed experts, as expert_file.h names them.
CacheUse use_of_experts(const std::string& folder, bool removes) {
  namespace fs = std::filesystem;
  CacheUse use;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file(error) || name.string().find(".experts") == std::string::npos) continue;
    const uint64_t bytes = entry.file_size(error);
    if (removes && !fs::remove(entry.path(), error)) continue;
    use.bytes += bytes;
    ++use.entries;
  }
  return use;
}

Status show_cache(const std::string& given) {
  const CacheUse experts = use_of_experts(default_experts_folder(), false);
  if (experts.entries > 0) print_use(default_experts_folder().c_str(), experts);
  TRY_ASSIGN(const std::string folder, cache_folder(given));
  if (folder.empty()) return Ok{};
  CacheUse all;
  for (const std::string& model : model_folders(folder)) {
    const CacheUse use = use_of_folder(model);
    if (use.entries > 0) print_use(model.c_str(), use);
    all.bytes += use.bytes;
    all.entries += use.entries;
  }
  print_use(folder.c_str(), all);
  return Ok{};
}

Status clear_cache(const std::string& given) {
  if (const CacheUse experts = use_of_experts(default_experts_folder(), true); experts.entries > 0) {
    print_use("cleared of experts", experts);
  }
  TRY_ASSIGN(const std::string folder, cache_folder(given));
  if (folder.empty()) return Ok{};
  CacheUse cleared;
  for (const std::string& model : model_folders(folder)) {
    const CacheUse use = clear_folder(model);
    cleared.bytes += use.bytes;
    cleared.entries += use.entries;
  }
  print_use("cleared", cleared);
  return Ok{};
}

}  // namespace

void add_cache(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "cache", "Show or clear what is kept on the disk: of prompts, and experts that RAM did not hold");
  command->require_subcommand(1);
  auto folder = std::make_shared<std::string>();
  const auto add = [&](const char* name, const char* what, Status (*work)(const std::string&)) {
    CLI::App* verb = command->add_subcommand(name, what);
    verb->add_option("--cache-dir", *folder,
                     "folder of the prefix cache; else prefix-cache/ in $CHIMERE_HOME or the XDG data folder");
    verb->callback([folder, work, &outcome] {
      if (Status s = work(*folder); !s) outcome.code = fail(s.error());
    });
  };
  add("stat", "How much there is, by model", show_cache);
  add("clear",
      "Remove all of it. A server that runs goes on, and may write again what it has in memory: DELETE /v1/cache "
      "clears "
      "that too",
      clear_cache);
}

}  // namespace chimere::apps
