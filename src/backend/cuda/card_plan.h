// card_plan.h  What of a program goes to the card and what stays in RAM, from shapes alone. A load does what it says, and
// a forecast prints it.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/runtime/device.h"
#include "backend/cuda/weights/pack.h"
#include "base/result.h"

namespace chimere::cuda {

struct CardPlan {
  int n_mixtures = 0;  // layers with routed experts
  int n_layers = 0;    // that may be in RAM
  HostedLayers hosted;
  PackForm form = PackForm::compact;
  int max_rows = 0;   // of a batch
  int pass_rows = 0;  // of a decode pass, at most
  // As the card hands memory out.
  uint64_t weights = 0;
  uint64_t working = 0;
  uint64_t inputs = 0;   // what the host writes for a step, and the least that is needed to draw
  uint64_t context = 0;  // the driver's own
  uint64_t state = 0;    // of the sequences that room was asked for
  uint64_t budget = 0;
  uint64_t everything = 0;      // what the card would need to hold all weights, in batches of the least size
  bool without_drafts = false;  // for want of room

  uint64_t without_state() const { return weights + working + inputs + context; }
  bool is_partly_in_ram() const { return hosted.n_hosted > 0 || hosted.n_brought > 0 || hosted.table_in_ram; }
  uint64_t needed() const { return without_state() + state; }
};

// What may be used of the card: all that is free but for what the driver loads later, or LoadOptions::device_bytes.
uint64_t card_budget(const DeviceInfo& device, const LoadOptions& options);

// State of a sequence of so many tokens.
uint64_t sequence_bytes(const StateLayout& layout, int n_tokens);

// Fails with what is missing, and what would help.
Result<CardPlan> plan_card(const Program& program, const StateLayout& layout, const DeviceInfo& device,
                           uint64_t budget_bytes, const LoadOptions& options);

// Where everything went and why, in a line for people. host_bytes: of what is in RAM.
std::string placement_text(const CardPlan& plan, const DeviceInfo& device, uint64_t host_bytes,
                           const LoadOptions& options);

}  // namespace chimere::cuda
