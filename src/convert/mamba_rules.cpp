// mamba_rules.cpp  Nothing but recurrent layers: Mamba and Mamba-2.
#include "convert/rules.h"

namespace chimere::convert {
namespace {

Common set_trunk(Recipe& r) {
  const Common c = set_common(r, "layer_norm_epsilon");
  r.set_int("context_length", kUnboundedContext);
  r.set_int("feed_forward_length", 0);
  r.set_int("attention.head_count", 0);
  return c;
}

}  // namespace

void mamba_rules(Recipe& r) {
  const Names names = find_names(r, "embeddings.weight");
  const Common c = set_trunk(r);
  const int64_t inner = r.integer_or("intermediate_size", r.integer_or("expand", 2) * c.d_model);
  // The rank is "auto" in some files: a sixteenth of the width.
  int64_t rank = (c.d_model + 15) / 16;
  if (const StoredTensor* dt = r.checkpoint().find(names.layer(0) + "mixer.dt_proj.weight")) {
    if (dt->shape.size() == 2) rank = static_cast<int64_t>(dt->shape[1]);
  }
  set_mamba1(r, {r.integer("conv_kernel"), r.integer("state_size"), inner, rank});
  r.set_bool("ssm.dt_b_c_rms", r.text_or("model_type", "mamba") == "falcon_mamba");
  add_ends(r, names, "norm_f.weight", true);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    r.f32(block(i, "attn_norm.weight"), names.layer(i) + "norm.weight");
    add_mamba1(r, i, names.layer(i) + "mixer.");
  }
}

void mamba2_rules(Recipe& r) {
  const Names names = find_names(r, "embeddings.weight");
  const Common c = set_trunk(r);
  Mamba2Sizes sizes{r.integer("conv_kernel"), r.integer("state_size"), r.integer("n_groups"), r.integer("num_heads"),
                    0};
  sizes.inner_size = sizes.n_heads * r.integer("head_dim");
  set_mamba2(r, sizes);
  add_ends(r, names, "norm_f.weight");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    r.f32(block(i, "attn_norm.weight"), names.layer(i) + "norm.weight");
    add_mamba2(r, i, names.layer(i) + "mixer.", sizes);
  }
}

}  // namespace chimere::convert
