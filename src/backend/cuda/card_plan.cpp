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

// Of what is not routed experts, what is in RAM.
struct Brought {
  int n_layers = 0;
  bool table = false;
};

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
    int asked = n_mixtures_;  // mixtures in RAM, at most
    if (options_.cpu_moe != kFittingMixtures) {
      TRY_ASSIGN(const auto hosted, hosted_mixtures(program_, options_.cpu_moe));
      asked = static_cast<int>(hosted.size());
    }
    const bool is_free = options_.gpu_layers == kFittingLayers;
    const bool takes_all = options_.gpu_layers == kAllLayers || is_free;
    const int n_brought = takes_all ? 0 : std::max(0, n_layers_ - options_.gpu_layers);
    const CardPlan plan = with_experts(asked, Brought{n_brought, n_brought > 0}, wanted);
    if (!is_free || plan.needed() <= budget_) return checked(plan);
    return checked(with_fewest_brought(layers(asked), wanted));
  }
  // As few experts in RAM as it takes, of `most` mixtures.
  CardPlan with_experts(int most, const Brought& brought, uint64_t wanted) const {
    if (options_.cpu_moe != kFittingMixtures) return plan_with(layers(most, brought), wanted);
    if (fits(layers(0, brought), wanted)) return plan_with(layers(0, brought), wanted);
    if (card_reads(n_mixtures_)) return with_most_slots(brought, wanted);
    for (int n = 1; n < n_mixtures_; ++n) {
      if (fits(layers(n, brought), wanted)) return plan_with(layers(n, brought), wanted);
    }
    return plan_with(layers(n_mixtures_, brought), wanted);
  }
  HostedLayers layers(int n_hosted, const Brought& brought = {}) const {
    return {n_hosted, card_reads(n_hosted), 0, brought.n_layers, brought.table};
  }
  // Whether the card reads the experts of so many layers: as it was asked, or where RAM has room for all of them.
  bool card_reads(int n_hosted) const;
  CardPlan with_most_slots(const Brought& brought, uint64_t wanted_state) const;
  CardPlan with_fewest_brought(HostedLayers hosted, uint64_t wanted_state) const;
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
  const int n_layers_ = n_layers(program_);
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
  // Every slice of a prompt has what is in RAM brought to the card again: its length comes before slots.
  const uint64_t share = plan.hosted.card_reads || plan.hosted.n_brought > 0 ? 2 : 8;
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
CardPlan Planner::with_most_slots(const Brought& brought, uint64_t wanted_state) const {
  HostedLayers found = layers(n_mixtures_, brought), tried = found;
  int too_many = 1;
  for (const Op& op : program_.ops) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) too_many = std::max(too_many, moe->n_experts);
  }
  while (too_many - found.n_slots > 1) {
    tried.n_slots = found.n_slots + (too_many - found.n_slots) / 2;
    (fits(tried, 2 * wanted_state) ? found.n_slots : too_many) = tried.n_slots;
  }
  return plan_with(found, wanted_state);
}

// With the table of tokens in RAM, which costs nothing, and as few layers as the rest leaves room for the states that are
// wanted; all of them where there is no such number.
CardPlan Planner::with_fewest_brought(HostedLayers hosted, uint64_t wanted_state) const {
  hosted.table_in_ram = true;
  HostedLayers tried = hosted;
  if (fits(tried, wanted_state)) return plan_with(tried, wanted_state);
  int too_few = 0;
  hosted.n_brought = n_layers_;
  while (hosted.n_brought - too_few > 1) {
    tried.n_brought = too_few + (hosted.n_brought - too_few) / 2;
    (fits(tried, wanted_state) ? hosted.n_brought : too_few) = tried.n_brought;
  }
  return plan_with(hosted, wanted_state);
}

// The wide form reads a fifth more bytes and has a fraction of the instructions, which is what bounds the experts of
// IQ3_S. It is for cards with room: where it would take more than half of the budget, what it costs in context weighs
// more, and weights keep the file's size. So do those that come over the bus.
CardPlan Planner::plan_with(const HostedLayers& hosted, uint64_t wanted_state) const {
  CardPlan plan;
  plan.n_mixtures = n_mixtures_;
  plan.n_layers = n_layers_;
  plan.hosted = hosted;
  plan.budget = budget_;
  plan.context = device_.context_bytes;
  plan.form = PackForm::wide;
  const ProgramBinding compact(program_, hosted), wide(program_, hosted, PackForm::wide);
  uint64_t working = choose_rows(wide, wanted_state, plan);
  if (hosted.card_reads || hosted.n_brought > 0 ||
      (wide.size_bytes() > compact.size_bytes() && wide.size_bytes() + working > budget_ / 2)) {
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
  const HostedLayers& hosted = plan.hosted;
  const uint64_t in_ram = ProgramBinding(program_, hosted, plan.form).ram_layers().ram_bytes();
  if (options_.ram_bytes > 0 && in_ram > options_.ram_bytes) {
    return Error{Code::exhausted, std::to_string(hosted.n_brought) + " of " + std::to_string(n_layers_) +
                                      " layers do not fit on " + device_.name + ", nor into RAM: expected at most " +
                                      bytes_text(options_.ram_bytes) + ", found " + bytes_text(in_ram)};
  }
  const uint64_t least = sequence_bytes(layout_, 1), needed = plan.without_state() + least;
  if (needed <= budget_) return plan;
  const int proposed = hosted.n_hosted < n_mixtures_ ? fitting_mixtures() : 0;
  std::string advice = "; --backend cpu runs it in RAM, without the card";
  if (hosted.n_brought < n_layers_ && options_.gpu_layers != kFittingLayers && options_.gpu_layers != kAllLayers) {
    advice = "; with --gpu-layers auto, as many layers as it takes stay in RAM";
  } else if (proposed > 0) {
    advice =
        "; with --cpu-moe " + std::to_string(proposed) + " the experts of as many layers stay in RAM and the rest fits";
  }
  std::string in_ram_text;
  if (hosted.n_hosted > 0)
    in_ram_text += ", with the experts of " + std::to_string(hosted.n_hosted) + " layers in RAM,";
  if (hosted.n_brought > 0) {
    in_ram_text +=
        ", with " + std::to_string(hosted.n_brought) + " of " + std::to_string(n_layers_) + " layers in RAM,";
  }
  return Error{Code::exhausted, "the model" + in_ram_text + " does not fit on " + device_.name + ": weights " +
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

std::string placement_text(const CardPlan& plan, const DeviceInfo& device, uint64_t host_bytes,
                           const LoadOptions& options) {
  const std::string budget = bytes_text(plan.budget), drafts = plan.without_drafts ? "; without its MTP block" : "";
  const HostedLayers& hosted = plan.hosted;
  if (!plan.is_partly_in_ram()) {
    return "all weights on " + device.name + " (" + bytes_text(plan.weights) + "): with working memory and states " +
           bytes_text(plan.needed()) + " of " + budget + drafts;
  }
  std::string where;
  if (hosted.n_hosted > 0) {
    where = "experts of " + std::to_string(hosted.n_hosted) + " of " + std::to_string(plan.n_mixtures) + " layers";
  }
  if (hosted.n_brought > 0) {
    where += (where.empty() ? "" : " and other weights of ") + std::to_string(hosted.n_brought) + " of " +
             std::to_string(plan.n_layers) + " layers";
  }
  if (hosted.table_in_ram) where += (where.empty() ? "" : " and ") + std::string("the table of tokens");
  where += " in RAM (" + bytes_text(host_bytes) + ")";
  if (hosted.n_brought > 0) where += ", brought to the card ahead of their turn,";
  if (hosted.card_reads) where += ", which the card reads";
  if (hosted.n_slots > 0) where += ", and the " + std::to_string(hosted.n_slots) + " most used of each layer";
  where += (hosted.n_slots > 0     ? " with the other weights on "
            : hosted.n_brought > 0 ? " the other weights on "
                                   : ", other weights on ") +
           device.name + " (" + bytes_text(plan.weights) + "): ";
  const bool has_experts = hosted.n_hosted > 0, has_layers = hosted.n_brought > 0;
  if (has_layers && options.gpu_layers != kFittingLayers) {
    return where + "--gpu-layers asked for it; the card has " + budget;
  }
  if (has_experts && options.cpu_moe != kFittingMixtures) {
    return where + "--cpu-moe asked for it; the card has " + budget;
  }
  return where + "the card has " + budget + ", everything needs " + bytes_text(plan.everything) + drafts;
}

}  // namespace chimere::cuda
