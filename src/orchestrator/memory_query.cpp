#include "orchestrator/memory_query.h"

#include <algorithm>
#include <span>

#include "engram/library.h"
#include "engram/longest_match.h"
#include "orchestrator/recall.h"
#include "retrieval/note_library.h"

namespace chimere::orchestrator {
namespace {

// What followed in a table is followed for so long, and however unsure it is: whoever asks wants to see it.
constexpr engram::DraftOptions kFollow{.max_tokens = 32, .min_order = 2, .min_share = 0};

Status add_notes(const MemoryFiles& files, const Tokenizer& tokenizer, const MemoryQuery& query,
                 std::vector<MemoryEntry>& entries) {
  if (!files.notes || query.owner.empty()) return Ok{};
  const auto encode = [&](std::string_view text) { return tokenizer.encode(text, EncodeMode::plain, false); };
  TRY_ASSIGN(const auto notebook, files.notes->open(query.owner, encode));
  if (!notebook) return Ok{};
  for (const auto& found : notebook->about(query.text, query.top, rarity_by(tokenizer))) {
    entries.push_back({std::string(found.text), kNotesDomain, found.score});
  }
  return Ok{};
}

// The tokens at the end of the text that the table knows, and what followed them there.
void add_ngrams(const std::shared_ptr<const engram::Table>& table, const std::string& domain,
                const Tokenizer& tokenizer, const std::string& text, std::vector<MemoryEntry>& entries) {
  std::vector<int32_t> tokens = tokenizer.encode(text, EncodeMode::plain, false);
  const std::shared_ptr<const engram::NgramSource> source = table;
  const auto followed = engram::longest_match(std::span(&source, 1), tokens, kFollow);
  if (followed.empty()) return;
  const auto order = static_cast<size_t>(followed.front().order);
  tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(order));
  for (const engram::Expected& next : followed) tokens.push_back(next.token);
  const float known = static_cast<float>(order) / static_cast<float>(std::max(1, table->max_order()));
  entries.push_back({tokenizer.decode(tokens, false), domain, std::min(known, 1.0f)});
}

Status add_shared_table(const MemoryFiles& files, const Tokenizer& tokenizer, const MemoryQuery& query,
                        std::vector<MemoryEntry>& entries) {
  std::string names = std::string(kNotesDomain) + ", " + kOwnDomain;
  const std::vector<std::string> tables = files.tables ? files.tables->names() : std::vector<std::string>();
  for (const std::string& name : tables) names += ", " + name;
  if (std::find(tables.begin(), tables.end(), query.domain) == tables.end()) {
    return Error{Code::not_found, "domain: expected one of " + names + ", found '" + query.domain.substr(0, 64) + "'"};
  }
  TRY_ASSIGN(const auto table, files.tables->table(query.domain));
  add_ngrams(table, query.domain, tokenizer, query.text, entries);
  return Ok{};
}

}  // namespace

Result<std::vector<MemoryEntry>> query_memory(const MemoryFiles& files, const Tokenizer& tokenizer,
                                              const MemoryQuery& query) {
  std::vector<MemoryEntry> entries;
  const bool wants_all = query.domain.empty();
  if (wants_all || query.domain == kNotesDomain) TRY(add_notes(files, tokenizer, query, entries));
  if ((wants_all || query.domain == kOwnDomain) && files.tables && !query.owner.empty()) {
    TRY_ASSIGN(const auto own, files.tables->table_of_user(query.owner));
    if (own) add_ngrams(own, kOwnDomain, tokenizer, query.text, entries);
  }
  if (!wants_all && query.domain != kNotesDomain && query.domain != kOwnDomain) {
    TRY(add_shared_table(files, tokenizer, query, entries));
  }
  std::erase_if(entries, [&](const MemoryEntry& entry) { return entry.similarity < query.min_similarity; });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const MemoryEntry& a, const MemoryEntry& b) { return a.similarity > b.similarity; });
  if (entries.size() > query.top) entries.resize(query.top);
  return Result<std::vector<MemoryEntry>>{std::move(entries)};
}

}  // namespace chimere::orchestrator
