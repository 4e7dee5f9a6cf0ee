// panel_table.h  Fills a level's table with instances of the kernels of panel_body.h.
#pragma once

#include "backend/cpu/isa/panel_body.h"

namespace chimere::cpu {

template <int... kTokens>
struct Tiles {};

// The token counts a level has kernels for. A sanitized build of the full list takes minutes to compile and can find
// no more than one of a few does.
#if defined(__has_feature)
#define CHIMERE_HAS_FEATURE(x) __has_feature(x)
#else
#define CHIMERE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || CHIMERE_HAS_FEATURE(address_sanitizer) || \
    CHIMERE_HAS_FEATURE(thread_sanitizer)
template <class Full>
using BuiltTiles = Tiles<1, 3>;
#else
template <class Full>
using BuiltTiles = Full;
#endif

template <class V, PanelKind kKind, int... kInt8, int... kExact>
constexpr void fill_quantised(PanelKernels& table, Tiles<kInt8...>, Tiles<kExact...>) {
  ((table.int8[static_cast<int>(kKind)][kInt8] = &int8_tile<V, kKind, kInt8>), ...);
  ((table.f32[static_cast<int>(kKind)][kExact] = &exact_tile<V, kKind, kExact>), ...);
}
template <class V, PanelKind kKind, int... kTokens>
constexpr void fill_float(PanelKernels& table, Tiles<kTokens...>) {
  ((table.f32[static_cast<int>(kKind)][kTokens] = &float_tile<V, kKind, kTokens>), ...);
}

template <class V, class Int8Tiles, class FloatTiles>
constexpr PanelKernels make_panel_kernels() {
  constexpr BuiltTiles<Int8Tiles> int8;
  constexpr BuiltTiles<FloatTiles> exact;
  PanelKernels t{};
  fill_float<V, PanelKind::f32>(t, exact);
  fill_float<V, PanelKind::f16>(t, exact);
  fill_float<V, PanelKind::bf16>(t, exact);
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
  fill_quantised<V, PanelKind::iq2_k>(t, int8, exact);
  fill_quantised<V, PanelKind::iq3_k>(t, int8, exact);
  fill_quantised<V, PanelKind::iq4_k>(t, int8, exact);
  fill_quantised<V, PanelKind::iq4_ks>(t, int8, exact);
  fill_quantised<V, PanelKind::iq56_k>(t, int8, exact);
  fill_quantised<V, PanelKind::iq3_s_bytes>(t, int8, exact);
  t.expand_grid = &expand_grid<V>;
  t.quantize = &V::quantize;
  return t;
}

}  // namespace chimere::cpu
