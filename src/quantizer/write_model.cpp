#include "quantizer/write_model.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "models/model.h"
#include "quantizer/encode_tensor.h"

namespace chimere::quantizer {
namespace {

// The value of general.file_type that other programs print for a file of mostly this type.
int64_t file_type_of(DType type) {
  switch (type) {
    case DType::F32: return 0;
    case DType::Q4_0: return 2;
    case DType::Q4_1: return 3;
    case DType::Q8_0: return 7;
    case DType::Q5_0: return 8;
    case DType::Q5_1: return 9;
    case DType::Q2_K: return 10;
    case DType::Q3_K: return 12;
    case DType::Q4_K: return 15;
    case DType::Q5_K: return 17;
    case DType::Q6_K: return 18;
    case DType::IQ2_XXS: return 19;
    case DType::IQ2_XS: return 20;
    case DType::IQ3_XXS: return 23;
    case DType::IQ1_S: return 24;
    case DType::IQ4_NL: return 25;
    case DType::IQ3_S: return 26;
    case DType::IQ2_S: return 28;
    case DType::IQ4_XS: return 30;
    case DType::IQ1_M: return 31;
    case DType::BF16: return 32;
    case DType::TQ1_0: return 36;
    case DType::TQ2_0: return 37;
    case DType::MXFP4: return 38;
    default: return 1;  // F16
  }
}

DType type_of_most(const Plan& plan) {
  std::map<DType, uint64_t> elems;
  for (const PlanItem& item : plan.items) elems[item.choice().type] += item.tensor->elems();
  const auto most =
      std::max_element(elems.begin(), elems.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first;
}

gguf::Metadata metadata_for(const gguf::File& file, const Plan& plan, const Statistics* statistics,
                            const Origin& origin) {
  gguf::Metadata m;
  for (const auto& [key, value] : file.metadata().entries()) {
    // One file is written, whatever the source was.
    if (!key.starts_with("split.") && !key.starts_with("quantize.imatrix.")) m.set(key, value);
  }
  m.set_int("general.file_type", gguf::ValueType::u32, file_type_of(type_of_most(plan)));
  m.set_int("general.quantization_version", gguf::ValueType::u32, 2);
  if (statistics) {
    m.set_string("quantize.imatrix.file", origin.statistics_file);
    if (!statistics->datasets.empty()) m.set_string("quantize.imatrix.dataset", statistics->datasets.front());
    m.set_int("quantize.imatrix.entries_count", gguf::ValueType::u32,
              static_cast<int64_t>(statistics->matrices.size()));
    m.set_int("quantize.imatrix.chunks_count", gguf::ValueType::u32,
              static_cast<int64_t>(std::min<uint64_t>(statistics->n_chunks, UINT32_MAX)));
  }
  m.set_string("chimere.quantize.asked", origin.how);
  m.set_float("chimere.quantize.predicted_kld", origin.predicted_loss);
  m.set_int("chimere.quantize.source_fingerprint", gguf::ValueType::u64,
            static_cast<int64_t>(models::fingerprint(file) >> 1));
  return m;
}

// Another version of the encoders must have another one, or a part of an older run would be continued.
uint64_t identity_of(const gguf::File& file, const Statistics* statistics) {
  return hash_mix(hash64("chimere quantize 2", models::fingerprint(file)) ^ hash_of(statistics));
}

}  // namespace

Result<uint64_t> planned_bytes(const gguf::File& file, const Plan& plan, const Statistics* statistics,
                               const Origin& origin) {
  gguf::Writer writer;
  writer.metadata() = metadata_for(file, plan, statistics, origin);
  for (const PlanItem& item : plan.items) {
    TRY(writer.add_tensor(std::string(item.tensor->name), item.choice().type, item.tensor->ne,
                          [](const gguf::Writer::Sink&) -> Status { return Ok{}; }));
  }
  return writer.file_bytes();
}

Status write_model(const gguf::File& file, const Plan& plan, const Statistics* statistics, const Origin& origin,
                   const std::string& out, int n_threads, const gguf::Writer::Progress& progress) {
  ThreadPool pool(n_threads);
  gguf::Writer writer;
  writer.metadata() = metadata_for(file, plan, statistics, origin);
  for (const PlanItem& item : plan.items) {
    const TensorView& tensor = *item.tensor;
    const DType type = item.choice().type;
    TRY(writer.add_tensor(std::string(tensor.name), type, tensor.ne, [&, type](const gguf::Writer::Sink& sink) {
      return stream_encoded(
          tensor, type, statistics, pool, [&] { file.drop_pages(tensor); }, sink);
    }));
  }
  return writer.write_file_in_runs(out, identity_of(file, statistics), progress);
}

}  // namespace chimere::quantizer
