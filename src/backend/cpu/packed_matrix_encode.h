// packed_matrix_encode.h  From file blocks to panels and back: which panel layout a type uses, and where its bits go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cpu/isa/panel_layout.h"
#include "tensor/dtype.h"

namespace chimere::cpu {

// nullopt for integer types and F64, which are never multiplied.
std::optional<PanelKind> panel_kind(DType type);

constexpr bool is_float_kind(PanelKind kind) { return static_cast<int>(kind) < kFloatKinds; }

struct PanelGeometry {
  int64_t scales_offset;  // bytes from the start of a panel; float panels have no scales
  int64_t panel_bytes;    // a multiple of 64
};
PanelGeometry panel_geometry(PanelKind kind, int64_t n_cols);

// Writes row `lane` of a panel from its file form. REQUIRES: n_cols is a whole number of file blocks.
void pack_row(DType type, const std::byte* src, int64_t n_cols, uint8_t* panel, int lane);

// The exact values of row `lane`.
void unpack_panel_row(DType type, const uint8_t* panel, int lane, int64_t n_cols, float* dst);

}  // namespace chimere::cpu
