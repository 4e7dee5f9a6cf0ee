#include "adapters.h"

#include <cmath>
#include <cstdlib>
#include <deque>
#include <set>
#include <vector>

#include "base/hash.h"
#include "gguf/writer.h"
#include "models/adapter_file.h"
#include "models/registry.h"

namespace chimere {
namespace {

std::vector<float> random_values(uint64_t seed, uint64_t n, uint64_t spread_over) {
  const float most = 0.5f / std::sqrt(static_cast<float>(spread_over));
  std::vector<float> values;
  uint64_t h = seed;
  for (uint64_t i = 0; i < n; ++i) {
    h = hash_mix(h + 0x9e3779b97f4a7c15ULL);
    values.push_back((static_cast<float>(h % 2001) / 1000.0f - 1.0f) * most);
  }
  return values;
}

}  // namespace

Status write_random_adapter(const std::string& model_path, int rank, uint64_t seed, const std::string& out) {
  if (rank < 1 || rank > 4096) {
    return Error{Code::invalid_argument, "--rank: expected 1 to 4096, found " + std::to_string(rank)};
  }
  TRY_ASSIGN(const gguf::File file, gguf::File::open(model_path));
  models::FileSource source(file);
  TRY_ASSIGN(const Program program, models::build_program(source));
  TRY_ASSIGN(const std::string_view architecture, file.metadata().get_string("general.architecture"));
  gguf::Writer writer;
  writer.metadata().set_string("general.type", "adapter");
  writer.metadata().set_string("general.architecture", std::string(architecture));
  writer.metadata().set_string("adapter.type", "lora");
  const std::vector<bool> can = adaptable_matrices(program);
  const auto n_ranks = static_cast<uint64_t>(rank);
  std::deque<std::vector<float>> kept;  // until they are written
  std::set<std::string> done;
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    const TensorView& matrix = program.matrices[i];
    // A head that is tied to the embedding has the embedding's name in the file, and its own in adapters.
    const std::string name(matrix.name == "token_embd.weight" ? "output.weight" : matrix.name);
    if (!can[i] || !done.insert(name).second) continue;
    const auto add = [&](const char* part, const Shape& shape, uint64_t spread_over) -> Status {
      kept.push_back(random_values(hash64(name + part, seed), shape[0] * shape[1], spread_over));
      return writer.add_tensor(name + part, DType::F32, shape, std::as_bytes(std::span(kept.back())));
    };
    TRY(add(".lora_a", {matrix.ne[0], n_ranks, 1, 1}, matrix.ne[0]));
    TRY(add(".lora_b", {n_ranks, matrix.ne[1], 1, 1}, n_ranks));
  }
  return writer.write_file(out);
}

Result<AdapterSet> adapter_argument(const std::string& text, models::Model& model) {
  AdapterSet set;
  if (text.empty()) return Result<AdapterSet>{std::move(set)};
  const size_t equals = text.rfind('=');
  AdapterSet::Use use;
  if (equals != std::string::npos) {
    char* end = nullptr;
    use.scale = std::strtof(text.c_str() + equals + 1, &end);
    if (end == text.c_str() + equals + 1 || *end != '\0' || !(std::fabs(use.scale) <= 100.0f)) {
      return Error{Code::invalid_argument, "--adapter: expected FILE or FILE=SCALE, found '" + text + "'"};
    }
  }
  TRY_ASSIGN(use.adapter, models::load_adapter(text.substr(0, equals), "adapter", model));
  set.uses.push_back(std::move(use));
  return Result<AdapterSet>{std::move(set)};
}

}  // namespace chimere
