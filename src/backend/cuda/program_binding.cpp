// program_binding.cpp  Packing a program's constants and bringing them to the device.
#include "backend/cuda/program_binding.h"

#include <string>

#include "backend/cuda/mapped_experts.h"
#include "backend/cuda/runtime/upload.h"
#include "backend/cuda/weights/pack.h"
#include "base/thread_pool.h"
#include "tensor/iq_grids.h"

namespace chimere::cuda {

ProgramBinding::ProgramBinding(const Program& program, const HostedLayers& hosted, PackForm form)
    : layers_(hosted),
      form_(form),
      hosted_(program.matrices.size(), kNone),
      ram_layers_(program, hosted.n_brought, hosted.table_in_ram, form) {
  for (const Op& op : program.ops) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    if (!moe || static_cast<int>(mixtures_.size()) == hosted.n_hosted) continue;
    for (const MatrixId id : {moe->gate, moe->up, moe->down}) {
      if (id != kNone) hosted_[id] = static_cast<int>(mixtures_.size());
    }
    mixtures_.push_back(moe);
  }
  if (hosted.card_reads) {
    const MappedSizes mapped(program, mixtures_, form, hosted.n_slots);
    mapped_bytes_ = mapped.card();
    mapped_taken_ = mapped.taken();
    slot_bytes_ = mapped.slots;
  }
  place(program, reinterpret_cast<std::byte*>(DeviceArena::kAlign));
}

ProgramBinding::~ProgramBinding() = default;

Weight ProgramBinding::prompt_weight(MatrixId id) const {
  Weight weight = weight_or_none(id);
  if (mapped_ && weight.places) weight.places = mapped_->staged_places(id);
  return weight;
}

uint32_t* ProgramBinding::uses(const op::MoeFfn& mixture) const {
  return mapped_ && is_in_ram(mixture.up) ? mapped_->uses(hosted_[mixture.up]) : nullptr;
}

void ProgramBinding::place(const Program& program, std::byte* base) {
  // As a number: what is only measured points nowhere.
  const auto begin = reinterpret_cast<uintptr_t>(base);
  uintptr_t at = begin;
  const auto take = [&at](uint64_t bytes) {
    const auto piece = reinterpret_cast<std::byte*>(at);
    at += DeviceArena::padded(bytes);
    return piece;
  };
  weights_.clear();
  vectors_.clear();
  frequencies_.clear();
  grids_ = take(sizeof(IqGrids));
  for (const std::vector<float>& v : program.vectors) {
    vectors_.push_back(reinterpret_cast<const float*>(take(v.size() * sizeof(float))));
  }
  for (const Rope& rope : program.ropes) {
    frequencies_.push_back(reinterpret_cast<const float*>(take(rope.inv_freq.size() * sizeof(float))));
  }
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    const TensorView& m = program.matrices[i];
    const auto id = static_cast<MatrixId>(i);
    const bool is_mapped = is_expert_in_ram(id) && layers_.card_reads;
    const void* data = is_in_ram(id) ? nullptr : take(packed_bytes(m, form_));
    if (is_mapped) data = mapped_ ? static_cast<const void*>(mapped_->data(id)) : base;
    if (ram_layers_.has(id)) {
      const bool is_table = id == ram_layers_.table();
      data = !bringer_ ? base : is_table ? bringer_->table() : bringer_->places() + ram_layers_.card_offset(id);
    }
    weights_.push_back(packed_weight(m, data, reinterpret_cast<const IqGrids*>(grids_), form_));
    if (is_mapped) {
      weights_.back().places = mapped_ ? mapped_->places(id) : reinterpret_cast<const uint8_t* const*>(base);
    }
  }
  bytes_ = at - begin;
}

Status ProgramBinding::upload(const Program& program, Ledger& ledger, const LoadOptions& options) {
  TRY_ASSIGN(memory_, DeviceBuffer<std::byte>::create(ledger, Purpose::weights, bytes_));
  uint64_t total = 0;
  for (size_t i = 0; i < program.matrices.size(); ++i)
    total += is_in_ram(static_cast<MatrixId>(i)) ? 0 : packed_bytes(program.matrices[i], form_);
  const uint64_t mapped = layers_.card_reads ? MappedSizes(program, mixtures_, form_, layers_.n_slots).ram : 0;
  const uint64_t all = mapped + ram_layers_.ram_bytes() + total;
  // One after another, each with what was done before it.
  const auto after = [&](uint64_t before) -> LoadProgress {
    if (!options.progress) return {};
    return [&options, before, all](uint64_t done, uint64_t) { options.progress(before + done, all); };
  };
  LoadOptions first = options;
  if (layers_.card_reads) {
    first.progress = after(0);
    TRY_ASSIGN(mapped_, MappedExperts::create(program, mixtures_, form_, layers_.n_slots, ledger, first));
  }
  if (ram_layers_.ram_bytes() > 0) {
    first.progress = after(mapped);
    TRY_ASSIGN(bringer_, LayerBringer::create(program, ram_layers_, form_, ledger, first));
  }
  place(program, memory_.data());

  TRY_ASSIGN(Uploader uploader, Uploader::create(total, after(all - total)));
  ThreadPool pool(options.n_threads);
  for (size_t i = 0; i < program.matrices.size(); ++i) {
    if (is_in_ram(static_cast<MatrixId>(i))) continue;
    const TensorView& tensor = program.matrices[i];
    const uint64_t row_bytes = weights_[i].row_bytes;
    Status taken = uploader.upload(
        const_cast<uint8_t*>(weights_[i].data), packed_bytes(tensor, form_), row_bytes,
        [&](std::byte* to, uint64_t offset, uint64_t bytes) {
          const uint64_t first = offset / row_bytes;
          constexpr int64_t kGrain = 16;
          pool.run([&](Team& team) {
            team.parallel_for(static_cast<int64_t>(bytes / row_bytes), kGrain, [&](int64_t begin, int64_t end) {
              pack_rows(tensor, first + begin, end - begin, to + begin * row_bytes, form_);
            });
          });
        });
    if (!taken) {
      taken.error().message = "tensor '" + std::string(tensor.name) + "': " + taken.error().message;
      return taken;
    }
    if (options.matrix_taken) options.matrix_taken(tensor);
  }

  TRY_ASSIGN(Stream stream, Stream::create());
  TRY(stream.copy(grids_, &kIqGrids, sizeof(IqGrids)));
  const auto copy = [&stream](const float* to, const std::vector<float>& from) {
    return stream.copy(const_cast<float*>(to), from.data(), from.size() * sizeof(float));
  };
  for (size_t i = 0; i < vectors_.size(); ++i) TRY(copy(vectors_[i], program.vectors[i]));
  for (size_t i = 0; i < frequencies_.size(); ++i) TRY(copy(frequencies_[i], program.ropes[i].inv_freq));
  TRY(stream.synchronize());
  return uploader.finish();
}

}  // namespace chimere::cuda
