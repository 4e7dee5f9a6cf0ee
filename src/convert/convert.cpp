#include "convert/convert.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "convert/families.h"
#include "convert/target_stream.h"
#include "convert/tokenizer_metadata.h"
#include "gguf/writer.h"
#include "models/dflash.h"
#include "models/registry.h"

namespace chimere::convert {
namespace {

namespace fs = std::filesystem;

// The value of general.file_type that other programs print.
int64_t file_type(DType type) {
  switch (type) {
    case DType::F32: return 0;
    case DType::F16: return 1;
    case DType::Q8_0: return 7;
    default: return 32;  // BF16
  }
}

// The file as the model's loader would see it: shapes, metadata and computed values; weights are zeros.
class PlannedFile : public models::WeightSource {
 public:
  PlannedFile(const Recipe& recipe, DType type) : metadata_(recipe.metadata()) {
    uint64_t largest = 1;
    for (const Target& t : recipe.targets()) {
      const TensorView view{t.name, stored_type(t, type), t.ne, nullptr};
      largest = std::max(largest, view.size_bytes());
      views_[t.name] = view;
    }
    // Fresh zero pages, of which the loader touches those of vectors alone: the rest never takes memory.
    zeros_.reset(static_cast<std::byte*>(std::calloc(largest, 1)));
    for (const Target& t : recipe.targets()) {
      const auto* values = reinterpret_cast<const std::byte*>(t.values.data());
      views_[t.name].data = t.values.empty() ? zeros_.get() : values;
    }
  }
  bool has_memory() const { return zeros_ != nullptr; }
  const gguf::Metadata& metadata() const override { return metadata_; }
  const TensorView* find(std::string_view name, const Shape&, bool) override {
    const auto found = views_.find(name);
    return found == views_.end() ? nullptr : &found->second;
  }
  void taken(const TensorView&) override {}

 private:
  const gguf::Metadata& metadata_;
  std::map<std::string, TensorView, std::less<>> views_;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> zeros_;
};

// Sentence encoders say in a folder of their own how token vectors become one.
Status add_pooling(const std::string& folder, Recipe& recipe) {
  if (recipe.arch() != "bert" || recipe.metadata().contains("bert.pooling_type")) return Ok{};
  int64_t pooling = 1;  // the mean
  auto config = HfConfig::open(folder + "/1_Pooling/config.json");
  if (config) {
    TRY_ASSIGN(const auto first, config->find_bool("pooling_mode_cls_token"));
    TRY_ASSIGN(const auto last, config->find_bool("pooling_mode_lasttoken"));
    if (first.value_or(false)) pooling = 2;
    if (last.value_or(false)) pooling = 3;
  } else if (config.error().code != Code::not_found) {
    return config.error();
  }
  recipe.set_int("pooling_type", pooling);
  return Ok{};
}

DType type_that_holds(const Recipe& recipe) {
  bool f16 = false, bf16 = false, wide = false;
  for (const Target& target : recipe.targets()) {
    if (target.storage != Storage::matrix || target.sources.empty()) continue;
    const StoredType stored = target.sources.front()->type;
    f16 |= stored == StoredType::f16;
    bf16 |= stored == StoredType::bf16;
    wide |= stored == StoredType::f32 || stored == StoredType::f64;
  }
  if (wide || (f16 && bf16)) return DType::F32;  // neither half holds the other
  return f16 ? DType::F16 : DType::BF16;
}

Status add_metadata(const ConvertOptions& options, DType type, Recipe& recipe) {
  gguf::Metadata& m = recipe.metadata();
  std::string name = options.name;
  if (name.empty()) name = fs::path(options.folder).lexically_normal().filename().string();
  if (name.empty()) name = fs::path(options.folder).lexically_normal().parent_path().filename().string();
  m.set_string("general.name", name);
  m.set_int("general.file_type", gguf::ValueType::u32, file_type(type));
  m.set_int("general.quantization_version", gguf::ValueType::u32, 2);
  if (recipe.arch() == "dflash") return Ok{};
  uint64_t n_vocab = 0;
  for (const Target& t : recipe.targets()) {
    if (t.name == "token_embd.weight") n_vocab = t.ne[1];
  }
  TRY_ASSIGN(const TokenizerFiles files, read_tokenizer_files(options.folder));
  TRY(add_tokenizer(files, n_vocab, m));
  return add_pooling(options.folder, recipe);
}

}  // namespace

Result<ConvertReport> convert(const ConvertOptions& options, const std::function<bool(uint64_t, uint64_t)>& progress) {
  TRY_ASSIGN(const HfConfig config, HfConfig::open(options.folder + "/config.json"));
  TRY_ASSIGN(const Family* family, find_family(config));
  TRY_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(options.folder, config));
  Recipe recipe(checkpoint, config, std::string(family->architecture));
  family->fill(recipe);
  TRY(recipe.status());
  const DType wanted = options.type.value_or(type_that_holds(recipe));
  TRY(add_metadata(options, wanted, recipe));
  TRY(recipe.status());
  for (const Target& target : recipe.targets()) TRY(check_target(target));
  gguf::Writer writer;
  writer.metadata() = recipe.metadata();
  for (const Target& target : recipe.targets()) {
    const DType type = stored_type(target, wanted);
    TRY(writer.add_tensor(target.name, type, target.ne, [&checkpoint, &target, type](const gguf::Writer::Sink& sink) {
      return stream_target(checkpoint, target, type, sink);
    }));
  }
  PlannedFile planned(recipe, wanted);
  if (!planned.has_memory()) return Error{Code::exhausted, "no memory to check the model's tensors"};
  if (recipe.arch() == "dflash") {
    TRY(models::check_drafter(planned));
  } else {
    TRY_ASSIGN([[maybe_unused]] const Program program, models::build_program(planned));
  }

  std::string out = options.out;
  if (options.named_by_content) {
    TRY_ASSIGN(const uint64_t identity, writer.identity(checkpoint.identity()));
    char number[24];
    std::snprintf(number, sizeof(number), "-%016" PRIx64 ".gguf", identity);
    out += number;
  }
  std::error_code code;
  if (!options.named_by_content || !fs::exists(out, code)) {
    TRY(writer.write_file_in_runs(out, checkpoint.identity(), progress));
  }
  ConvertReport report{out, recipe.arch(), recipe.targets().size(), 0, recipe.notes(), recipe.unused()};
  report.n_bytes = fs::file_size(out, code);
  return Result<ConvertReport>{std::move(report)};
}

}  // namespace chimere::convert
