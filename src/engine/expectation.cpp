#include "engine/expectation.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace chimere::engine {
namespace {

// So much faster must the CPU be at answers: at prompts the card is.
constexpr double kWorthIt = 1.25;

bool has_figures(const Program& program, const LoadOptions& options, bool on_card, const Machine& machine) {
  if (!program.has_logits()) return false;
  if (on_card) return machine.card && machine.card->copy_bytes_s > 0 && machine.card->to_card_pinned > 0;
  const int threads = options.n_threads == 0 ? machine.host.cores : options.n_threads;
  const int measured = machine.threads == 0 ? machine.host.cores : machine.threads;
  const std::vector<DType> formats = cpu_formats(program);
  return threads == measured &&
         std::all_of(formats.begin(), formats.end(), [&](DType type) { return machine.product(type) != nullptr; });
}

}  // namespace

std::string expectation_text(const Forecast& forecast) {
  if (forecast.decode_tok_s <= 0) return "";
  char text[128];
  std::snprintf(text, sizeof text, "expected: %.*f tokens a second for one answer, %.*f at the end of the context",
                forecast.decode_tok_s < 100 ? 1 : 0, forecast.decode_tok_s, forecast.decode_full_tok_s < 100 ? 1 : 0,
                forecast.decode_full_tok_s);
  return text;
}

std::optional<Forecast> expected(const Program& program, const LoadOptions& options, bool on_card,
                                 const Machine& machine) {
  if (!has_figures(program, options, on_card, machine)) return std::nullopt;
  ForecastOptions o;
  o.backend = on_card ? models::BackendKind::cuda : models::BackendKind::cpu;
  o.load = options;
  o.ram_bytes = options.ram_bytes;
  auto found = forecast_of_load(program, o, machine);
  if (!found || (on_card && found->memory.card != machine.card->name)) return std::nullopt;
  // What the CPU computes beside the card needs its figures too.
  const bool cpu_computes = on_card && found->memory.n_hosted > 0 && !found->memory.card_reads;
  if (cpu_computes && !has_figures(program, options, false, machine)) return std::nullopt;
  return std::move(*found);
}

std::string better_on_cpu(const Forecast& on_card, const Forecast& on_cpu) {
  const Forecast &card = on_card, &cpu = on_cpu;
  if (card.memory.n_layers_in_ram == 0 || card.decode_tok_s <= 0 || cpu.decode_tok_s < kWorthIt * card.decode_tok_s) {
    return "";
  }
  char text[256];
  std::snprintf(text, sizeof text,
                "%d of %d layers would have to come over the bus for every token: %.1f tokens a second are expected of "
                "the card and %.1f of the CPU; --gpu-layers takes them there all the same",
                card.memory.n_layers_in_ram, card.memory.n_layers, card.decode_tok_s, cpu.decode_tok_s);
  return text;
}

}  // namespace chimere::engine
