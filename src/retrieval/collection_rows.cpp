#include "retrieval/collection_rows.h"

#include "retrieval/collection_schema.h"
#include "retrieval/search_terms.h"

namespace chimere::retrieval {
namespace {

constexpr const char* kDocumentColumns = "id, hash, name, title, kind, bytes, chunks, modified, added";

StoredDocument document_of(const Statement& row) {
  StoredDocument document;
  document.id = row.integer(0);
  document.hash = row.integer(1);
  document.info = {row.text(2),
                   row.text(3),
                   row.text(4),
                   static_cast<uint64_t>(row.integer(5)),
                   static_cast<uint64_t>(row.integer(6)),
                   row.integer(7),
                   row.integer(8)};
  return document;
}

}  // namespace

Result<std::vector<StoredCollection>> collections_of(const Database& database, const std::string& owner) {
  TRY_ASSIGN(Statement list,
             database.prepare("SELECT c.id, c.owner, c.revision, c.name FROM collections c JOIN owners o "
                              "ON o.id = c.owner WHERE o.name = ? ORDER BY c.name"));
  list.with(std::string_view(owner));
  std::vector<StoredCollection> all;
  for (;;) {
    TRY_ASSIGN(const bool has_row, list.step());
    if (!has_row) break;
    all.push_back({list.integer(0), list.integer(1), list.integer(2), list.text(3)});
  }
  return Result<std::vector<StoredCollection>>{std::move(all)};
}

Result<StoredCollection> find_collection(const Database& database, const std::string& owner, const std::string& name) {
  TRY_ASSIGN(const std::vector<StoredCollection> all, collections_of(database, owner));
  std::string known;
  for (const StoredCollection& one : all) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + one.name;
  }
  return Error{Code::not_found,
               "no collection is called '" + name.substr(0, 64) + "'; there is " + (known.empty() ? "none" : known)};
}

Result<std::vector<StoredDocument>> documents_of(const Database& database, int64_t collection) {
  TRY_ASSIGN(Statement list, database.prepare(std::string("SELECT ") + kDocumentColumns +
                                              " FROM documents WHERE collection = ? ORDER BY name"));
  list.with(collection);
  std::vector<StoredDocument> all;
  for (;;) {
    TRY_ASSIGN(const bool has_row, list.step());
    if (!has_row) break;
    all.push_back(document_of(list));
  }
  return Result<std::vector<StoredDocument>>{std::move(all)};
}

Result<std::optional<StoredDocument>> find_document(const Database& database, int64_t collection,
                                                    const std::string& name) {
  TRY_ASSIGN(Statement find, database.prepare(std::string("SELECT ") + kDocumentColumns +
                                              " FROM documents WHERE collection = ? AND name = ?"));
  TRY_ASSIGN(const bool has_row, find.with(collection, std::string_view(name)).step());
  if (!has_row) return std::optional<StoredDocument>();
  return std::optional<StoredDocument>(document_of(find));
}

std::string heading_terms(const std::string& title, const std::string& heading) {
  return terms_text(title) + terms_text(heading);
}

Status delete_document(const Database& database, const StoredCollection& collection, const StoredDocument& document) {
  const std::string table = words_table(collection.id);
  TRY_ASSIGN(Statement chunks, database.prepare("SELECT id, heading, text FROM chunks WHERE document = ?"));
  TRY_ASSIGN(Statement forget, database.prepare("INSERT INTO " + table + "(" + table +
                                                ", rowid, heading, body) VALUES('delete', ?, ?, ?)"));
  chunks.with(document.id);
  for (;;) {
    TRY_ASSIGN(const bool has_row, chunks.step());
    if (!has_row) break;
    const std::string heading = heading_terms(document.info.title, chunks.text(1));
    const std::string body = terms_text(chunks.text(2));
    TRY(forget.with(chunks.integer(0), std::string_view(heading), std::string_view(body)).run());
  }
  for (const char* sql : {"DELETE FROM vectors WHERE document = ?", "DELETE FROM chunks WHERE document = ?",
                          "DELETE FROM documents WHERE id = ?"}) {
    TRY_ASSIGN(Statement remove, database.prepare(sql));
    TRY(remove.with(document.id).run());
  }
  TRY_ASSIGN(Statement count,
             database.prepare("UPDATE owners SET documents = documents - 1, bytes = bytes - ?, chunks = "
                              "chunks - ? WHERE id = ?"));
  return count
      .with(static_cast<int64_t>(document.info.bytes), static_cast<int64_t>(document.info.chunks), collection.owner)
      .run();
}

Result<int64_t> find_embedder(const Database& database, const TextEmbedder& embedder) {
  TRY_ASSIGN(Statement find, database.prepare("SELECT id FROM embedders WHERE fingerprint = ? AND dimensions = ?"));
  find.with(static_cast<int64_t>(embedder.fingerprint), static_cast<int64_t>(embedder.dimensions));
  TRY_ASSIGN(const bool has_row, find.step());
  return has_row ? find.integer(0) : 0;
}

Status raise_revision(const Database& database, int64_t collection) {
  TRY_ASSIGN(Statement raise, database.prepare("UPDATE collections SET revision = revision + 1 WHERE id = ?"));
  return raise.with(collection).run();
}

}  // namespace chimere::retrieval
