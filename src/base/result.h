// result.h  Errors as values: what the world can get wrong is returned, never thrown.
//
// `Result<T>` holds a value or an Error; `Status` is a Result without a value. Messages say what, where, expected,
// found. Keep Result out of per-token loops: check once at the border, then trust.
//
//   Result<File> open(path);
//   TRY_ASSIGN(File f, open(path));   // returns the error to our caller
//   TRY(f.sync());
//
// A move-only local is returned as `return Result<T>{std::move(x)};`: nvcc rejects `return x;` there.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace chimere {

enum class Code { invalid_argument, not_found, corrupt, unsupported, exhausted, cancelled, io, device, internal };

const char* code_name(Code code);

struct Error {
  Code code;
  std::string message;
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace chimere

#define CHIMERE_CONCAT_(a, b) a##b
#define CHIMERE_CONCAT(a, b) CHIMERE_CONCAT_(a, b)

#define TRY(expr)                                              \
  do {                                                         \
    if (auto try_status_ = (expr); !try_status_) {             \
      return ::chimere::Error{std::move(try_status_.error())}; \
    }                                                          \
  } while (0)

#define TRY_ASSIGN(decl, expr) TRY_ASSIGN_(CHIMERE_CONCAT(try_result_, __COUNTER__), decl, expr)
#define TRY_ASSIGN_(name, decl, expr)                          \
  auto name = (expr);                                          \
  if (!name) return ::chimere::Error{std::move(name.error())}; \
  decl = std::move(*name)
