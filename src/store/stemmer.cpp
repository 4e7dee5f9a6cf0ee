#include "store/stemmer.h"

#include <sqlite3.h>

#include <climits>
#include <utility>

namespace chimere::store {

struct Stemmer::Impl {
  sqlite3* database = nullptr;
  fts5_tokenizer calls{};
  Fts5Tokenizer* tokenizer = nullptr;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (tokenizer) calls.xDelete(tokenizer);
    sqlite3_close(database);
  }
};

namespace {

// FTS5's own functions are reached by a pointer that a query hands over.
fts5_api* functions_of(sqlite3* database) {
  fts5_api* found = nullptr;
  sqlite3_stmt* ask = nullptr;
  if (sqlite3_prepare_v2(database, "SELECT fts5(?1)", -1, &ask, nullptr) != SQLITE_OK) return nullptr;
  sqlite3_bind_pointer(ask, 1, &found, "fts5_api_ptr", nullptr);
  sqlite3_step(ask);
  sqlite3_finalize(ask);
  return found;
}

int tell_stem(void* tell, int flags, const char* stem, int n_bytes, int, int) {
  if (!(flags & FTS5_TOKEN_COLOCATED)) {
    (*static_cast<const std::function<void(std::string_view)>*>(tell))({stem, static_cast<size_t>(n_bytes)});
  }
  return SQLITE_OK;
}

}  // namespace

Stemmer::Stemmer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stemmer::Stemmer(Stemmer&& other) noexcept = default;
Stemmer::~Stemmer() = default;

Result<Stemmer> Stemmer::open() {
  auto impl = std::make_unique<Impl>();
  const char* arguments[] = {"unicode61", "remove_diacritics", "2"};
  void* context = nullptr;
  fts5_api* api = nullptr;
  if (sqlite3_open(":memory:", &impl->database) == SQLITE_OK) api = functions_of(impl->database);
  if (!api || api->xFindTokenizer(api, "porter", &context, &impl->calls) != SQLITE_OK ||
      impl->calls.xCreate(context, arguments, 3, &impl->tokenizer) != SQLITE_OK) {
    return Error{Code::internal, "SQLite: expected FTS5 with the tokenizer 'porter', found none"};
  }
  return Result<Stemmer>{Stemmer(std::move(impl))};
}

Status Stemmer::each(std::string_view text, const std::function<void(std::string_view stem)>& tell) {
  if (text.size() > INT_MAX) return Error{Code::invalid_argument, "a text of more than 2 GiB"};
  // FTS5 hands the pointer back to tell_stem() alone, which changes nothing behind it.
  void* told = const_cast<std::function<void(std::string_view)>*>(&tell);
  const int done = impl_->calls.xTokenize(impl_->tokenizer, told, FTS5_TOKENIZE_DOCUMENT, text.data(),
                                          static_cast<int>(text.size()), tell_stem);
  if (done != SQLITE_OK) return Error{Code::internal, std::string("FTS5's tokenizer: ") + sqlite3_errstr(done)};
  return Ok{};
}

}  // namespace chimere::store
