#include "store/libpq.h"

#include <dlfcn.h>

#include <string>

namespace chimere::store {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<Libpq> find_libpq() {
  // It stays for as long as the process runs.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return Error{Code::unsupported,
                 std::string("a journal in PostgreSQL needs its client library: expected ") + kLibrary +
                     ", found none (Debian and Ubuntu: apt install libpq5; Fedora: dnf install libpq)"};
  }
  Libpq pq{};
  const bool is_whole =
      find_function(library, "PQconninfoParse", pq.parse) &&
      find_function(library, "PQconninfoFree", pq.free_options) && find_function(library, "PQfreemem", pq.free_text) &&
      find_function(library, "PQconnectdbParams", pq.connect) && find_function(library, "PQfinish", pq.finish) &&
      find_function(library, "PQstatus", pq.status) && find_function(library, "PQserverVersion", pq.server_version) &&
      find_function(library, "PQerrorMessage", pq.problem) && find_function(library, "PQsocket", pq.socket) &&
      find_function(library, "PQsetnonblocking", pq.set_nonblocking) &&
      find_function(library, "PQsendQueryParams", pq.send) && find_function(library, "PQflush", pq.flush) &&
      find_function(library, "PQconsumeInput", pq.take_input) && find_function(library, "PQisBusy", pq.is_busy) &&
      find_function(library, "PQgetResult", pq.next_result) &&
      find_function(library, "PQresultStatus", pq.result_status) &&
      find_function(library, "PQresultErrorField", pq.result_field) && find_function(library, "PQntuples", pq.n_rows) &&
      find_function(library, "PQgetvalue", pq.value) && find_function(library, "PQgetlength", pq.value_bytes) &&
      find_function(library, "PQcmdTuples", pq.n_changed) && find_function(library, "PQclear", pq.clear);
  if (!is_whole) return Error{Code::unsupported, std::string(kLibrary) + ": expected that of PostgreSQL 12 or later"};
  return pq;
}

}  // namespace

Result<const Libpq*> load_libpq() {
  static const Result<Libpq> found = find_libpq();
  if (!found) return found.error();
  return &*found;
}

}  // namespace chimere::store
