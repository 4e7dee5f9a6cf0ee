#include "models/adapter_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/hash.h"
#include "gguf/value.h"
#include "models/model.h"
#include "tensor/dequantize.h"

namespace chimere::models {
namespace {

constexpr uint64_t kMaxRank = 4096;

struct Pair {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
};

Error wrong(const std::string& what) { return Error{Code::corrupt, what}; }

// Of a value that is no number, every answer with the adapter would be nonsense.
Result<std::vector<float>> values(const TensorView& tensor) {
  std::vector<float> out(tensor.elems());
  for (uint64_t r = 0; r < tensor.rows(); ++r) {
    dequantize_row(tensor.type, tensor.row(r), out.data() + r * tensor.ne[0], static_cast<int64_t>(tensor.ne[0]));
  }
  const auto bad = std::find_if(out.begin(), out.end(), [](float v) { return !std::isfinite(v); });
  if (bad == out.end()) return Result<std::vector<float>>{std::move(out)};
  return wrong("tensor " + gguf::quoted(tensor.name) + ": expected finite numbers, found " + std::to_string(*bad) +
               " at " + std::to_string(bad - out.begin()));
}

Result<std::map<std::string, Pair, std::less<>>> pair_up(const gguf::File& file) {
  std::map<std::string, Pair, std::less<>> pairs;
  for (const TensorView& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    const bool is_a = name.ends_with(".lora_a"), is_b = name.ends_with(".lora_b");
    if (!is_a && !is_b)
      return wrong("tensor " + gguf::quoted(name) + ": expected names that end in .lora_a or .lora_b");
    Pair& pair = pairs[std::string(name.substr(0, name.size() - 7))];
    (is_a ? pair.a : pair.b) = &tensor;
  }
  for (const auto& [name, pair] : pairs) {
    if (!pair.a || !pair.b)
      return wrong("tensor " + gguf::quoted(name + (pair.a ? ".lora_b" : ".lora_a")) + " is missing");
  }
  if (pairs.empty()) return wrong("the adapter has no tensors");
  return Result<std::map<std::string, Pair, std::less<>>>{std::move(pairs)};
}

Status check_header(const gguf::Metadata& m, const std::string& architecture) {
  const auto expect = [&](const char* key, const std::string& expected) -> Status {
    TRY_ASSIGN(const std::string_view found, m.get_string(key));
    if (found == expected) return Ok{};
    return Error{Code::unsupported, std::string(key) + ": expected '" + expected + "', found " + gguf::quoted(found)};
  };
  TRY(expect("general.type", "adapter"));
  TRY(expect("adapter.type", "lora"));
  TRY(expect("general.architecture", architecture));
  if (m.contains("adapter.alora.invocation_tokens")) {
    return Error{Code::unsupported, "adapter.alora.invocation_tokens: adapters that start in the middle of a prompt"};
  }
  return Ok{};
}

Result<LowRank> read_change(const std::string& name, const Pair& pair, const TensorView& matrix, double alpha) {
  const uint64_t in = matrix.ne[0], out = matrix.ne[1], rank = pair.a->ne[1];
  const bool fits = matrix.ne[2] == 1 && pair.a->ne == Shape{in, rank, 1, 1} && pair.b->ne == Shape{rank, out, 1, 1};
  if (!fits || rank > kMaxRank) {
    return wrong("tensor " + gguf::quoted(name) + ": lora_a " + to_string(pair.a->ne) + " and lora_b " +
                 to_string(pair.b->ne) + " do not fit the matrix " + to_string(matrix.ne));
  }
  LowRank change;
  change.rank = static_cast<int>(rank);
  TRY_ASSIGN(change.a, values(*pair.a));
  TRY_ASSIGN(const std::vector<float> b, values(*pair.b));  // [out][rank]
  const double factor = alpha != 0 ? alpha / static_cast<double>(rank) : 1.0;
  change.b.resize(b.size());
  for (uint64_t o = 0; o < out; ++o) {
    for (uint64_t r = 0; r < rank; ++r) change.b[r * out + o] = static_cast<float>(factor * b[o * rank + r]);
  }
  return Result<LowRank>{std::move(change)};
}

}  // namespace

Result<std::shared_ptr<Adapter>> read_adapter(const gguf::File& file, std::string name, const Program& program,
                                              const std::string& architecture) {
  TRY(check_header(file.metadata(), architecture));
  TRY_ASSIGN(const double alpha, file.metadata().get_float_or("adapter.lora.alpha", 0.0));
  TRY_ASSIGN(const auto pairs, pair_up(file));
  const std::vector<bool> adaptable = adaptable_matrices(program);
  auto adapter = std::make_shared<Adapter>();
  adapter->name = std::move(name);
  adapter->by_matrix.resize(program.matrices.size());
  // Of every value: adapters of one shape must not be taken for each other.
  uint64_t h = hash64("adapter");
  size_t n_found = 0;
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    if (!adaptable[i]) continue;
    const auto pair = pairs.find(adapted_name(program, static_cast<MatrixId>(i)));
    if (pair == pairs.end()) continue;
    TRY_ASSIGN(adapter->by_matrix[i], read_change(pair->first, pair->second, program.matrices[i], alpha));
    const LowRank& change = adapter->by_matrix[i];
    h = hash64(std::as_bytes(std::span(change.b)), hash64(std::as_bytes(std::span(change.a)), hash64(pair->first, h)));
    ++n_found;
  }
  if (n_found != pairs.size()) {
    for (const auto& [tensor, pair] : pairs) {
      bool found = false;
      for (size_t i = 0; i < program.matrices.size(); ++i) {
        found |= adaptable[i] && adapted_name(program, static_cast<MatrixId>(i)) == tensor;
      }
      if (!found) {
        return Error{Code::unsupported, "tensor " + gguf::quoted(tensor) +
                                            ": the model has no such matrix, or it is one that adapters cannot change "
                                            "(embedding, experts, router)"};
      }
    }
  }
  adapter->fingerprint = h;
  return Result<std::shared_ptr<Adapter>>{std::move(adapter)};
}

Result<std::shared_ptr<const Adapter>> load_adapter(const std::string& path, std::string name, Model& model) {
  Executable& executable = model.executable();
  if (!executable.has_adapters()) {
    return Error{Code::unsupported, path + ": this backend runs the model without adapters"};
  }
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  const auto read = [&]() -> Result<std::shared_ptr<const Adapter>> {
    TRY_ASSIGN(auto adapter, read_adapter(file, std::move(name), executable.program(), model.architecture()));
    TRY_ASSIGN(adapter->held, executable.hold_adapter(*adapter));
    return std::shared_ptr<const Adapter>(std::move(adapter));
  };
  auto adapter = read();
  if (!adapter) adapter.error().message = path + ": " + adapter.error().message;
  return adapter;
}

}  // namespace chimere::models
