// memory_plan.cpp  The card's forecast of its memory, by the planner that a load follows.
#include "backend/memory_plan.h"

#include "backend/cpu/packed_sizes.h"
#include "backend/cuda/card_plan.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/support.h"

namespace chimere::cuda {

Result<MemoryPlan> plan_memory(const Program& program, const LoadOptions& options, int64_t more_bytes) {
  TRY(check_supported(program));
  TRY_ASSIGN(const StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, options.kv));
  TRY_ASSIGN(const DeviceInfo device, probe_device());
  const uint64_t budget = card_budget(device, options) + static_cast<uint64_t>(more_bytes);
  TRY_ASSIGN(const CardPlan card, plan_card(program, layout, device, budget, options));
  const ProgramBinding binding(program, card.hosted, card.form);
  MemoryPlan plan;
  uint64_t host_bytes = 0;
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    const TensorView& m = program.matrices[i];
    const bool on_card = !binding.is_in_ram(static_cast<MatrixId>(i));
    const auto id = static_cast<MatrixId>(i);
    const uint64_t bytes = binding.is_computed_there(id) ? cpu::packed_bytes(m) : packed_bytes(m, card.form);
    plan.matrices.push_back({on_card ? Tier::card : Tier::ram, bytes, binding.is_brought(id)});
    if (!on_card) host_bytes += plan.matrices.back().bytes;
  }
  plan.n_mixtures = card.n_mixtures;
  plan.n_hosted = card.hosted.n_hosted;
  plan.card_reads = card.hosted.card_reads;
  plan.n_slots = card.hosted.n_slots;
  plan.slot_bytes = binding.slot_bytes();
  plan.mapped_bytes = binding.mapped_bytes();
  plan.n_layers = card.n_layers;
  plan.n_layers_in_ram = card.hosted.n_brought;
  plan.brought_bytes = binding.ram_layers().card_bytes();
  plan.max_rows = card.max_rows;
  plan.prefill_rows = chimere::prefill_rows(card.max_rows, options.decode_rows);
  plan.working_bytes = card.working + card.inputs;
  plan.context_bytes = card.context;
  plan.budget_bytes = card.budget;
  plan.card = device.name;
  plan.text = placement_text(card, device, host_bytes, options);
  return Result<MemoryPlan>{std::move(plan)};
}

}  // namespace chimere::cuda
