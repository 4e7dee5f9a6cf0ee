#include "kept_data.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "base/platform/private_file.h"
#include "common.h"
#include "data_folder.h"
#include "retrieval/collections.h"
#include "server/admin/conversation_store.h"
#include "server/batch/batch_store.h"
#include "store/journal_url.h"

namespace chimere::apps {
namespace {

Status open_conversations(const KeptOptions& o, server::ServerConfig& config) {
  if (o.no_conversations) return Ok{};
  std::string folder = o.conversations_folder;
  if (folder.empty() && !data_folder().empty()) folder = data_folder() + "/conversations";
  if (folder.empty()) return Ok{};
  server::ConversationLimits limits;
  limits.owner_bytes = static_cast<uint64_t>(o.conversations_mb) << 20;
  limits.all_bytes = std::max(limits.all_bytes, limits.owner_bytes);
  TRY_ASSIGN(config.conversations, server::ConversationStore::open(folder, limits));
  return Ok{};
}

Status open_journal(const KeptOptions& o, server::ServerConfig& config) {
  if (o.learn == "off") return Ok{};
  const std::string place = o.journal.empty() ? default_journal_file() : o.journal;
  if (place.empty()) return Ok{};
  if (o.journal.empty()) TRY(make_private_folders(data_folder()));
  const auto consent = o.learn == "on" ? store::Journal::Consent::given : store::Journal::Consent::ask;
  TRY_ASSIGN(config.journal, store::Journal::open(place, consent, o.journal_limits));
  config.journal->tell_of_trouble([](const std::string& what) { spdlog::warn("{}", what); });
  return Ok{};
}

Status open_batches(const KeptOptions& o, server::ServerConfig& config) {
  if (o.no_batches || data_folder().empty()) return Ok{};
  const std::string folder = data_folder() + "/batches";
  TRY_ASSIGN(config.batches, server::BatchStore::open(folder));
  if (!config.batches) spdlog::warn("{} belongs to another server: this one takes no batches", folder);
  return Ok{};
}

Status open_collections(const KeptOptions& o, server::ServerConfig& config) {
  if (o.no_collections) return Ok{};
  const std::string file = o.collections_file.empty() ? default_collections_file() : o.collections_file;
  if (file.empty()) return Ok{};
  if (o.collections_file.empty()) TRY(make_private_folders(data_folder()));
  TRY_ASSIGN(config.collections, retrieval::Collections::open(file));
  TRY_ASSIGN(auto matcher, open_matcher());
  config.collections->use(std::move(matcher));
  return Ok{};
}

}  // namespace

std::string improve_folder(const KeptOptions& o) {
  if (!o.improve_folder.empty()) return o.improve_folder;
  if (o.journal.empty() || store::is_journal_url(o.journal)) return default_improve_folder();
  return (std::filesystem::absolute(o.journal).parent_path() / "improve").string();
}

Result<std::shared_ptr<improve::ArtefactStore>> open_learned(const KeptOptions& o, server::ServerConfig& config) {
  config.improve.schedule = improve::default_schedule();
  config.improve.idle = std::chrono::seconds(o.improve_idle);
  for (const std::string& text : o.improve_at) {
    if (const Status set = improve::set_when(config.improve.schedule, text); !set) {
      return Error{set.error().code, "--improve-at: " + set.error().message};
    }
  }
  const std::string folder = improve_folder(o);
  if (o.no_improve || !config.journal || folder.empty()) return std::shared_ptr<improve::ArtefactStore>();
  return improve::ArtefactStore::open(folder);
}

namespace {

void add_learning_options(CLI::App& command, KeptOptions& o) {
  command
      .add_option("--learn", o.learn,
                  "keep answers to learn from: off, ask (of those who agreed), on (of all who did not refuse)")
      ->check(CLI::IsMember({"off", "ask", "on"}))
      ->capture_default_str();
  command.add_option("--journal", o.journal,
                     "where they are kept: a file, or postgresql://USER@HOST/DATABASE, which replicas share; else "
                     "journal.db in $CHIMERE_HOME or the XDG data folder");
  command.add_option("--improve-dir", o.improve_folder,
                     "where what was learned lies, for replicas that share a journal a folder that they share; else "
                     "improve/ beside the journal's file or in the data folder");
  command.add_flag("--no-improve", o.no_improve, "keep answers, and learn nothing from them");
  command
      .add_option("--improve-at", o.improve_at,
                  "KIND=WHEN, when to learn (docs/improve.md): engram=04:00, 'prompts=mon 02:00', 'scores=every 6h', "
                  "lora=off; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--improve-idle", o.improve_idle, "seconds without a request before that begins")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command.add_option("--journal-days", o.journal_limits.days, "answers older than that are erased; 0: none are")
      ->check(CLI::Range(0, 36500))
      ->capture_default_str();
}

}  // namespace

void add_kept_options(CLI::App& command, KeptOptions& o) {
  command.add_flag("--no-batches", o.no_batches, "take no files and no batches of requests");
  command.add_flag("--no-conversations", o.no_conversations,
                   "keep no conversations for pages that ask for it; else they are kept by key");
  command.add_option("--conversations-dir", o.conversations_folder,
                     "where they are kept; else conversations/ in $CHIMERE_HOME or the XDG data folder");
  command.add_option("--conversations-mb", o.conversations_mb, "of each key, in MiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_learning_options(command, o);
  command.add_flag("--no-collections", o.no_collections, "keep no collections of documents");
  command.add_option("--collections-db", o.collections_file,
                     "the database of collections; else collections.db in $CHIMERE_HOME or the XDG data folder");
}

Status open_kept(const KeptOptions& options, server::ServerConfig& config) {
  TRY(open_conversations(options, config));
  TRY(open_journal(options, config));
  TRY(open_batches(options, config));
  return open_collections(options, config);
}

}  // namespace chimere::apps
