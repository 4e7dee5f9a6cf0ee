#include "tensor/dtype.h"

#include "base/check.h"

namespace chimere {
namespace {

constexpr DTypeInfo kTypes[] = {
    {DType::F32, "F32", 1, 4},
    {DType::F16, "F16", 1, 2},
    {DType::Q4_0, "Q4_0", 32, 18},
    {DType::Q4_1, "Q4_1", 32, 20},
    {DType::Q5_0, "Q5_0", 32, 22},
    {DType::Q5_1, "Q5_1", 32, 24},
    {DType::Q8_0, "Q8_0", 32, 34},
    {DType::Q2_K, "Q2_K", 256, 84},
    {DType::Q3_K, "Q3_K", 256, 110},
    {DType::Q4_K, "Q4_K", 256, 144},
    {DType::Q5_K, "Q5_K", 256, 176},
    {DType::Q6_K, "Q6_K", 256, 210},
    {DType::IQ2_XXS, "IQ2_XXS", 256, 66},
    {DType::IQ2_XS, "IQ2_XS", 256, 74},
    {DType::IQ3_XXS, "IQ3_XXS", 256, 98},
    {DType::IQ1_S, "IQ1_S", 256, 50},
    {DType::IQ4_NL, "IQ4_NL", 32, 18},
    {DType::IQ3_S, "IQ3_S", 256, 110},
    {DType::IQ2_S, "IQ2_S", 256, 82},
    {DType::IQ4_XS, "IQ4_XS", 256, 136},
    {DType::I8, "I8", 1, 1},
    {DType::I16, "I16", 1, 2},
    {DType::I32, "I32", 1, 4},
    {DType::I64, "I64", 1, 8},
    {DType::F64, "F64", 1, 8},
    {DType::IQ1_M, "IQ1_M", 256, 56},
    {DType::BF16, "BF16", 1, 2},
    {DType::TQ1_0, "TQ1_0", 256, 54},
    {DType::TQ2_0, "TQ2_0", 256, 66},
    {DType::MXFP4, "MXFP4", 32, 17},
    {DType::NVFP4, "NVFP4", 64, 36},
    {DType::Q1_0, "Q1_0", 128, 18},
    {DType::Q2_0, "Q2_0", 64, 18},
    {DType::IQ2_K, "IQ2_K", 256, 76},
    {DType::IQ3_K, "IQ3_K", 256, 110},
    {DType::IQ4_K, "IQ4_K", 256, 144},
    {DType::IQ5_K, "IQ5_K", 256, 176},
    {DType::IQ6_K, "IQ6_K", 256, 212},
    {DType::IQ4_KS, "IQ4_KS", 256, 136, 4},
};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (upper(a[i]) != upper(b[i])) return false;
  }
  return true;
}

}  // namespace

std::span<const DTypeInfo> all_dtypes() { return kTypes; }

const DTypeInfo& info(DType type) {
  for (const DTypeInfo& t : kTypes) {
    if (t.type == type) return t;
  }
  CHECK(!"a DType outside its table");
  return kTypes[0];
}

std::string_view name(DType type) { return info(type).name; }

std::optional<DType> dtype_from_id(uint32_t id) {
  for (const DTypeInfo& t : kTypes) {
    if (static_cast<uint32_t>(t.type) == id) return t.type;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& t : kTypes) {
    if (equal_ignoring_case(t.name, name)) return t.type;
  }
  return std::nullopt;
}

}  // namespace chimere
