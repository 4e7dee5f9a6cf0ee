#include "quantizer/probes.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "cache/sequence.h"
#include "models/weight_source.h"
#include "quantizer/encode_tensor.h"
#include "sampling/gumbel.h"

namespace chimere::quantizer {
namespace {

// The file with some of its tensors replaced.
class ReplacedSource : public models::WeightSource {
 public:
  explicit ReplacedSource(const gguf::File& file) : file_(file) {}
  Status replace(const TensorView& tensor, DType type, const Statistics* statistics, ThreadPool& pool) {
    std::vector<std::byte> bytes;
    bytes.reserve(bytes_as(tensor, type));
    TRY(stream_encoded(
        tensor, type, statistics, pool, [&] { file_.drop_pages(tensor); },
        [&](std::span<const std::byte> chunk) -> Status {
          bytes.insert(bytes.end(), chunk.begin(), chunk.end());
          return Ok{};
        }));
    Held& held = held_[std::string(tensor.name)];
    held.bytes = std::move(bytes);
    held.view = tensor;
    held.view.type = type;
    held.view.data = held.bytes.data();
    return Ok{};
  }
  const gguf::Metadata& metadata() const override { return file_.metadata(); }
  const TensorView* find(std::string_view name, const Shape&, bool) override {
    const auto held = held_.find(name);
    return held == held_.end() ? file_.find(name) : &held->second.view;
  }
  void taken(const TensorView& tensor) override {
    if (!held_.count(tensor.name)) file_.drop_pages(tensor);
  }

 private:
  struct Held {
    std::vector<std::byte> bytes;
    TensorView view;
  };
  const gguf::File& file_;
  std::map<std::string, Held, std::less<>> held_;
};

// From the softmax of the logits.
int32_t drawn_token(std::span<const float> logits, const DrawKey& key) {
  GumbelRace race;
  for (size_t v = 0; v < logits.size(); ++v) {
    const auto id = static_cast<int32_t>(v);
    race.offer(id, logits[v] + gumbel_of_bits(gumbel_bits(key, id)));
  }
  return race.id;
}

}  // namespace

std::vector<TensorClass> classes_of(const Plan& plan, size_t max_classes) {
  std::map<std::string, std::vector<size_t>> parts;
  size_t n_tensors = 0;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    if (plan.items[i].choices.size() < 2) continue;
    parts[plan.items[i].part.part].push_back(i);
    ++n_tensors;
  }
  if (n_tensors == 0) return {};
  // Every part is cut into as many ranges of layers as its share of the probes allows.
  std::vector<TensorClass> classes;
  for (auto& [part, items] : parts) {
    std::stable_sort(items.begin(), items.end(),
                     [&](size_t a, size_t b) { return plan.items[a].part.layer < plan.items[b].part.layer; });
    const size_t cuts = std::clamp<size_t>(max_classes * items.size() / n_tensors, 1, items.size());
    for (size_t c = 0; c < cuts; ++c) {
      const size_t from = items.size() * c / cuts, to = items.size() * (c + 1) / cuts;
      TensorClass one{
          part, {items.begin() + static_cast<std::ptrdiff_t>(from), items.begin() + static_cast<std::ptrdiff_t>(to)}};
      if (cuts > 1) {
        const int low = plan.items[one.items.front()].part.layer, high = plan.items[one.items.back()].part.layer;
        one.name += " " + std::to_string(low) + (low == high ? "" : "-" + std::to_string(high));
      }
      classes.push_back(std::move(one));
    }
  }
  return classes;
}

Result<std::unique_ptr<models::Model>> load_quantised(const gguf::File& file, const std::map<std::string, DType>& types,
                                                      const Statistics* statistics, const LoadOptions& options) {
  auto source = std::make_unique<ReplacedSource>(file);
  {
    ThreadPool pool(options.n_threads);
    for (const auto& [name, type] : types) {
      const TensorView* tensor = file.find(name);
      if (tensor && tensor->type != type) TRY(source->replace(*tensor, type, statistics, pool));
    }
  }
  return models::Model::load(std::move(source), models::BackendKind::cpu, options);
}

Result<std::vector<double>> probe_classes(const gguf::File& file, const Plan& plan,
                                          const std::vector<TensorClass>& classes,
                                          const std::function<DType(const PlanItem&)>& type_of,
                                          const Statistics* statistics, const Base& base, const LoadOptions& options,
                                          const std::function<void(size_t done)>& progress) {
  std::vector<double> found;
  for (const TensorClass& c : classes) {
    std::map<std::string, DType> types;
    for (const size_t i : c.items) types[std::string(plan.items[i].tensor->name)] = type_of(plan.items[i]);
    TRY_ASSIGN(const auto model, load_quantised(file, types, statistics, options));
    TRY_ASSIGN(const Divergence d, measure_divergence(*model, base, {}));
    found.push_back(d.mean);
    if (progress) progress(found.size());
  }
  return Result<std::vector<double>>{std::move(found)};
}

Result<Windows> own_text(models::Model& model, int context, size_t n_windows, int32_t first_token, uint64_t seed) {
  TRY(model.require_logits());
  Windows windows;
  windows.context = context;
  const auto v = static_cast<size_t>(model.n_vocab());
  std::vector<float> logits(v);
  for (size_t w = 0; w < n_windows; ++w) {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
    int32_t token = first_token;
    for (int p = 0; p < context; ++p) {
      windows.tokens.push_back(token);
      Batch batch;
      TRY_ASSIGN(const Slice slice, sequence.begin(1));
      batch.slices.push_back(slice);
      batch.tokens = {token};
      batch.logit_rows = {0};
      TRY(model.executable().run(batch, {.logits = logits.data()}));
      TRY(sequence.commit(1));
      token = drawn_token(logits, {seed, static_cast<uint32_t>(w), static_cast<uint64_t>(p)});
    }
  }
  return Result<Windows>{std::move(windows)};
}

}  // namespace chimere::quantizer
