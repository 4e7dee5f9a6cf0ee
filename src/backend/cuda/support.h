// support.h  Which programs the kernels can run: what is missing is named when a model is loaded.
#pragma once

#include "backend/ops.h"
#include "base/result.h"

namespace chimere::cuda {

// Fails with the name of the first op, or feature of an op, that has no kernel.
Status check_supported(const Program& program);

}  // namespace chimere::cuda
