// format_table.h  The formats of quantised rows, a row each, and what is compiled for them.
//
// Every list of formats comes from this table: which format a type of weights is (formats.h), which kernels exist for
// it, and in which part of a family's instances they are compiled (kernels/*_instances.cu). A new format is a struct in
// formats_plain.h, formats_k.h, formats_iqk.h or formats_books.h, a row here, and its packing in pack.cpp.
//
// Without a kernel of its own a format is multiplied group by group through unpack_any(): right, and slower.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "backend/cuda/weights/formats_books.h"
#include "backend/cuda/weights/formats_iqk.h"
#include "backend/cuda/weights/formats_k.h"
#include "backend/cuda/weights/formats_plain.h"

namespace chimere::cuda {

// Families of kernels, each with what it asks of a format.
inline constexpr unsigned kMatvecKernels = 1;  // decode, one row to a few: load_pair()
inline constexpr unsigned kTensorKernels = 2;  // decode on tensor cores, beside the former: load_quarters()
inline constexpr unsigned kExpertKernels = 4;  // decode, mixtures of experts: load_pair()
inline constexpr unsigned kGemmKernels = 8;    // prefill
inline constexpr unsigned kDenseDecode = kMatvecKernels | kTensorKernels;
inline constexpr unsigned kAllKernels = kDenseDecode | kExpertKernels | kGemmKernels;
// Every instance takes long to compile. The build that only asks whether nvcc takes the kernels sets CHIMERE_FEW_FORMATS
// and has kernels for the formats with this mark alone, which between them take every branch of the templates: one scale
// for 32 weights, scales with minima, a codebook that was looked up at load, and a look-up table with exponents.
inline constexpr unsigned kOfFew = 16;

// No format of its own: products of any type, told apart at run time.
struct NoFormat {
  static constexpr DType kType = DType::F32;
};

// `Shared`: formats of a shared expert that has kernels together with routed ones of this format. A shared expert of
// any other format goes through unpack_any(), while the routed ones have their kernels.
template <class F, unsigned kFamilies, class... Shared>
struct FormatRow {
  using Format = F;
  static constexpr DType kType = F::kType;

  static constexpr bool has(unsigned family) {
#ifdef CHIMERE_FEW_FORMATS
    if ((kFamilies & kOfFew) == 0) return false;
#endif
    return (kFamilies & family) != 0;
  }
  // Calls f with each format of a shared expert, NoFormat last.
  template <class Call>
  static constexpr void for_each_shared(Call&& f) {
    (f(Shared{}), ..., f(NoFormat{}));
  }
};

template <class... Rows>
struct FormatRows {
  using Tuple = std::tuple<Rows...>;
};

// clang-format off
using FormatTable = FormatRows<
    //        format              kernels                                         shared experts
    FormatRow<format::IQ3_S_wide, kAllKernels | kOfFew,                           format::Q5_K>,
    FormatRow<format::Q8_0,       kAllKernels | kOfFew,                           format::Q8_0>,
    FormatRow<format::Q4_0,       kAllKernels,                                    format::Q4_0>,
    FormatRow<format::Q4_1,       kDenseDecode>,
    FormatRow<format::Q5_0,       kAllKernels,                                    format::Q5_0, format::Q8_0>,
    FormatRow<format::Q5_1,       0>,
    FormatRow<format::Q2_K,       0>,
    FormatRow<format::Q3_K,       0>,
    FormatRow<format::Q4_K,       kAllKernels,                                    format::Q4_K>,
    FormatRow<format::Q5_K,       kAllKernels | kOfFew,                           format::Q5_K>,
    FormatRow<format::Q6_K,       kAllKernels,                                    format::Q6_K>,
    FormatRow<format::IQ1_S,      0>,
    FormatRow<format::IQ1_M,      0>,
    FormatRow<format::IQ2_XXS,    0>,
    FormatRow<format::IQ2_XS,     0>,
    FormatRow<format::IQ2_S,      0>,
    FormatRow<format::IQ3_XXS,    0>,
    FormatRow<format::IQ3_S,      kMatvecKernels | kExpertKernels | kGemmKernels, format::Q5_K>,
    FormatRow<format::IQ4_NL,     kDenseDecode | kExpertKernels>,
    FormatRow<format::IQ4_XS,     kAllKernels>,
    FormatRow<format::TQ2_0,      0>,
    FormatRow<format::MXFP4,      kAllKernels | kOfFew,                           format::Q8_0>,
    FormatRow<format::NVFP4,      0>,
    FormatRow<format::Q1_0,       0>,
    FormatRow<format::Q2_0,       0>,
    FormatRow<format::IQ2_K,      0>,
    FormatRow<format::IQ3_K,      0>,
    FormatRow<format::IQ4_K,      0>,
    FormatRow<format::IQ4_KS,     0>,
    FormatRow<format::IQ5_K,      0>,
    FormatRow<format::IQ6_K,      0>>;
// clang-format on

inline constexpr size_t kFormats = std::tuple_size_v<FormatTable::Tuple>;

template <size_t kIndex, bool kExists = (kIndex < kFormats)>
struct FormatAt {
  using Format = typename std::tuple_element_t<kIndex, FormatTable::Tuple>::Format;
  static constexpr DType kType = Format::kType;
  template <class F>
  CHIMERE_BOTH static constexpr void call(F& f) {
    f(Format{});
  }
};
template <size_t kIndex>
struct FormatAt<kIndex, false> {
  static constexpr DType kType{0x20000u + static_cast<uint32_t>(kIndex)};  // that no matrix has
  template <class F>
  CHIMERE_BOTH static constexpr void call(F&) {}
};

// Calls f with the format of a packed quantised type. The type of a matrix is one for all lanes: no divergence. A
// switch, because nvcc makes other code of a chain of comparisons.
template <class F>
CHIMERE_BOTH constexpr void with_format(DType type, F&& f) {
  static_assert(kFormats <= 33, "a case for each");
  if (type == FormatAt<0>::kType) return FormatAt<0>::call(f);
#define CHIMERE_FORMAT(index)                         \
  case static_cast<uint32_t>(FormatAt<index>::kType): \
    return FormatAt<index>::call(f);
#define CHIMERE_FOUR_FORMATS(index) \
  CHIMERE_FORMAT(index) CHIMERE_FORMAT(index + 1) CHIMERE_FORMAT(index + 2) CHIMERE_FORMAT(index + 3)
  switch (static_cast<uint32_t>(type)) {
    CHIMERE_FOUR_FORMATS(1)
    CHIMERE_FOUR_FORMATS(5)
    CHIMERE_FOUR_FORMATS(9)
    CHIMERE_FOUR_FORMATS(13)
    CHIMERE_FOUR_FORMATS(17)
    CHIMERE_FOUR_FORMATS(21)
    CHIMERE_FOUR_FORMATS(25)
    CHIMERE_FOUR_FORMATS(29)
    default: return;
  }
#undef CHIMERE_FOUR_FORMATS
#undef CHIMERE_FORMAT
}

// Calls f with the row of a type: on the host, where the choice is made.
template <class... Rows, class F>
constexpr void with_row_of(FormatRows<Rows...>, DType type, F&& f) {
  static_cast<void>(((type == Rows::kType && (f(Rows{}), true)) || ...));
}
template <class F>
constexpr void with_row(DType type, F&& f) {
  with_row_of(FormatTable{}, type, f);
}

// Whether the kernels of a family exist for a type.
constexpr bool has_kernels(DType type, unsigned family) {
  bool has = false;
  with_row(type, [&](auto row) { has = decltype(row)::has(family); });
  return has;
}

// The formats of the expert kernels that serve routed experts of one type beside a shared one of another.
struct ExpertFormats {
  bool exist = false;
  DType shared = DType::F32;  // F32: the shared expert goes through unpack_any()
};
constexpr ExpertFormats expert_formats(DType routed, DType shared) {
  ExpertFormats found;
  with_row(routed, [&](auto row) {
    using Row = decltype(row);
    found.exist = Row::has(kExpertKernels);
    Row::for_each_shared([&](auto format) {
      if (decltype(format)::kType == shared && has_kernels(shared, kExpertKernels)) found.shared = shared;
    });
  });
  return found;
}

// Instances compile in parts, side by side. cmake/cuda.cmake compiles each *_instances.cu once a part; rows that have
// kernels of the family go to the parts in turn.
inline constexpr int kInstanceParts = 4;

template <unsigned kFamily, class Row, class... Rows>
constexpr int part_of(FormatRows<Rows...>) {
  int before = 0;
  bool reached = false;
  ((reached = reached || Rows::kType == Row::kType, before += !reached && Rows::has(kFamily) ? 1 : 0), ...);
  return before % kInstanceParts;
}
template <unsigned kFamily, int kPart, class... Rows, class F>
void with_row_of_part(FormatRows<Rows...> table, DType type, F&& f) {
  const auto try_one = [&](auto row) {
    using Row = decltype(row);
    if constexpr (Row::has(kFamily) && part_of<kFamily, Row>(decltype(table){}) == kPart) {
      if (type == Row::kType) f(row);
    }
  };
  (try_one(Rows{}), ...);
}
// Calls f with the row of a type, if the part has the family's kernels for it.
template <unsigned kFamily, int kPart, class F>
void with_instance(DType type, F&& f) {
  with_row_of_part<kFamily, kPart>(FormatTable{}, type, f);
}
// The first of what the parts' find functions give that is not null: find(part) with the part as a constant.
template <class Find>
auto find_in_parts(Find&& find) {
  return [&]<int... kParts>(std::integer_sequence<int, kParts...>) {
    decltype(find(std::integral_constant<int, 0>{})) found{};
    static_cast<void>(((found = find(std::integral_constant<int, kParts>{})) || ...));
    return found;
  }
  (std::make_integer_sequence<int, kInstanceParts>{});
}

}  // namespace chimere::cuda
