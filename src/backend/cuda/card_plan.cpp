#include "backend/cuda/card_plan.h"

#include <algorithm>
#include <optional>

#include "backend/cuda/drawing.h"
#include "backend/cuda/host_experts.h"
#include "backend/cuda/lowering.h"
#include "backend/cuda/mapped_experts.h"
#include "backend/cuda/pass.h"
#include "backend/cuda/program_binding.h"

namespace chimere::cuda {
namespace {

class Planner {
 public:
  Planner(const Program& program, const StateLayout& layout, const DeviceInfo& device, uint64_t budget_bytes,
          const LoadOptions& options)
      : program_(program), layout_(layout), device_(device), budget_(budget_bytes), options_(options) {
    n_mixtures_ = static_cast<int>(std::count_if(program.ops.begin(), program.ops.end(),
                                                 [](const Op& op) { return std::holds_alternative<op::MoeFfn>(op); }));
  }

  Result<CardPlan> plan() const {
    TRY_ASSIGN(CardPlan plan, placed());
    plan.everything = everything(plan.state);
    return plan;
  }

 private:
  Result<CardPlan> placed() const {
    const uint64_t all = sequence_bytes(layout_, options_.context_tokens) * static_cast<uint64_t>(options_.n_sequences);
    const uint64_t wanted = std::max(options_.state_bytes, all);
    if (options_.cpu_moe != kFittingMixtures) {
      TRY_ASSIGN(const auto hosted, hosted_mixtures(program_, options_.cpu_moe));
      return checked(plan_with(layers(static_cast<int>(hosted.size())), wanted));
    }
    if (fits({}, wanted)) return plan_with({}, wanted);
    if (card_reads(n_mixtures_)) return checked(with_most_slots(wanted));
    for (int n = 1; n < n_mixtures_; ++n) {
      if (fits(layers(n), wanted)) return plan_with(layers(n), wanted);
    }
    return checked(plan_with(layers(n_mixtures_), wanted));
  }
  HostedLayers layers(int n_hosted) const { return {n_hosted, card_reads(n_hosted), 0}; }
  // Whether the card reads the experts of so many layers: as it was asked, or where RAM has room for all of them.
  bool card_reads(int n_hosted) const;
  CardPlan with_most_slots(uint64_t wanted_state) const;
  bool fits(const HostedLayers& hosted, uint64_t wanted_state) const {
    return !is_hopeless(hosted, wanted_state) && plan_with(hosted, wanted_state).needed() <= budget_;
  }
  // These experts in RAM, and room for so much state if there is any.
  CardPlan plan_with(const HostedLayers& hosted, uint64_t wanted_state) const;
  Result<CardPlan> checked(CardPlan plan) const;
  // Whether the weights alone are too much.
  bool is_hopeless(const HostedLayers& hosted, uint64_t state) const {
    return ProgramBinding(program_, hosted).size_bytes() + state + device_.context_bytes > budget_;
  }
  uint64_t choose_rows(const ProgramBinding& binding, uint64_t state, CardPlan& plan) const;
  uint64_t inputs_bytes(int max_rows) const {
    return BatchStaging::device_bytes(max_rows) + Drawing::least_device_bytes(program_.n_vocab);
  }
  uint64_t everything(uint64_t state) const;
  // The least number of mixtures with experts in RAM for which the rest fits; 0: there is none.
  int fitting_mixtures() const;

  const Program& program_;
  const StateLayout& layout_;
  const DeviceInfo& device_;
  const uint64_t budget_;
  const LoadOptions& options_;
  int n_mixtures_ = 0;
};

// Long slices of prompts keep tensor cores busy, many rows of a decode pass share each reading of the weights, and both
// cost working memory: the most for which that stays, with its inputs, within an eighth of what weights and states
// leave, half where there are slots to fill the rest. Slices are shortened first: their length matters less. Returns
// the working memory.
uint64_t Planner::choose_rows(const ProgramBinding& binding, uint64_t state, CardPlan& plan) const {
  const auto lower_for = [&](int rows, int pass_rows) {
    plan.max_rows = rows;
    plan.pass_rows = pass_rows;
    return Lowering(program_, layout_, binding, device_, options_.exact, rows, pass_rows).working_bytes();
  };
  // Every slice of a prompt has experts in RAM brought to the card again: its length comes before slots.
  const uint64_t share = plan.hosted.card_reads ? 2 : 8;
  const uint64_t taken = binding.size_bytes() - binding.slot_bytes() + device_.context_bytes + state;
  const uint64_t left = budget_ > taken ? budget_ - taken : 0;
  const int least = default_max_rows(program_, options_.decode_rows);
  uint64_t working_bytes = 0;
  const auto is_small = [&] { return working_bytes + inputs_bytes(plan.max_rows) <= left / share; };
  for (int pass_rows = kMatvecRows; pass_rows >= kDecodeTokens; pass_rows /= 2) {
    if (options_.max_rows > 0) {
      working_bytes = lower_for(options_.max_rows, pass_rows);
    } else {
      for (int slice = 2048;; slice /= 2) {
        const int rows = slice + options_.decode_rows;
        working_bytes = lower_for(std::max(rows, least), pass_rows);
        if (rows <= least || is_small()) break;
      }
    }
    if (is_small()) break;
  }
  return working_bytes;
}

bool Planner::card_reads(int n_hosted) const {
  if (n_hosted == 0 || options_.ram_experts == RamExperts::cpu) return false;
  if (options_.ram_experts == RamExperts::card || options_.ram_bytes == 0) return true;
  const auto mixtures = hosted_mixtures(program_, n_hosted);
  return mixtures && MappedSizes(program_, *mixtures, PackForm::compact, 0).ram <= options_.ram_bytes;
}

// All experts in RAM, and as many slots for those of every layer as the rest leaves room for. The states have room
// twice: what is kept of earlier conversations shares it with those that go on.
CardPlan Planner::with_most_slots(uint64_t wanted_state) const {
  int most = 0, too_many = 1;
  for (const Op& op : program_.ops) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) too_many = std::max(too_many, moe->n_experts);
  }
  while (too_many - most > 1) {
    const int n = most + (too_many - most) / 2;
    (fits({n_mixtures_, true, n}, 2 * wanted_state) ? most : too_many) = n;
  }
  return plan_with({n_mixtures_, true, most}, wanted_state);
}

// The wide form reads a fifth more bytes and has a fraction of the instructions, which is what bounds the experts of
// IQ3_S. It is for cards with room: where it would take more than half of the budget, what it costs in context weighs
// more, and weights keep the file's size. So do those that come over the bus.
CardPlan Planner::plan_with(const HostedLayers& hosted, uint64_t wanted_state) const {
  CardPlan plan;
  plan.n_mixtures = n_mixtures_;
  plan.hosted = hosted;
  plan.budget = budget_;
  plan.context = device_.context_bytes;
  plan.form = PackForm::wide;
  const ProgramBinding compact(program_, hosted), wide(program_, hosted, PackForm::wide);
  uint64_t working = choose_rows(wide, wanted_state, plan);
  if (hosted.card_reads || (wide.size_bytes() > compact.size_bytes() && wide.size_bytes() + working > budget_ / 2)) {
    plan.form = PackForm::compact;
    working = choose_rows(compact, wanted_state, plan);
  }
  plan.weights = (plan.form == PackForm::wide ? wide : compact).taken_bytes();
  plan.working = Ledger::taken_bytes(working);
  plan.inputs = inputs_bytes(plan.max_rows);
  plan.state = wanted_state;
  return plan;
}

uint64_t Planner::everything(uint64_t state) const {
  const ProgramBinding all(program_);
  const int rows = options_.max_rows > 0 ? options_.max_rows : default_max_rows(program_, options_.decode_rows);
  const Lowering lowering(program_, layout_, all, device_, options_.exact, rows, kDecodeTokens);
  return all.taken_bytes() + Ledger::taken_bytes(lowering.working_bytes()) + inputs_bytes(rows) +
         device_.context_bytes + state;
}

int Planner::fitting_mixtures() const {
  const uint64_t state = sequence_bytes(layout_, 1);
  for (int n = 1; n <= n_mixtures_; ++n) {
    if (fits(layers(n), state)) return n;
  }
  return 0;
}

// Refuses what has no room for one short sequence, the least that anything can run with.
Result<CardPlan> Planner::checked(CardPlan plan) const {
  const uint64_t least = sequence_bytes(layout_, 1), needed = plan.without_state() + least;
  if (needed <= budget_) return plan;
  const int proposed = plan.hosted.n_hosted < n_mixtures_ ? fitting_mixtures() : 0;
  const std::string advice = proposed > 0 ? "; with --cpu-moe " + std::to_string(proposed) +
                                                " the experts of as many layers stay in RAM and the rest fits"
                                          : "; --backend cpu runs it in RAM, without the card";
  const std::string hosted = plan.hosted.n_hosted > 0
                                 ? ", with the experts of " + std::to_string(plan.hosted.n_hosted) + " layers in RAM,"
                                 : "";
  return Error{Code::exhausted, "the model" + hosted + " does not fit on " + device_.name + ": weights " +
                                    bytes_text(plan.weights) + ", working memory for batches of " +
                                    std::to_string(plan.max_rows) + " rows " + bytes_text(plan.working + plan.inputs) +
                                    ", state of one sequence " + bytes_text(least) + ", CUDA context " +
                                    bytes_text(plan.context) + "; expected at most " + bytes_text(budget_) +
                                    ", found " + bytes_text(needed) + advice};
}

}  // namespace

uint64_t card_budget(const DeviceInfo& device, const LoadOptions& options) {
  // What is loaded later by itself, code and the driver's own, is not in any account.
  constexpr uint64_t kSpareBytes = uint64_t{256} << 20;
  const uint64_t all = device.free_bytes + device.context_bytes;
  const uint64_t most = all > kSpareBytes ? all - kSpareBytes : 0;
  return options.device_bytes > 0 ? std::min(options.device_bytes, most) : most;
}

uint64_t sequence_bytes(const StateLayout& layout, int n_tokens) {
  const uint64_t pages = (static_cast<uint64_t>(std::max(n_tokens, 1)) + kPageTokens - 1) / kPageTokens;
  return Ledger::taken_bytes(pages * layout.page_bytes()) +
         Ledger::taken_bytes(static_cast<uint64_t>(layout.recurrent_floats()) * sizeof(float));
}

Result<CardPlan> plan_card(const Program& program, const StateLayout& layout, const DeviceInfo& device,
                           uint64_t budget_bytes, const LoadOptions& options) {
  return Planner(program, layout, device, budget_bytes, options).plan();
}

std::string placement_text(const CardPlan& plan, const DeviceInfo& device, uint64_t host_bytes, bool was_asked) {
  const std::string budget = bytes_text(plan.budget), drafts = plan.without_drafts ? "; without its MTP block" : "";
  const HostedLayers& hosted = plan.hosted;
  if (hosted.n_hosted == 0) {
    return "all weights on " + device.name + " (" + bytes_text(plan.weights) + "): with working memory and states " +
           bytes_text(plan.needed()) + " of " + budget + drafts;
  }
  const std::string read = hosted.n_slots > 0 ? ", which the card reads, and the " + std::to_string(hosted.n_slots) +
                                                    " most used of each layer"
                                              : ", which the card reads";
  const std::string where = "experts of " + std::to_string(hosted.n_hosted) + " of " + std::to_string(plan.n_mixtures) +
                            " layers in RAM (" + bytes_text(host_bytes) + ")" + (hosted.card_reads ? read : "") +
                            (hosted.n_slots > 0 ? " with the other weights on " : ", other weights on ") + device.name +
                            " (" + bytes_text(plan.weights) + "): ";
  if (was_asked) return where + "--cpu-moe asked for it; the card has " + budget;
  return where + "the card has " + budget + ", everything needs " + bytes_text(plan.everything) + drafts;
}

}  // namespace chimere::cuda
