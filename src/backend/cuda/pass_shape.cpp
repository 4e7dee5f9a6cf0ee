#include "backend/cuda/pass_shape.h"

namespace chimere::cuda {

bool PassShape::operator==(const PassShape& o) const {
  const BatchView &a = batch, &b = o.batch;
  const bool same_batch = a.tokens == b.tokens && a.slices == b.slices && a.row_slice == b.row_slice &&
                          a.row_pos == b.row_pos && a.logit_rows == b.logit_rows && a.n_rows == b.n_rows &&
                          a.n_slices == b.n_slices && a.n_logit_rows == b.n_logit_rows;
  return same_batch && pinned_tokens == o.pinned_tokens && is_decode == o.is_decode && dependent == o.dependent &&
         logits == o.logits && hidden == o.hidden && drafts == o.drafts && chained == o.chained &&
         max_tokens == o.max_tokens && kv_bound == o.kv_bound && head_part == o.head_part && adapters == o.adapters;
}

}  // namespace chimere::cuda
