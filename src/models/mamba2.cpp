// mamba2.cpp  Mamba-2: every block is one mixer behind its norm.
#include "models/mamba_layers.h"

namespace chimere::models {

Result<Program> build_mamba2(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Mamba2 mamba, read_mamba2(source.metadata(), c));
  Binder b(source);
  const Trunk t = begin_trunk(b, c);
  const Mamba2Buffers buffers = mamba2_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    add_mamba2(b, c, mamba, i, t, buffers);
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
