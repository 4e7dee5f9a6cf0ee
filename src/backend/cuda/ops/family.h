// family.h  Launches that a profile counts together.
#pragma once

namespace chimere::cuda {

enum class Family {
  embed,
  projections,
  delta_rule,
  state_space,
  attention,
  residual_products,
  layer_norms,
  ffn,
  router,
  experts_up,
  experts_down,
  head,
};

// In the order of a profile; the head is timed by itself (profile.cpp).
struct NamedFamily {
  Family family;
  const char* name;
};
inline constexpr NamedFamily kFamilies[] = {
    {Family::embed, "embedding"},
    {Family::projections, "norm and projections"},
    {Family::delta_rule, "delta rule"},
    {Family::state_space, "state space"},
    {Family::attention, "attention"},
    {Family::residual_products, "output projections"},
    {Family::layer_norms, "layer norms and GELU"},
    {Family::ffn, "feed-forward"},
    {Family::router, "router"},
    {Family::experts_up, "experts up"},
    {Family::experts_down, "experts down"},
};

}  // namespace chimere::cuda
