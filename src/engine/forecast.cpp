#include "engine/forecast.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "backend/cpu/packed_matrix.h"

namespace chimere::engine {
namespace {

// Of one op of a decode step on a card, beyond the bytes it reads. Two models on an H200: 245 launches for the 162 ops of
// Qwen3.5-35B-A3B leave 0.81 of 1.37 ms beside their bytes, the 112 ops of Nemotron-3-Nano 0.53 of 1.17 ms.
constexpr double kCardOpSeconds = 4.9e-6;
// From the card to the host's experts of a layer and back (bench/results/2026-11-16-cuda-h200.md).
constexpr double kHandOverSeconds = 27e-6;
// Of the bus's speed for copies, what kernels get that read experts from RAM: 46.7 of 55 GB/s on an H200.
constexpr double kBusShare = 0.85;
// Of an op on the CPU: its phases, of one to seven, and what it does beside products (norms, rounding of rows, choices),
// which only models of a few megabytes notice.
constexpr double kPhases = 3, kCpuOpSeconds = 0.25e-6;
// Of a prompt's time, what products and mixers take at the speed of large products; the rest is norms, rounding of rows,
// convolutions and choices. 0.69 to 0.75 with four models of 17 to 70 MB.
constexpr double kPromptShare = 0.72;

struct Use {
  const char* role = "other";
  double share = 1;  // of it that a token reads
};

std::vector<Use> uses_of(const Program& program) {
  std::vector<Use> uses(program.matrices.size());
  const auto set = [&](MatrixId id, const char* role, double share = 1) {
    if (id != kNone) uses[id] = {role, share};
  };
  for (const Op& op : program.trunk()) {
    if (const auto* e = std::get_if<op::Embed>(&op)) {
      set(e->table, "embedding", 0);
      set(e->positions, "embedding", 0);
    } else if (const auto* p = std::get_if<op::NormMatmul>(&op)) {
      for (const auto& out : p->outs) set(out.weight, "projections");
    } else if (const auto* o = std::get_if<op::MatmulAdd>(&op)) {
      set(o->weight, "projections");
    } else if (const auto* d = std::get_if<op::DenseFfn>(&op)) {
      for (const MatrixId id : {d->gate, d->up, d->down}) set(id, "feed-forward");
    } else if (const auto* m = std::get_if<op::MoeFfn>(&op)) {
      for (const MatrixId id :
           {m->router, m->shared_gate, m->shared_up, m->shared_down, m->latent_down, m->latent_up}) {
        set(id, "router, shared expert");
      }
      for (const MatrixId id : {m->gate, m->up, m->down}) {
        set(id, "routed experts", static_cast<double>(m->n_used) / m->n_experts);
      }
    } else if (const auto* h = std::get_if<op::LmHead>(&op)) {
      set(h->weight, "head");
    }
  }
  for (size_t i = program.trunk_matrices().size(); i < uses.size(); ++i) uses[i] = {"MTP block", 0};
  return uses;
}

// Weights of types without panels are decoded to float32.
DType multiplied_as(DType type) { return cpu::PackedMatrix::supports(type) ? type : DType::F32; }

Result<MemoryPlan> plan_memory(const Program& program, const ForecastOptions& o) {
  return models::plan_memory(program, o.backend, o.load, o.more_card_bytes);
}

class Forecaster {
 public:
  Forecaster(const Program& program, const ForecastOptions& options, const Machine& machine, Forecast& f)
      : program_(program), options_(options), machine_(machine), f_(f), uses_(uses_of(program)) {}

  void add_parts();
  Status add_states();
  // What the budget does not hold of the experts goes to the disk.
  Status fit_ram();
  void add_speed();

 private:
  bool on_card() const { return options_.backend == models::BackendKind::cuda; }
  uint64_t state_bytes() const { return f_.kv_bytes + f_.recurrent_bytes; }
  double rate(const TensorView& matrix, bool is_cached) const {
    const ProductSpeed* p = machine_.product(multiplied_as(matrix.type));
    if (!p) return machine_.ram_bytes_s();
    return is_cached ? p->cached_bytes_s : p->decode_bytes_s;
  }
  bool is_expert_in_ram(size_t i) const {
    return f_.memory.matrices[i].tier == Tier::ram && std::string_view(uses_[i].role) == "routed experts";
  }
  // Of the experts that the card reads from RAM, those that it has itself.
  double slot_share() const {
    uint64_t in_ram = 0;
    for (size_t i = 0; i < uses_.size(); ++i) in_ram += is_expert_in_ram(i) ? f_.memory.matrices[i].bytes : 0;
    return in_ram > 0 ? static_cast<double>(f_.memory.slot_bytes) / static_cast<double>(in_ram) : 0;
  }
  double cpu_product_seconds(double cached_share) const;
  double prompt_seconds() const;
  double mixer_flops() const;

  const Program& program_;
  const ForecastOptions& options_;
  const Machine& machine_;
  Forecast& f_;
  const std::vector<Use> uses_;
  uint64_t recurrent_bytes_ = 0;  // of one sequence
  double kv_token_bytes_ = 0;
  double disk_share_ = 0;  // of the routed experts in RAM
};

void Forecaster::add_parts() {
  std::map<std::pair<std::string, Tier>, ForecastPart> parts;
  for (size_t i = 0; i < program_.matrices.size(); ++i) {
    const MemoryPlan::Matrix& m = f_.memory.matrices[i];
    ForecastPart& part = parts[{uses_[i].role, m.tier}];
    part.role = uses_[i].role;
    part.tier = m.tier;
    part.n_tensors++;
    part.bytes += m.bytes;
    part.token_bytes += static_cast<double>(m.bytes) * uses_[i].share;
  }
  for (auto& [key, part] : parts) f_.parts.push_back(std::move(part));
  std::stable_sort(f_.parts.begin(), f_.parts.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

Status Forecaster::add_states() {
  const LoadOptions& load = options_.load;
  TRY_ASSIGN(const StateLayout layout, StateLayout::create(program_.kv_layers, program_.recurrent_layers, load.kv));
  const auto n = static_cast<uint64_t>(options_.n_sequences);
  const uint64_t pages = (static_cast<uint64_t>(std::max(1, load.context_tokens)) + kPageTokens - 1) / kPageTokens;
  recurrent_bytes_ = static_cast<uint64_t>(layout.recurrent_floats()) * sizeof(float);
  kv_token_bytes_ = static_cast<double>(layout.kv_bytes_per_token());
  f_.kv_bytes = n * pages * layout.page_bytes();
  f_.recurrent_bytes = n * recurrent_bytes_;
  return Ok{};
}

Status Forecaster::fit_ram() {
  uint64_t experts = 0, others = 0;
  for (const ForecastPart& part : f_.parts) {
    if (part.tier == Tier::card) f_.card_bytes += part.bytes;
    if (part.tier == Tier::ram) (part.role == "routed experts" ? experts : others) += part.bytes;
  }
  if (on_card()) {
    f_.card_bytes += f_.memory.mapped_bytes + f_.memory.brought_bytes + f_.memory.working_bytes +
                     f_.memory.context_bytes + state_bytes();
  } else {
    others += f_.memory.working_bytes + state_bytes();
  }
  f_.ram_bytes = experts + others;
  f_.ram_budget_bytes = options_.ram_bytes;
  if (options_.ram_bytes == 0 || f_.ram_bytes <= options_.ram_bytes) return Ok{};
  // A step needs the experts of a layer at once.
  if (others >= options_.ram_bytes || experts == 0) {
    const auto mb = [](uint64_t bytes) { return std::to_string((bytes + 500'000) / 1'000'000) + " MB"; };
    return Error{Code::exhausted, "the model does not fit into RAM: expected at most " + mb(options_.ram_bytes) +
                                      ", found " + mb(others) + (experts > 0 ? " beside its routed experts" : "")};
  }
  f_.disk_bytes = f_.ram_bytes - options_.ram_bytes;
  disk_share_ = static_cast<double>(f_.disk_bytes) / static_cast<double>(experts);
  return Ok{};
}

double Forecaster::cpu_product_seconds(double cached_share) const {
  double seconds = 0;
  for (size_t i = 0; i < program_.matrices.size(); ++i) {
    const MemoryPlan::Matrix& m = f_.memory.matrices[i];
    if (m.tier != Tier::ram || f_.memory.card_reads || m.is_brought) continue;
    const double bytes = static_cast<double>(m.bytes) * uses_[i].share;
    const TensorView& matrix = program_.matrices[i];
    seconds += bytes * (cached_share / rate(matrix, true) + (1 - cached_share) / rate(matrix, false));
  }
  return seconds;
}

// Of a prompt's token beside its products, all in float32: recurrences in chunks, attention over half of a prompt of
// kPromptTokens.
double Forecaster::mixer_flops() const {
  constexpr double kPromptTokens = 512;
  double flops = 0;
  for (const RecurrentLayer& layer : program_.recurrent_layers) {
    const double k = layer.d_key, v = layer.d_value;
    flops += 2 * layer.n_heads * (kChunkTokens * (2.5 * k + 1.5 * v) + 3 * k * v);
  }
  for (const Op& op : program_.trunk()) {
    const auto* a = std::get_if<op::Attention>(&op);
    if (a) flops += 2 * a->n_heads * (a->head_dim_k + a->head_dim_v) * kPromptTokens / 2;
  }
  return flops;
}

double Forecaster::prompt_seconds() const {
  double seconds = 0;
  for (size_t i = 0; i < program_.matrices.size(); ++i) {
    const TensorView& matrix = program_.matrices[i];
    const ProductSpeed* p = machine_.product(multiplied_as(matrix.type));
    // The head is for the last token alone.
    if (std::string_view(uses_[i].role) == "head" || !p) continue;
    const double speed = uses_[i].share < 1 ? p->expert_flop_s : p->prompt_flop_s;
    seconds += 2 * static_cast<double>(matrix.elems()) * uses_[i].share / speed;
  }
  const ProductSpeed* plain = machine_.product(DType::F32);
  return plain ? (seconds + mixer_flops() / plain->prompt_flop_s) / kPromptShare : 0;
}

void Forecaster::add_speed() {
  double card = 0, ram = 0, missed = 0;
  for (const ForecastPart& part : f_.parts) {
    (part.tier == Tier::card ? card : ram) += part.tier == Tier::file ? 0 : part.token_bytes;
    if (part.tier == Tier::ram && part.role == "routed experts") missed += disk_share_ * part.token_bytes;
  }
  double brought = 0;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const MemoryPlan::Matrix& m = f_.memory.matrices[i];
    if (m.is_brought) brought += static_cast<double>(m.bytes) * uses_[i].share;
  }
  const double states = 2.0 * static_cast<double>(recurrent_bytes_);
  const double kv_end = kv_token_bytes_ * options_.load.context_tokens;
  f_.token_bytes = card + ram + states;
  const auto n_ops = static_cast<double>(program_.trunk().size());
  const double disk_s = missed > 0 && machine_.disk ? missed / machine_.disk->random_bytes_s : 0;
  // What is read again with the next token stays in a cache that holds it all.
  const double cache = static_cast<double>(machine_.host.cache_bytes), touched = ram + states;
  const double cached = cache > 0 ? std::clamp(2 - 2 * touched / cache, 0.0, 1.0) : 0;
  double seconds = cpu_product_seconds(cached) + disk_s, per_kv_byte = 0;
  double beside = 0;  // of the copies that run while all else is computed
  if (on_card() && machine_.card) {
    double to_host = kHandOverSeconds * f_.memory.n_hosted;
    if (f_.memory.card_reads) {
      // As if all experts were used alike, which is the worst case.
      const double experts = ram - brought, in_slots = experts * slot_share();
      card += in_slots;
      to_host = (experts - in_slots) / (kBusShare * machine_.card->to_card_pinned);
    }
    seconds += (card + brought + states) / machine_.card->copy_bytes_s + kCardOpSeconds * n_ops + to_host;
    if (brought > 0) beside = brought / machine_.card->to_card_pinned;
    per_kv_byte = 1 / machine_.card->copy_bytes_s;
  } else if (!on_card()) {
    seconds += states / machine_.ram_bytes_s() + n_ops * (kPhases * machine_.barrier_s + kCpuOpSeconds);
    per_kv_byte = 1 / machine_.ram_bytes_s();
    const double prompt = prompt_seconds();
    f_.prompt_tok_s = prompt > 0 ? 1 / prompt : 0;
  }
  if (missed > 0 && !machine_.disk) return;  // nobody knows
  f_.decode_tok_s = 1 / std::max(seconds, beside);
  f_.decode_full_tok_s = 1 / std::max(seconds + kv_end * per_kv_byte, beside);
}

}  // namespace

std::vector<DType> cpu_formats(const Program& program) {
  std::set<DType> types;
  for (const TensorView& m : program.trunk_matrices()) types.insert(multiplied_as(m.type));
  types.insert(DType::F32);  // as recurrences and attention are
  return {types.begin(), types.end()};
}

Result<Forecast> forecast(const Program& program, const ForecastOptions& options, const Machine& machine) {
  Forecast f;
  TRY_ASSIGN(f.memory, plan_memory(program, options));
  Forecaster forecaster(program, options, machine, f);
  forecaster.add_parts();
  TRY(forecaster.add_states());
  TRY(forecaster.fit_ram());
  forecaster.add_speed();
  return Result<Forecast>{std::move(f)};
}

Result<Forecast> forecast_of_load(const Program& program, const ForecastOptions& options, const Machine& machine) {
  auto whole = forecast(program, options, machine);
  const bool on_card = options.backend == models::BackendKind::cuda;
  if (!on_card || !options.load.drafts_need_room || !program.has_drafts() || program.draft_blocks ||
      (whole && !whole->memory.is_partly_in_ram())) {
    return whole;
  }
  Program without = program;
  without.drop_drafts();
  return forecast(without, options, machine);
}

}  // namespace chimere::engine
