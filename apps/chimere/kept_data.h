// kept_data.h  What `chimere serve` keeps for its clients: conversations, answers to learn from, batches, collections of
// documents. Options, and the stores they open.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/server.h"
#include "store/journal.h"

namespace chimere::apps {

struct KeptOptions {
  bool no_conversations = false;
  std::string conversations_folder;
  int conversations_mb = 128;
  std::string learn = "ask";
  std::string journal;  // a file or a URL
  store::JournalLimits journal_limits;
  bool no_improve = false;
  std::string improve_folder;
  std::vector<std::string> improve_at;  // KIND=WHEN
  int improve_idle = 30;                // seconds
  bool no_batches = false;
  bool no_collections = false;
  std::string collections_file;
};

void add_kept_options(CLI::App& command, KeptOptions& options);

// Where what was learned lies: where it is said, else beside the journal's file.
std::string improve_folder(const KeptOptions& options);
// What was learned from answers; what `improve` of the server needs but its in_use. Null where nothing is learned.
Result<std::shared_ptr<improve::ArtefactStore>> open_learned(const KeptOptions& options, server::ServerConfig& config);

// Conversations, answers, batches and collections, of any number of models.
Status open_kept(const KeptOptions& options, server::ServerConfig& config);

}  // namespace chimere::apps
