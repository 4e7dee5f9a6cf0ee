// postgres_schema.h  The tables of a journal in PostgreSQL, and what is named there. For this folder alone.
#pragma once

#include <string>

#include "store/postgres.h"

namespace chimere::store {

// Makes them where there are none, in the first schema of the connection's search path. Refuses those of a newer program.
Status make_postgres_tables(PostgresConnection& database);

// An owner as the tables have it. Names that the database does not take (invalid UTF-8, zeros) or that are too long for
// its indexes stay apart from all others.
std::string as_owner(const std::string& owner);

// The number of an advisory lock of this journal, as SQL: other journals of the same database have others.
inline constexpr const char* kRunLock = "(1126713426::bigint << 32) + 'chimere_journal'::regclass::oid::bigint";
inline constexpr const char* kLeaderLock = "(1126713427::bigint << 32) + 'chimere_journal'::regclass::oid::bigint";

}  // namespace chimere::store
