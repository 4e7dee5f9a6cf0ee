#include "backend/cuda/support.h"

#include <string>

namespace chimere::cuda {
namespace {

// What is missing for an op, or null.
template <class Any>
const char* missing(const Any&) {
  return nullptr;
}
const char* missing(const op::MoeFfn& o) {
  return o.n_least > 0 ? "a number of experts that differs from token to token" : nullptr;
}

}  // namespace

Status check_supported(const Program& program) {
  for (const Op& op : program.ops) {
    if (const char* what = std::visit([](const auto& o) { return missing(o); }, op)) {
      return Error{Code::unsupported, std::string("unsupported on cuda yet: ") + what + " (" + op_name(op) +
                                          "); run this model with --backend cpu"};
    }
  }
  return Ok{};
}

}  // namespace chimere::cuda
