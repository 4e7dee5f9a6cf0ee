// stand_still.cpp  Windows has no signal that would ask a process to stand still: nobody asks, and nobody has to stand fast.
#include "base/platform/stand_still.h"

namespace chimere {

void stand_still_when_asked() {}

StandFast::StandFast() = default;
StandFast::~StandFast() = default;

}  // namespace chimere
