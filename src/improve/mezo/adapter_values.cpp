#include "improve/mezo/adapter_values.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/hash.h"
#include "base/philox.h"
#include "gguf/writer.h"
#include "models/adapter_file.h"

namespace chimere::improve {
namespace {

constexpr int kMaxRank = 256;

// Uniform with variance 1 / width, of (seed, matrix): the same whatever else is trained.
std::vector<float> drawn(uint64_t seed, const std::string& name, size_t n, size_t width) {
  std::vector<float> values(n);
  const uint64_t key = hash64(name, hash_mix(seed));
  const float spread = std::sqrt(3.0f / static_cast<float>(width));
  for (size_t i = 0; i < n; i += 4) {
    const PhiloxWords words = philox(key, 0, i / 4);
    for (size_t j = 0; j < 4 && i + j < n; ++j) {
      values[i + j] = spread * (static_cast<float>(words[j] >> 8) * 0x1p-23f - 1.0f);
    }
  }
  return values;
}

Result<std::vector<bool>> matching(const Program& program, const std::string& targets) {
  const std::vector<bool> adaptable = adaptable_matrices(program);
  std::vector<bool> chosen(adaptable.size(), false);
  bool any = false;
  try {
    const std::regex pattern(targets);
    for (size_t i = 0; i < program.trunk_matrices().size(); ++i) {
      chosen[i] = adaptable[i] && std::regex_search(adapted_name(program, static_cast<MatrixId>(i)), pattern);
      any |= chosen[i];
    }
  } catch (const std::regex_error& e) {
    return Error{Code::invalid_argument, "targets '" + targets + "': not a regular expression: " + e.what()};
  }
  if (!any) {
    return Error{Code::invalid_argument,
                 "targets '" + targets + "': the model has no matrix of such a name that adapters can change"};
  }
  return Result<std::vector<bool>>{std::move(chosen)};
}

}  // namespace

void AdapterValues::fill(std::span<const float> from, Adapter& to) const {
  for (const TrainedPart& part : parts) {
    LowRank& change = to.by_matrix[static_cast<size_t>(part.matrix)];
    std::copy_n(from.begin() + static_cast<int64_t>(part.first), part.n, (part.is_b ? change.b : change.a).begin());
  }
}

Result<AdapterValues> begin_values(models::Model& model, const TrainOptions& options, const std::string& targets,
                                   bool train_a, bool train_b) {
  if (options.rank < 1 || options.rank > kMaxRank) {
    return Error{Code::invalid_argument,
                 "rank: expected 1 to " + std::to_string(kMaxRank) + ", found " + std::to_string(options.rank)};
  }
  const Program& program = model.executable().program();
  TRY_ASSIGN(const std::vector<bool> chosen, matching(program, targets));
  AdapterValues made;
  if (options.start.empty()) {
    made.adapter = std::make_shared<Adapter>();
    made.adapter->by_matrix.resize(program.matrices.size());
  } else {
    TRY_ASSIGN(const gguf::File file, gguf::File::open(options.start));
    TRY_ASSIGN(made.adapter, models::read_adapter(file, "start", program, model.architecture()));
  }
  made.adapter->name = "learning";
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    const auto in = program.matrices[i].ne[0], out = program.matrices[i].ne[1];
    LowRank& change = made.adapter->by_matrix[i];
    if (change.rank == 0) {
      change.rank = options.rank;
      change.a = drawn(options.seed, adapted_name(program, static_cast<MatrixId>(i)), in * options.rank, in);
      change.b.assign(out * options.rank, 0.0f);
    }
    // What is stored is B times alpha / rank: a step of B is that much of one in the stored values.
    const float scale = options.alpha / static_cast<float>(options.rank);
    const auto add = [&](bool is_b) {
      const std::vector<float>& from = is_b ? change.b : change.a;
      made.parts.push_back({static_cast<MatrixId>(i), is_b, made.values.size(), from.size(),
                            is_b ? scale : 1.0f / std::sqrt(static_cast<float>(in))});
      made.values.insert(made.values.end(), from.begin(), from.end());
    };
    if (train_a) add(false);
    if (train_b) add(true);
  }
  return Result<AdapterValues>{std::move(made)};
}

Status hold(models::Model& model, Adapter& adapter) {
  if (!model.executable().has_adapters()) {
    return Error{Code::unsupported, "this backend runs the model without adapters"};
  }
  TRY_ASSIGN(adapter.held, model.executable().hold_adapter(adapter));
  return Ok{};
}

Status write_adapter(const Adapter& adapter, models::Model& model, const std::string& path) {
  const Program& program = model.executable().program();
  gguf::Writer writer;
  writer.metadata().set_string("general.type", "adapter");
  writer.metadata().set_string("general.architecture", model.architecture());
  writer.metadata().set_string("general.name", adapter.name);
  writer.metadata().set_string("adapter.type", "lora");
  int rank = 0;
  bool is_same = true;
  for (const LowRank& change : adapter.by_matrix) {
    if (change.rank == 0) continue;
    is_same &= rank == 0 || rank == change.rank;
    rank = change.rank;
  }
  // The values have their scale already: alpha equal to the rank, or none, says so.
  writer.metadata().set_float("adapter.lora.alpha", is_same ? rank : 0);
  std::vector<std::vector<float>> turned;
  turned.reserve(adapter.by_matrix.size());
  for (size_t i = 0; i < adapter.by_matrix.size(); ++i) {
    const LowRank& change = adapter.by_matrix[i];
    if (change.rank == 0) continue;
    const std::string name = adapted_name(program, static_cast<MatrixId>(i));
    const auto in = program.matrices[i].ne[0], out = program.matrices[i].ne[1];
    const auto r = static_cast<uint64_t>(change.rank);
    std::vector<float>& b = turned.emplace_back(change.b.size());
    for (uint64_t k = 0; k < r; ++k) {
      for (uint64_t o = 0; o < out; ++o) b[o * r + k] = change.b[k * out + o];
    }
    TRY(writer.add_tensor(name + ".lora_a", DType::F32, {in, r, 1, 1}, std::as_bytes(std::span(change.a))));
    TRY(writer.add_tensor(name + ".lora_b", DType::F32, {r, out, 1, 1}, std::as_bytes(std::span(b))));
  }
  return writer.write_file(path);
}

}  // namespace chimere::improve
