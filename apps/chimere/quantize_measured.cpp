#include "quantize_measured.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "common.h"
#include "quantizer/collect.h"
#include "text_windows.h"

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;
namespace qz = quantizer;

// One line on a terminal, written over.
void show_step(const char* what, size_t done, size_t total) {
  if (!isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "\r%s: %zu of %zu%s", what, done, total, done == total ? "\n" : "");
}

LoadOptions probe_load(const QuantizeOptions& o) {
  LoadOptions load;
  load.exact = true;  // what is measured is the weights, not the activations
  load.n_threads = o.threads;
  return load;
}

// Text that the model says by itself, and what its matrices were multiplied with meanwhile.
Status say_own_text(const QuantizeOptions& o, QuantizeMeasured& m) {
  qz::InputCollector collector;
  LoadOptions load = probe_load(o);
  load.observe = collector.observer();
  TRY_ASSIGN(const auto model, models::Model::load(o.in, models::BackendKind::cpu, std::move(load)));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  const int32_t first = std::max({tokenizer.special_ids().bos, tokenizer.special_ids().eos, 0});
  std::fprintf(stderr, "the model writes %d windows of text to be measured on\n", 2 * o.probe_windows);
  TRY_ASSIGN(qz::Windows all,
             qz::own_text(*model, o.probe_context, 2 * static_cast<size_t>(o.probe_windows), first, 1));
  const size_t half = all.tokens.size() / 2;
  m.held_out = qz::Windows{all.context, {all.tokens.begin() + static_cast<std::ptrdiff_t>(half), all.tokens.end()}};
  all.tokens.resize(half);
  m.probe_text = std::move(all);
  m.text_name = "text of its own";
  if (m.statistics) return Ok{};
  collector.statistics.datasets = {"text of the model's own"};
  collector.statistics.n_chunks = 2 * static_cast<uint64_t>(o.probe_windows);
  collector.statistics.chunk_tokens = static_cast<uint64_t>(o.probe_context);
  m.statistics = std::move(collector.statistics);
  return Ok{};
}

Status read_texts(const QuantizeOptions& o, const gguf::File& file, QuantizeMeasured& m) {
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
  const auto wanted = static_cast<size_t>(o.probe_windows);
  TRY_ASSIGN(qz::Windows all, read_windows(o.texts, tokenizer, o.probe_context, 5 * wanted));
  const size_t n = std::min(wanted, all.n_windows()), cut = n * static_cast<size_t>(o.probe_context);
  // What was measured on and what is judged by are different pages, where there are enough.
  if (all.n_windows() > n) {
    m.held_out = qz::Windows{all.context, {all.tokens.begin() + static_cast<std::ptrdiff_t>(cut), all.tokens.end()}};
    all.tokens.resize(cut);
  } else {
    m.held_out = all;
  }
  m.probe_text = std::move(all);
  m.text_name = fs::path(o.texts.front()).filename().string() + (o.texts.size() > 1 ? " and others" : "");
  return Ok{};
}

}  // namespace

Status gather(const QuantizeOptions& o, const gguf::File& file, QuantizeMeasured& m) {
  if (!o.imatrix.empty()) {
    TRY_ASSIGN(m.statistics, qz::read_statistics(o.imatrix));
    if (Status s = qz::check_statistics(*m.statistics, file.tensors()); !s) {
      return Error{s.error().code, o.imatrix + ": " + s.error().message};
    }
  }
  if (o.data_free) TRY(say_own_text(o, m));
  if (!o.texts.empty()) TRY(read_texts(o, file, m));
  return Ok{};
}

Status measure(const QuantizeOptions& o, const gguf::File& file, const qz::Plan& plan, QuantizeMeasured& m) {
  const std::string path = o.losses.empty() ? (o.folder.empty() ? o.in : o.folder) + ".losses.json" : o.losses;
  std::error_code code;
  if (fs::exists(path, code)) {
    auto before = qz::read_losses(path);
    if (!before) return before.error();
    const bool same = before->model == models::fingerprint(file) && before->statistics == qz::hash_of(m.weights());
    const bool enough = before->probed || !m.probe_text;
    if (same && enough && qz::covers(*before, plan)) {
      std::fprintf(stderr, "%s: measured before, on %s\n", path.c_str(), before->text.c_str());
      m.losses = std::move(*before);
      return Ok{};
    }
  }
  TRY_ASSIGN(qz::Losses losses,
             qz::measure_losses(file, plan, m.weights(), {}, o.threads,
                                [](size_t done, size_t total) { show_step("errors of tensors", done, total); }));
  losses.text = m.text_name;
  if (m.probe_text) {
    TRY(qz::measure_slopes(
        file, plan, m.weights(), *m.probe_text, o.probes, probe_load(o),
        [](size_t done, size_t total) { show_step("probes", done, total); }, losses));
  } else {
    std::fprintf(stderr, "without --text or --data-free, losses are sums of relative errors, not divergences\n");
  }
  if (Status s = qz::write_losses(losses, path); !s) {
    std::fprintf(stderr, "what was measured is not kept: %s\n", s.error().message.c_str());
  }
  m.losses = std::move(losses);
  return Ok{};
}

Result<qz::Divergence> judge(const QuantizeOptions& o, const QuantizeMeasured& m) {
  TRY_ASSIGN(const auto base_model, models::Model::load(o.in, models::BackendKind::cpu, probe_load(o)));
  TRY_ASSIGN(const qz::Base base, qz::measure_base(*base_model, *m.held_out));
  TRY_ASSIGN(const auto model, models::Model::load(o.out, models::BackendKind::cpu, probe_load(o)));
  return qz::measure_divergence(*model, base, {});
}

}  // namespace chimere::apps
