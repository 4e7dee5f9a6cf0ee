// pass_shape.h  Everything that decides which kernels a pass launches, and with what arguments.
#pragma once

#include <cstdint>

#include "backend/cuda/adapters.h"
#include "backend/cuda/batch_view.h"
#include "backend/cuda/kernels/rows/head_part.h"

namespace chimere::cuda {

// Positions, pages and tokens are read on the device: two passes of equal shape are the same launches, and one graph.
struct PassShape {
  bool is_decode = true;
  bool dependent = false;  // kernels may start before the previous one has ended: decode passes, where the card can
  bool logits = false;     // what is wanted of the logit rows
  bool hidden = false;
  bool drafts = false;          // the ops of the draft pass, not of the trunk
  bool chained = false;         // of a chain of drafts, behind its first: over the hidden vectors of the pass before
  int max_tokens = 0;           // of a slice
  int kv_bound = 0;             // of the positions that a row sees
  HeadPartView head_part = {};  // what logits are of; their rows are as long
  BatchView batch = {};         // its pointers and numbers
  // The tokens where the host wrote them: the embedding then runs beside the kernel that fetches the batch, and needs
  // nothing of what the stream was given before that one. Null when they are to be read on the device.
  const int32_t* pinned_tokens = nullptr;
  PassAdapters adapters;

  // Whether a recurrence may leave its norm to the product that reads it: adapters would read it too.
  bool can_leave_norms() const { return is_decode && !adapters; }
  bool operator==(const PassShape& other) const;
};

}  // namespace chimere::cuda
