// observe.h  Shows what the matrices of an op were multiplied with, after it has run.
//
// Every op leaves its inputs in the workspace until the next one, so no kernel has to know of this.
#pragma once

#include "backend/cpu/workspace.h"

namespace chimere::cpu {

// Calls `observe` for each matrix of the op. By one thread, right after the op.
void show_inputs(const Context& c, const Op& op, const Outputs& outputs, Workspace& w, const InputObserver& observe);

}  // namespace chimere::cpu
