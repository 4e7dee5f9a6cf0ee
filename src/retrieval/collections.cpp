// collections.cpp  Documents on their way into the database, and out of it.
#include "retrieval/collections.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <utility>

#include "base/hash.h"
#include "documents/chunks.h"
#include "documents/read_document.h"
#include "retrieval/collection_reader.h"
#include "retrieval/collection_schema.h"
#include "retrieval/search_terms.h"
#include "text/utf8.h"

namespace chimere::retrieval {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxDocumentNameBytes = 1024;
constexpr size_t kMaxTitleBytes = 300;
constexpr size_t kTextsAtATime = 32;  // embedded by one call
constexpr uint64_t kMaxVectorBytes = uint64_t{2} << 30;

Error beyond_limit(const char* what, uint64_t most) {
  return {Code::exhausted, "expected at most " + std::to_string(most) + " " + what + " of one owner, found more"};
}

Status check_names(const std::string& collection, const std::string& document) {
  if (!Collections::is_name(collection)) {
    return Error{Code::invalid_argument, "collection: expected 1 to 64 letters, digits, '-', '_' and '.', found '" +
                                             collection.substr(0, kMaxNameBytes) + "'"};
  }
  if (document.empty() || document.size() > kMaxDocumentNameBytes || !is_valid_utf8(document)) {
    return Error{Code::invalid_argument, "document: expected a name of 1 to " + std::to_string(kMaxDocumentNameBytes) +
                                             " bytes of UTF-8, found one of " + std::to_string(document.size())};
  }
  return Ok{};
}

std::string title_of(const std::string& own, const std::string& name) {
  if (!own.empty()) return own.substr(0, utf8_floor(own, kMaxTitleBytes));
  const size_t slash = name.find_last_of('/');
  return slash == std::string::npos || slash + 1 == name.size() ? name : name.substr(slash + 1);
}

// What is embedded of a chunk: a paragraph alone often does not say what it is about.
std::string embedded_text(const std::string& title, const documents::Chunk& chunk) {
  const bool names_title = chunk.heading.starts_with(title);
  std::string text = names_title ? chunk.heading : title + (chunk.heading.empty() ? "" : " > " + chunk.heading);
  return text + "\n" + chunk.text;
}

bool is_cancelled(const AddCall& call) { return call.is_cancelled && call.is_cancelled(); }

Error cancelled(const AddCall& call) { return {Code::cancelled, call.name + ": adding it was cancelled"}; }

Result<std::vector<documents::Chunk>> chunks_of(const Database& database, int64_t document) {
  TRY_ASSIGN(Statement read, database.prepare("SELECT text, heading FROM chunks WHERE document = ? ORDER BY id"));
  read.with(document);
  std::vector<documents::Chunk> chunks;
  for (;;) {
    TRY_ASSIGN(const bool has_row, read.step());
    if (!has_row) break;
    chunks.push_back({read.text(0), read.text(1), {}});
  }
  return Result<std::vector<documents::Chunk>>{std::move(chunks)};
}

Result<OwnerUsage> read_usage(Statement& row) {
  TRY_ASSIGN(const bool has_row, row.step());
  if (!has_row) return OwnerUsage{};
  return OwnerUsage{static_cast<uint64_t>(row.integer(0)), static_cast<uint64_t>(row.integer(1)),
                    static_cast<uint64_t>(row.integer(2))};
}

}  // namespace

const char* search_mode_name(SearchMode mode) {
  switch (mode) {
    case SearchMode::words: return "words";
    case SearchMode::vectors: return "vectors";
    case SearchMode::hybrid: return "hybrid";
  }
  return "";
}

Collections::Collections(std::string path, CollectionLimits limits, Database writer)
    : path_(std::move(path)), limits_(limits), writer_(std::move(writer)), shelf_(kMaxVectorBytes) {}

Result<std::unique_ptr<Collections>> Collections::open(const std::string& path, CollectionLimits limits) {
  TRY_ASSIGN(Database writer, open_collection_database(path, Database::Mode::write));
  return std::unique_ptr<Collections>(new Collections(path, limits, std::move(writer)));
}

Result<Collections::Reader> Collections::reader() const {
  {
    std::lock_guard lock(readers_mutex_);
    if (!readers_.empty()) {
      Reader reader(*this, std::move(readers_.back()));
      readers_.pop_back();
      return Result<Reader>{std::move(reader)};
    }
  }
  TRY_ASSIGN(Database database, open_collection_database(path_, Database::Mode::read));
  return Result<Reader>{Reader(*this, std::move(database))};
}

bool Collections::is_name(std::string_view name) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && name.size() <= kMaxNameBytes && is_plain(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_plain(c) || c == '-' || c == '_' || c == '.'; });
}

Result<StoredCollection> Collections::make_collection(const std::string& owner, const std::string& name) {
  TRY_ASSIGN(const std::vector<StoredCollection> all, collections_of(writer_, owner));
  for (const StoredCollection& one : all) {
    if (one.name == name) return one;
  }
  if (all.size() >= limits_.collections) return beyond_limit("collections", limits_.collections);
  TRY_ASSIGN(Statement add_owner, writer_.prepare("INSERT OR IGNORE INTO owners(name) VALUES(?)"));
  TRY(add_owner.with(std::string_view(owner)).run());
  TRY_ASSIGN(Statement add, writer_.prepare("INSERT INTO collections(owner, name, created) SELECT id, ?, ? FROM owners "
                                            "WHERE name = ?"));
  TRY(add.with(std::string_view(name), static_cast<int64_t>(std::time(nullptr)), std::string_view(owner)).run());
  TRY(create_words_table(writer_, writer_.last_id()));
  return find_collection(writer_, owner, name);
}

Result<bool> Collections::create(const std::string& owner, const std::string& collection) {
  TRY(check_names(collection, "-"));
  std::lock_guard lock(writing_);
  TRY_ASSIGN(Transaction transaction, Transaction::begin(writer_, Database::Mode::write));
  TRY_ASSIGN(const auto before, collections_of(writer_, owner));
  TRY(make_collection(owner, collection));
  TRY(transaction.commit());
  return std::none_of(before.begin(), before.end(), [&](const StoredCollection& c) { return c.name == collection; });
}

Result<std::vector<CollectionInfo>> Collections::list(const std::string& owner) const {
  TRY_ASSIGN(Reader reader, this->reader());
  TRY_ASSIGN(
      Statement rows,
      reader->prepare("SELECT c.name, c.created, count(d.id), sum(d.chunks), sum(d.bytes) FROM collections c JOIN "
                      "owners o ON o.id = c.owner LEFT JOIN documents d ON d.collection = c.id WHERE o.name = ? "
                      "GROUP BY c.id ORDER BY c.name"));
  rows.with(std::string_view(owner));
  std::vector<CollectionInfo> all;
  for (;;) {
    TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) break;
    all.push_back({rows.text(0), rows.integer(1), static_cast<uint64_t>(rows.integer(2)),
                   static_cast<uint64_t>(rows.integer(3)), static_cast<uint64_t>(rows.integer(4))});
  }
  return Result<std::vector<CollectionInfo>>{std::move(all)};
}

Status Collections::remove(const std::string& owner, const std::string& collection) {
  std::lock_guard lock(writing_);
  TRY_ASSIGN(Transaction transaction, Transaction::begin(writer_, Database::Mode::write));
  TRY_ASSIGN(const StoredCollection found, find_collection(writer_, owner, collection));
  TRY_ASSIGN(Statement count,
             writer_.prepare("UPDATE owners SET (documents, bytes, chunks) = (SELECT documents - count(d.id), bytes - "
                             "ifnull(sum(d.bytes), 0), chunks - ifnull(sum(d.chunks), 0) FROM documents d WHERE "
                             "d.collection = ?) WHERE id = ?"));
  TRY(count.with(found.id, found.owner).run());
  for (const char* sql : {"DELETE FROM vectors WHERE document IN (SELECT id FROM documents WHERE collection = ?)",
                          "DELETE FROM chunks WHERE document IN (SELECT id FROM documents WHERE collection = ?)",
                          "DELETE FROM documents WHERE collection = ?", "DELETE FROM collections WHERE id = ?"}) {
    TRY_ASSIGN(Statement forget, writer_.prepare(sql));
    TRY(forget.with(found.id).run());
  }
  TRY(writer_.execute("DROP TABLE " + words_table(found.id)));
  return transaction.commit();
}

Result<StoredVectors> Collections::embed(const AddCall& call, const std::string& title,
                                         const std::vector<documents::Chunk>& chunks) const {
  StoredVectors all;
  if (!embedder_) return Result<StoredVectors>{std::move(all)};
  const bool has_windows = static_cast<bool>(embedder_.embed_windows);
  const auto& embed_texts = has_windows ? embedder_.embed_windows : embedder_.embed;
  const auto n_floats = static_cast<size_t>(embedder_.dimensions);
  std::vector<std::string> texts;
  for (size_t at = 0; at < chunks.size(); at += texts.size()) {
    if (is_cancelled(call)) return cancelled(call);
    texts.clear();
    for (size_t i = at; i < std::min(chunks.size(), at + kTextsAtATime); ++i) {
      texts.push_back(embedded_text(title, chunks[i]));
    }
    TRY_ASSIGN(const auto vectors, embed_texts(texts, TextEmbedder::Deadline::max()));
    if (vectors.size() != texts.size()) {
      return Error{Code::internal, "the embedder: expected a vector for each text, found another number"};
    }
    for (const std::vector<float>& vector : vectors) {
      const bool fits = has_windows ? !vector.empty() && vector.size() % n_floats == 0 : vector.size() == n_floats;
      if (!fits) {
        return Error{Code::internal, "the embedder: expected vectors of " + std::to_string(n_floats) +
                                         " dimensions, found one of " + std::to_string(vector.size())};
      }
      all.counts.push_back(static_cast<uint32_t>(vector.size() / n_floats));
      all.values.insert(all.values.end(), vector.begin(), vector.end());
    }
  }
  return Result<StoredVectors>{std::move(all)};
}

Result<std::optional<StoredDocument>> Collections::same_document(const AddCall& call, int64_t hash) const {
  TRY_ASSIGN(Reader reader, this->reader());
  TRY_ASSIGN(const auto collections, collections_of(*reader, call.owner));
  for (const StoredCollection& collection : collections) {
    if (collection.name != call.collection) continue;
    TRY_ASSIGN(std::optional<StoredDocument> known, find_document(*reader, collection.id, call.name));
    if (known && known->hash == hash) return known;
  }
  return std::optional<StoredDocument>();
}

Result<Added> Collections::add(const AddCall& call) {
  TRY(check_names(call.collection, call.name));
  const auto hash = static_cast<int64_t>(hash64(call.bytes));
  Added added;
  TRY_ASSIGN(const std::optional<StoredDocument> known, same_document(call, hash));
  if (known) {
    added.document = known->info;
    if (embedder_) TRY(add_vectors(call, *known));
    return added;
  }
  documents::ReadOptions options;
  options.max_bytes = limits_.document_bytes;
  if (call.is_cancelled) options.is_cancelled = call.is_cancelled;
  TRY_ASSIGN(const documents::Document document, documents::read_document(call.bytes, call.name, options));
  const std::vector<documents::Chunk> chunks = documents::cut_chunks(document);
  if (chunks.size() > limits_.document_chunks) {
    return Error{Code::exhausted, call.name + ": expected a document of at most " +
                                      std::to_string(limits_.document_chunks) + " chunks, found one of " +
                                      std::to_string(chunks.size())};
  }
  added.document = {call.name,     title_of(document.title, call.name),     kind_name(document.kind), 0, chunks.size(),
                    call.modified, static_cast<int64_t>(std::time(nullptr))};
  for (const documents::Chunk& chunk : chunks) added.document.bytes += chunk.text.size() + chunk.heading.size();
  TRY_ASSIGN(const StoredVectors vectors, embed(call, added.document.title, chunks));
  if (is_cancelled(call)) return cancelled(call);
  TRY(store(call, hash, chunks, vectors, added));
  return added;
}

Status Collections::add_vectors(const AddCall& call, const StoredDocument& document) {
  std::vector<documents::Chunk> chunks;
  {
    TRY_ASSIGN(Reader reader, this->reader());
    TRY_ASSIGN(const int64_t embedder, find_embedder(*reader, embedder_));
    TRY_ASSIGN(Statement vectors, reader->prepare("SELECT 1 FROM vectors WHERE document = ? AND embedder = ?"));
    TRY_ASSIGN(const bool has_vectors, vectors.with(document.id, embedder).step());
    if (has_vectors) return Ok{};
    TRY_ASSIGN(chunks, chunks_of(*reader, document.id));
  }
  TRY_ASSIGN(const StoredVectors vectors, embed(call, document.info.title, chunks));
  std::lock_guard lock(writing_);
  TRY_ASSIGN(Transaction transaction, Transaction::begin(writer_, Database::Mode::write));
  TRY_ASSIGN(Statement owner, writer_.prepare("SELECT collection FROM documents WHERE id = ?"));
  TRY_ASSIGN(const bool is_kept, owner.with(document.id).step());
  if (!is_kept) return Ok{};  // removed, or replaced by one that has its own
  const int64_t collection = owner.integer(0);
  TRY(insert_vectors(document.id, vectors));
  TRY(raise_revision(writer_, collection));
  return transaction.commit();
}

Status Collections::store(const AddCall& call, int64_t hash, const std::vector<documents::Chunk>& chunks,
                          const StoredVectors& vectors, Added& added) {
  std::lock_guard lock(writing_);
  TRY_ASSIGN(Transaction transaction, Transaction::begin(writer_, Database::Mode::write));
  TRY(insert_document(call, hash, chunks, vectors, added));
  return transaction.commit();
}

Status Collections::check_room(int64_t owner, const DocumentInfo& document) const {
  TRY_ASSIGN(Statement row, writer_.prepare("SELECT documents, chunks, bytes FROM owners WHERE id = ?"));
  TRY_ASSIGN(const OwnerUsage used, read_usage(row.with(owner)));
  if (used.documents + 1 > limits_.documents) return beyond_limit("documents", limits_.documents);
  if (used.chunks + document.chunks > limits_.chunks) return beyond_limit("chunks", limits_.chunks);
  if (used.bytes + document.bytes > limits_.bytes) return beyond_limit("bytes of text", limits_.bytes);
  return Ok{};
}

Status Collections::insert_document(const AddCall& call, int64_t hash, const std::vector<documents::Chunk>& chunks,
                                    const StoredVectors& vectors, Added& added) {
  TRY_ASSIGN(const StoredCollection collection, make_collection(call.owner, call.collection));
  TRY_ASSIGN(const auto known, find_document(writer_, collection.id, call.name));
  if (known) TRY(delete_document(writer_, collection, *known));
  const DocumentInfo& info = added.document;
  TRY(check_room(collection.owner, info));
  TRY_ASSIGN(Statement add,
             writer_.prepare("INSERT INTO documents(collection, name, title, kind, hash, bytes, modified, "
                             "added, first_chunk, chunks) VALUES(?, ?, ?, ?, ?, ?, ?, ?, 0, ?)"));
  TRY(add.with(collection.id, std::string_view(info.name), std::string_view(info.title), std::string_view(info.kind),
               hash, static_cast<int64_t>(info.bytes), info.modified, info.added, static_cast<int64_t>(info.chunks))
          .run());
  const int64_t document = writer_.last_id();
  TRY_ASSIGN(Statement add_chunk,
             writer_.prepare("INSERT INTO chunks(document, line, page, heading, text) VALUES(?, ?, ?, ?, ?)"));
  TRY_ASSIGN(Statement add_words,
             writer_.prepare("INSERT INTO " + words_table(collection.id) + "(rowid, heading, body) VALUES(?, ?, ?)"));
  int64_t first = 0;
  for (const documents::Chunk& chunk : chunks) {
    TRY(add_chunk
            .with(document, int64_t{chunk.place.line}, int64_t{chunk.place.page}, std::string_view(chunk.heading),
                  std::string_view(chunk.text))
            .run());
    const int64_t id = writer_.last_id();
    if (first == 0) first = id;
    const std::string heading = heading_terms(info.title, chunk.heading);
    const std::string body = terms_text(chunk.text);
    TRY(add_words.with(id, std::string_view(heading), std::string_view(body)).run());
  }
  TRY_ASSIGN(Statement place, writer_.prepare("UPDATE documents SET first_chunk = ? WHERE id = ?"));
  TRY(place.with(first, document).run());
  if (!vectors.values.empty()) TRY(insert_vectors(document, vectors));
  TRY_ASSIGN(Statement count,
             writer_.prepare("UPDATE owners SET documents = documents + 1, bytes = bytes + ?, chunks = "
                             "chunks + ? WHERE id = ?"));
  TRY(count.with(static_cast<int64_t>(info.bytes), static_cast<int64_t>(info.chunks), collection.owner).run());
  TRY(raise_revision(writer_, collection.id));
  added.is_new = true;
  added.is_replaced = known.has_value();
  return Ok{};
}

Status Collections::insert_vectors(int64_t document, const StoredVectors& vectors) {
  TRY_ASSIGN(Statement name,
             writer_.prepare("INSERT OR IGNORE INTO embedders(fingerprint, dimensions, name) VALUES(?, ?, "
                             "?)"));
  TRY(name.with(static_cast<int64_t>(embedder_.fingerprint), static_cast<int64_t>(embedder_.dimensions),
                std::string_view(embedder_.name))
          .run());
  TRY_ASSIGN(const int64_t embedder, find_embedder(writer_, embedder_));
  TRY_ASSIGN(Statement add,
             writer_.prepare("INSERT OR REPLACE INTO vectors(document, embedder, data) VALUES(?, ?, ?)"));
  const std::vector<std::byte> bytes = vector_bytes(vectors);
  return add.with(document, embedder, std::span<const std::byte>(bytes)).run();
}

Result<std::vector<DocumentInfo>> Collections::documents(const std::string& owner,
                                                         const std::string& collection) const {
  TRY_ASSIGN(Reader reader, this->reader());
  TRY_ASSIGN(const StoredCollection found, find_collection(*reader, owner, collection));
  TRY_ASSIGN(std::vector<StoredDocument> stored, documents_of(*reader, found.id));
  std::vector<DocumentInfo> all;
  for (StoredDocument& document : stored) all.push_back(std::move(document.info));
  return Result<std::vector<DocumentInfo>>{std::move(all)};
}

Status Collections::remove_document(const std::string& owner, const std::string& collection, const std::string& name) {
  std::lock_guard lock(writing_);
  TRY_ASSIGN(Transaction transaction, Transaction::begin(writer_, Database::Mode::write));
  TRY_ASSIGN(const StoredCollection found, find_collection(writer_, owner, collection));
  TRY_ASSIGN(const auto document, find_document(writer_, found.id, name));
  if (!document) {
    return Error{Code::not_found, "no document of '" + collection + "' is called '" + name.substr(0, 200) + "'"};
  }
  TRY(delete_document(writer_, found, *document));
  TRY(raise_revision(writer_, found.id));
  return transaction.commit();
}

Result<OwnerUsage> Collections::usage(const std::string& owner) const {
  TRY_ASSIGN(Reader reader, this->reader());
  TRY_ASSIGN(Statement row, reader->prepare("SELECT documents, chunks, bytes FROM owners WHERE name = ?"));
  return read_usage(row.with(std::string_view(owner)));
}

Result<OwnerUsage> Collections::usage_of_all() const {
  TRY_ASSIGN(Reader reader, this->reader());
  TRY_ASSIGN(Statement row, reader->prepare("SELECT sum(documents), sum(chunks), sum(bytes) FROM owners"));
  return read_usage(row);
}

}  // namespace chimere::retrieval
