// memory.cpp  Tables of n-grams and passages behind a conversation: which of them a request may use.
#include "engram/table_memory.h"
#include "orchestrator/chat_model.h"
#include "retrieval/passage_library.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {

void ChatModel::open_memories(const std::string& folder, const std::string& shipped) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
  memories = std::make_shared<engram::Library>(folder, vocabulary, shipped);
  if (!folder.empty()) passages = std::make_shared<retrieval::PassageLibrary>(folder);
  for (const Error& error : memories->check()) warnings.push_back(error.message);
}

Result<std::shared_ptr<const MemorySource>> ChatModel::memory_for(const MemoryUse& use,
                                                                  std::vector<engram::WeightedTable> more) const {
  std::vector<engram::WeightedTable> tables = std::move(more);
  const bool has_tables = memories && (memories->has_folder() || !memories->names().empty());
  if (!has_tables && !use.tables.empty()) {
    return Error{Code::invalid_argument, "engram.tables: this server has no tables; start it with --engram FOLDER"};
  }
  for (const MemoryUse::Named& named : use.tables) {
    TRY_ASSIGN(std::shared_ptr<const engram::Table> table, memories->table(named.name));
    tables.push_back({std::move(table), named.weight});
  }
  // A table of one's own that is damaged was reported at the start; its owner can talk all the same.
  if (memories) {
    if (auto own = memories->table_of_user(use.owner); own && *own) tables.push_back({*own, 1});
  }
  if (tables.empty() || use.alpha <= 0) return std::shared_ptr<const MemorySource>();
  const engram::MixOptions options{use.alpha, use.in_thoughts};
  return std::shared_ptr<const MemorySource>(std::make_shared<engram::TableMemory>(std::move(tables), options));
}

}  // namespace chimere::orchestrator
