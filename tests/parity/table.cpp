#include "table.h"

#include <cctype>

namespace chimere::parity {
namespace {

template <class... Ops>
Rows rows_of_all(Tag<std::variant<Ops...>>) {
  Rows all;
  size_t index = 0;
  const auto add = [&](Rows rows) {
    for (Row& row : rows) {
      row.op = index;
      all.push_back(std::move(row));
    }
    ++index;
  };
  (add(rows_of(Tag<Ops>{})), ...);
  return all;
}

}  // namespace

Rows table() { return rows_of_all(Tag<Op>{}); }

std::vector<DType> matrix_types() {
  std::vector<DType> out;
  for (const DTypeInfo& t : all_dtypes()) {
    if (t.type < DType::I8 || t.type > DType::I64) out.push_back(t.type);
  }
  return out;
}

bool is_of_few(DType type) {
  return type == DType::F32 || type == DType::BF16 || type == DType::Q4_0 || type == DType::Q6_K ||
         type == DType::MXFP4;
}

std::string lower_name(DType type) {
  std::string s(name(type));
  for (char& ch : s) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return s;
}

int odd_width(DType type, int blocks) {
  const int block = info(type).block_elems;
  return block == 1 ? 75 : block < 64 ? (2 * blocks + 1) * block : blocks * block;
}

}  // namespace chimere::parity
