// panel_table.h  Fills a level's table with instances of the kernels of panel_body.h.
#pragma once

#include "backend/cpu/isa/panel_body.h"

namespace chimere::cpu {

template <class V, PanelKind kKind, int... kTokens>
constexpr void fill_int8(PanelKernels& table) {
  ((table.int8[static_cast<int>(kKind)][kTokens] = &int8_tile<V, kKind, kTokens>), ...);
}
template <class V, PanelKind kKind, int... kTokens>
constexpr void fill_exact(PanelKernels& table) {
  ((table.f32[static_cast<int>(kKind)][kTokens] = &exact_tile<V, kKind, kTokens>), ...);
}
template <class V, PanelKind kKind, int... kTokens>
constexpr void fill_float(PanelKernels& table) {
  ((table.f32[static_cast<int>(kKind)][kTokens] = &float_tile<V, kKind, kTokens>), ...);
}

template <int... kTokens>
struct Tiles {};

template <class V, PanelKind kKind, int... kInt8, int... kExact>
constexpr void fill_quantised(PanelKernels& table, Tiles<kInt8...>, Tiles<kExact...>) {
  fill_int8<V, kKind, kInt8...>(table);
  fill_exact<V, kKind, kExact...>(table);
}

template <class V, int... kInt8, int... kFloat>
constexpr PanelKernels make_panel_kernels(Tiles<kInt8...> int8, Tiles<kFloat...> exact) {
  PanelKernels t{};
  fill_float<V, PanelKind::f32, kFloat...>(t);
  fill_float<V, PanelKind::f16, kFloat...>(t);
  fill_float<V, PanelKind::bf16, kFloat...>(t);
  fill_quantised<V, PanelKind::q4_0>(t, int8, exact);
  fill_quantised<V, PanelKind::q4_1>(t, int8, exact);
  fill_quantised<V, PanelKind::q5_0>(t, int8, exact);
  fill_quantised<V, PanelKind::q5_1>(t, int8, exact);
  fill_quantised<V, PanelKind::q8_0>(t, int8, exact);
  fill_quantised<V, PanelKind::q2_k>(t, int8, exact);
  fill_quantised<V, PanelKind::q3_k>(t, int8, exact);
  fill_quantised<V, PanelKind::q4_k>(t, int8, exact);
  fill_quantised<V, PanelKind::q5_k>(t, int8, exact);
  fill_quantised<V, PanelKind::q6_k>(t, int8, exact);
  fill_quantised<V, PanelKind::iq4_nl>(t, int8, exact);
  fill_quantised<V, PanelKind::iq4_xs>(t, int8, exact);
  fill_quantised<V, PanelKind::mxfp4>(t, int8, exact);
  fill_quantised<V, PanelKind::nvfp4>(t, int8, exact);
  fill_quantised<V, PanelKind::iq3_s>(t, int8, exact);
  fill_quantised<V, PanelKind::iq3_xxs>(t, int8, exact);
  fill_quantised<V, PanelKind::iq12>(t, int8, exact);
  fill_quantised<V, PanelKind::iq12_h>(t, int8, exact);
  fill_quantised<V, PanelKind::few>(t, int8, exact);
  t.quantize = &V::quantize;
  return t;
}

}  // namespace chimere::cpu
