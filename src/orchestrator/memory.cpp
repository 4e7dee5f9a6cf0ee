// memory.cpp  Tables of n-grams, notes and passages behind a conversation: which of them a request may use.
#include "engram/table_memory.h"
#include "orchestrator/chat_model.h"
#include "retrieval/note_library.h"
#include "retrieval/passage_library.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {

void ChatModel::open_memories(const std::string& folder, const std::string& shipped,
                              const retrieval::NoteLimits& limits) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
  memories = std::make_shared<engram::Library>(folder, vocabulary, shipped);
  for (const Error& error : memories->check()) warnings.push_back(error.message);
  if (folder.empty()) return;
  passages = std::make_shared<retrieval::PassageLibrary>(folder);
  notes = std::make_shared<retrieval::NoteLibrary>(folder, limits);
  for (const Error& error : notes->check()) warnings.push_back(error.message);
}

retrieval::Encode ChatModel::encoder() const {
  return [this](std::string_view text) { return tokenizer.encode(text, EncodeMode::plain, false); };
}

std::shared_ptr<const retrieval::Notebook> ChatModel::notebook_of(const std::string& owner) const {
  if (!notes) return nullptr;
  // A file that can not be read was reported at the start; its owner can talk all the same.
  auto notebook = notes->open(owner, encoder());
  return notebook ? *notebook : nullptr;
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
  if (const auto notebook = notebook_of(use.owner)) tables.push_back({notebook->ngrams(), 1});
  if (tables.empty() || use.alpha <= 0) return std::shared_ptr<const MemorySource>();
  const engram::MixOptions options{use.alpha, use.in_thoughts};
  return std::shared_ptr<const MemorySource>(std::make_shared<engram::TableMemory>(std::move(tables), options));
}

}  // namespace chimere::orchestrator
