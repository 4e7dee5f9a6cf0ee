// profile.h  Where the time of a pass goes: the launches of each family by themselves, then all of them together.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cuda/drawing.h"
#include "backend/cuda/lowering.h"
#include "backend/cuda/parcel.h"

namespace chimere::cuda {

struct ProfiledPass {
  const Lowering& lowering;
  const PassShape& shape;
  const Parcel& batch;               // holds it; already sent
  const Drawing* drawing = nullptr;  // null: no tokens are drawn; else its parcel is sent too
  DrawShape draws = {};
};

// Adds the times of the pass. REQUIRES: the pass has been run, so that caches and states hold something.
Status profile_pass(const Stream& stream, const ProfiledPass& pass, int repeats, std::vector<FamilyTime>& times);

}  // namespace chimere::cuda
