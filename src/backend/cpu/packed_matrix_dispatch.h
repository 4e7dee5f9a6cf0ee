// packed_matrix_dispatch.h  The matmul kernels for the instruction set in use.
#pragma once

#include "backend/cpu/isa/panel_kernels.h"
#include "tensor/dtype.h"

namespace chimere::cpu {

const PanelKernels& panel_kernels();

// The run-time constants of a type: its table of codes and the power of two in its scales.
const PanelTables& panel_tables(DType type);

}  // namespace chimere::cpu
