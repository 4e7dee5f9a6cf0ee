// libpq.h  The functions of PostgreSQL's client library that the journal calls, found when the first URL is opened: the
// program neither needs the library nor brings it along (docs/dependencies.md). For this folder alone.
//
// The declarations are ours, of an interface that has been the same since PostgreSQL 9, so that nothing of it is needed
// to build.
#pragma once

#include "base/result.h"

struct pg_conn;
struct pg_result;

namespace chimere::store {

struct Libpq {
  struct Option;  // of a URL that was taken apart; is only given back

  Option* (*parse)(const char* text, char** problem);
  void (*free_options)(Option* options);
  void (*free_text)(void* text);
  pg_conn* (*connect)(const char* const* names, const char* const* values, int is_url_expanded);
  void (*finish)(pg_conn* connection);
  int (*status)(const pg_conn* connection);
  int (*server_version)(const pg_conn* connection);
  char* (*problem)(const pg_conn* connection);
  int (*socket)(const pg_conn* connection);
  int (*set_nonblocking)(pg_conn* connection, int is_on);
  // Types of values: found by the server. All values and results are text.
  int (*send)(pg_conn* connection, const char* sql, int n_values, const unsigned* types, const char* const* values,
              const int* bytes, const int* forms, int result_form);
  int (*flush)(pg_conn* connection);
  int (*take_input)(pg_conn* connection);
  int (*is_busy)(pg_conn* connection);
  pg_result* (*next_result)(pg_conn* connection);
  int (*result_status)(const pg_result* result);
  char* (*result_field)(const pg_result* result, int field);
  int (*n_rows)(const pg_result* result);
  char* (*value)(const pg_result* result, int row, int column);
  int (*value_bytes)(const pg_result* result, int row, int column);
  char* (*n_changed)(pg_result* result);
  void (*clear)(pg_result* result);
};

inline constexpr int kPgConnected = 0;                                     // ConnStatusType
inline constexpr int kPgDone = 1, kPgRows = 2;                             // ExecStatusType
inline constexpr int kPgSeverity = 'V', kPgState = 'C', kPgMessage = 'M';  // fields of an error; 'C': SQLSTATE

// unsupported: it is not installed; the message says what to install.
Result<const Libpq*> load_libpq();

}  // namespace chimere::store
