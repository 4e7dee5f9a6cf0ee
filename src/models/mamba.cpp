// mamba.cpp  Mamba-1 and Falcon-Mamba, which puts plain norms on dt, B and C.
#include "models/mamba_layers.h"

namespace chimere::models {

Result<Program> build_mamba(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const bool norms, source.metadata().get_bool_or(c.key("ssm.dt_b_c_rms"), false));
  TRY_ASSIGN(const Mamba1 mamba, read_mamba1(source.metadata(), c, norms ? Mamba1::Norms::plain : Mamba1::Norms::none));
  Binder b(source);
  const Trunk t = begin_trunk(b, c);
  const Mamba1Buffers buffers = mamba1_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    add_mamba1(b, c, mamba, i, t, buffers);
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
