#include "quantizer/goal.h"

#include <cmath>
#include <cstdio>

#include "backend/backend.h"
#include "models/registry.h"

namespace chimere::quantizer {
namespace {

std::string megabytes(double bytes) {
  char text[48];
  std::snprintf(text, sizeof(text), bytes < 1e9 ? "%.3f MB" : "%.3f GB", bytes < 1e9 ? bytes / 1e6 : bytes / 1e9);
  return text;
}

}  // namespace

Result<StateNeed> state_need(const gguf::File& file, int context, const KvFormat& kv) {
  models::FileSource source(file);
  TRY_ASSIGN(const Program program, models::build_program(source));
  TRY_ASSIGN(const StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, kv));
  StateNeed need;
  const auto pages = static_cast<uint64_t>((context + kPageTokens - 1) / kPageTokens);
  need.kv_bytes = pages * layout.page_bytes();
  need.recurrent_bytes = static_cast<uint64_t>(layout.recurrent_floats()) * sizeof(float);
  const auto rows = static_cast<uint64_t>(default_max_rows(program, kDecodeTokens));
  for (const Buffer& b : program.buffers) need.scratch_bytes += rows * static_cast<uint64_t>(b.width) * sizeof(float);
  return need;
}

Result<double> tensor_limit(const Goal& goal, const gguf::File& file, const Plan& plan, const Statistics* statistics,
                            const Origin& origin) {
  if (goal.kind == Goal::Kind::bits) {
    uint64_t elems = 0;
    for (const PlanItem& item : plan.items) elems += item.tensor->elems();
    return std::floor(goal.amount * static_cast<double>(elems) / 8);
  }
  if (goal.kind == Goal::Kind::fits) {
    TRY_ASSIGN(const StateNeed need, state_need(file, goal.context, goal.kv));
    const double left = goal.amount - static_cast<double>(need.total() + goal.reserve_bytes);
    if (left > 0) return left;
    return Error{Code::invalid_argument, "--fits: a context of " + std::to_string(goal.context) + " takes " +
                                             megabytes(static_cast<double>(need.total())) + " and " +
                                             megabytes(static_cast<double>(goal.reserve_bytes)) +
                                             " are reserved, which leaves nothing of " + megabytes(goal.amount) +
                                             " for weights"};
  }
  // Header and padding are the same for every choice of types.
  TRY_ASSIGN(const uint64_t whole, planned_bytes(file, plan, statistics, origin));
  return goal.amount - static_cast<double>(whole - plan.tensor_bytes());
}

std::vector<std::vector<Option>> by_bytes(const Plan& plan, double read_price) {
  std::vector<std::vector<Option>> items;
  for (const PlanItem& item : plan.items) {
    std::vector<Option>& options = items.emplace_back();
    for (const Choice& c : item.choices) {
      const auto bytes = static_cast<double>(c.bytes);
      options.push_back({c.loss + read_price * item.share * bytes / 1e9, bytes});
    }
  }
  return items;
}

std::vector<std::vector<Option>> by_loss(const Plan& plan) {
  std::vector<std::vector<Option>> items;
  for (const PlanItem& item : plan.items) {
    std::vector<Option>& options = items.emplace_back();
    for (const Choice& c : item.choices) options.push_back({item.share * static_cast<double>(c.bytes), c.loss});
  }
  return items;
}

Result<Allocation> reach(const Goal& goal, const gguf::File& file, const Statistics* statistics, const Origin& origin,
                         Plan& plan) {
  if (goal.kind == Goal::Kind::type) {
    choose_everywhere(plan, goal.type);
    return Allocation{};
  }
  const bool fastest = goal.kind == Goal::Kind::fastest;
  double limit = goal.amount;
  if (!fastest) {
    TRY_ASSIGN(limit, tensor_limit(goal, file, plan, statistics, origin));
  }
  const auto items = fastest ? by_loss(plan) : by_bytes(plan, goal.read_price);
  double least = 0;
  for (const auto& options : items) {
    double low = INFINITY;
    for (const Option& o : options) low = std::min(low, o.cost);
    least += low;
  }
  if (least > limit) {
    return Error{Code::invalid_argument, fastest ? "no plan stays within that divergence"
                                                 : "the smallest that the tensors can take is " + megabytes(least) +
                                                       ", and " + megabytes(limit) + " were asked for"};
  }
  TRY_ASSIGN(Allocation found, allocate(items, limit));
  for (size_t i = 0; i < plan.items.size(); ++i) plan.items[i].chosen = found.chosen[i];
  return Result<Allocation>{std::move(found)};
}

}  // namespace chimere::quantizer
