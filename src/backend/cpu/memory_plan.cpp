// memory_plan.cpp  The CPU backend's forecast of its memory.
#include "backend/memory_plan.h"

#include <algorithm>
#include <thread>

#include "backend/cpu/packed_sizes.h"
#include "backend/cpu/workspace.h"

namespace chimere::cpu {

uint64_t packed_bytes(const TensorView& tensor) {
  const auto layout = layout_of_matrix(tensor);
  return layout ? layout->size_bytes() : 0;
}

std::vector<bool> packed_matrices(const Program& program) {
  std::vector<bool> packed(program.matrices.size(), true);
  for (const Op& op : program.ops) {
    if (const auto* e = std::get_if<op::Embed>(&op)) {
      packed[e->table] = false;
      if (e->positions != kNone) packed[e->positions] = false;
    }
  }
  for (const Op& op : program.ops) {
    if (const auto* h = std::get_if<op::LmHead>(&op)) packed[h->weight] = true;
  }
  return packed;
}

Result<MemoryPlan> plan_memory(const Program& program, const LoadOptions& options) {
  TRY_ASSIGN(const StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, options.kv));
  MemoryPlan plan;
  const std::vector<bool> packed = packed_matrices(program);
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    const TensorView& m = program.matrices[i];
    plan.matrices.push_back(packed[i] ? MemoryPlan::Matrix{Tier::ram, packed_bytes(m)}
                                      : MemoryPlan::Matrix{Tier::file, m.size_bytes()});
  }
  for (const Op& op : program.ops) plan.n_mixtures += std::holds_alternative<op::MoeFfn>(op);
  plan.max_rows = options.max_rows > 0 ? options.max_rows : default_max_rows(program, options.decode_rows);
  plan.prefill_rows = prefill_rows(plan.max_rows, options.decode_rows);
  const int n_threads =
      options.n_threads > 0 ? options.n_threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Workspace workspace;  // sized as it will be; some tens of megabytes that are given back at once
  workspace.reserve(program, layout, plan.max_rows, n_threads);
  plan.working_bytes = workspace.scratch_bytes();
  for (const Buffer& b : program.buffers) {
    plan.working_bytes += static_cast<uint64_t>(b.width) * static_cast<uint64_t>(plan.max_rows) * sizeof(float);
  }
  return Result<MemoryPlan>{std::move(plan)};
}

}  // namespace chimere::cpu
