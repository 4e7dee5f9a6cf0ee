// executable.cpp  Runs a program on the CPU: one parallel region per batch, op after op.
#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

#include "backend/cpu/observe.h"
#include "backend/cpu/packed_sizes.h"
#include "backend/cpu/workspace.h"
#include "backend/host_memory.h"
#include "base/thread_pool.h"

namespace chimere::cpu {
namespace {

// One function object of several: std::visit does not compile with one of them missing.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class O>
concept HasState = requires(const O& o) {
  o.recurrent_layer;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(Program program, StateLayout layout, const LoadOptions& options)
      : program_(std::move(program)),
        layout_(std::move(layout)),
        max_rows_(options.max_rows > 0 ? options.max_rows : default_max_rows(program_, options.decode_rows)),
        prefill_rows_(chimere::prefill_rows(max_rows_, options.decode_rows)),
        pool_(options.n_threads) {
    workspace_.exact = options.exact;
    matrix_taken_ = options.matrix_taken;
    observe_ = options.observe;
  }

  Status take_weights(const LoadOptions& options);
  void reserve();

  Status run(const Batch& batch, const Outputs& outputs) override;
  Status replay(float* recurrent, const float* recorded, int n_tokens) override;

  std::optional<ExpertTraffic> expert_traffic() const override {
    return workspace_.store ? std::optional(workspace_.store->traffic()) : std::nullopt;
  }
  bool has_adapters() const override { return true; }
  bool splits_drafts() const override { return true; }
  bool prepare_head_blocks(int) override { return true; }
  const Program& program() const override { return program_; }
  const StateLayout& layout() const override { return layout_; }
  StateMemory& memory() override { return memory_; }
  int max_rows() const override { return max_rows_; }
  int prefill_rows() const override { return prefill_rows_; }
  uint64_t weight_bytes() const override { return workspace_.weight_bytes(); }
  uint64_t matrix_bytes(MatrixId id) const override {
    const auto& packed = workspace_.matrices[id];
    return packed ? packed->size_bytes() : program_.matrices[id].size_bytes();
  }
  uint64_t scratch_bytes() const override {
    uint64_t bytes = workspace_.scratch_bytes();
    for (const AlignedFloats& b : storage_) bytes += b.size() * sizeof(float);
    return bytes;
  }

 private:
  void forget_table_pages(int n_rows);

  Program program_;
  StateLayout layout_;
  HostMemory memory_;
  const int max_rows_;
  const int prefill_rows_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<AlignedFloats> storage_;
  std::vector<float*> buffers_;
  MatrixTaken matrix_taken_;
  InputObserver observe_;
  int rows_looked_up_ = 0;
};

Status CpuExecutable::take_weights(const LoadOptions& options) {
  const std::vector<bool> is_packed = packed_matrices(program_);
  std::vector<MatrixId> packed_ids;
  std::vector<const op::MoeFfn*> mixtures;
  uint64_t total = 0, done = 0;
  for (size_t i = 0; i < program_.matrices.size(); ++i) {
    total += program_.matrices[i].size_bytes();
    if (is_packed[i]) packed_ids.push_back(static_cast<MatrixId>(i));
  }
  for (const Op& op : program_.ops) {
    if (const auto* mixture = std::get_if<op::MoeFfn>(&op)) mixtures.push_back(mixture);
  }

  const ParallelFor parallel = [this](int64_t n, const std::function<void(int64_t, int64_t)>& body) {
    pool_.run([&](Team& team) { team.parallel_for(n, 1, body); });
  };
  workspace_.matrices.resize(program_.matrices.size());
  TRY_ASSIGN(const uint64_t slot_bytes, store_ram_bytes(program_, mixtures, packed_ids, options.ram_bytes));
  if (slot_bytes > 0) {
    LoadOptions here = options;
    if (options.progress) here.progress = [&](uint64_t n, uint64_t) { options.progress(done = n, total); };
    TRY_ASSIGN(workspace_.store, ExpertStore::create(program_, mixtures, slot_bytes, parallel, here));
    workspace_.routed = mixtures;
  }
  // Largest first: the file's pages of a matrix are resident beside its copy, and that costs least while little else
  // is.
  std::vector<size_t> order(program_.matrices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return program_.matrices[a].size_bytes() > program_.matrices[b].size_bytes();
  });
  for (size_t i : order) {
    const TensorView& tensor = program_.matrices[i];
    if (auto stored = workspace_.store ? workspace_.store->matrix(static_cast<MatrixId>(i)) : std::nullopt) {
      workspace_.matrices[i].emplace(std::move(*stored));
      continue;
    }
    if (is_packed[i]) {
      TRY_ASSIGN(PackedMatrix packed, pack_matrix(tensor, parallel));
      workspace_.matrices[i].emplace(std::move(packed));
      if (options.matrix_taken) options.matrix_taken(tensor);
    }
    done += tensor.size_bytes();
    if (options.progress) options.progress(done, total);
  }
  // Rows gathered at load were only needed until here; their names still are.
  for (const auto& gathered : program_.owned) std::vector<std::byte>().swap(gathered->data);
  return Ok{};
}

void CpuExecutable::reserve() {
  for (const Buffer& b : program_.buffers) {
    storage_.emplace_back(static_cast<size_t>(b.width) * max_rows_);
    buffers_.push_back(storage_.back().data());
  }
  workspace_.reserve(program_, layout_, max_rows_, pool_.size());
}

Status CpuExecutable::run(const Batch& batch, const Outputs& outputs) {
  workspace_.begin(program_, batch, buffers_);
  const Context context{program_, layout_, batch, buffers_};
  pool_.run([&](Team& team) {
    Workspace& w = workspace_;
    const Overloaded run_op{
        [&](const op::Embed& o) { embed(team, context, o, w); },
        [&](const op::NormMatmul& o) { norm_matmul(team, context, o, w); },
        [&](const op::MatmulAdd& o) { matmul_add(team, context, o, w); },
        [&](const op::GdnMix& o) { gdn_mix(team, context, o, w.recurrent); },
        [&](const op::Mamba2Mix& o) { mamba2_mix(team, context, o, w.recurrent); },
        [&](const op::CausalConv& o) { causal_conv(team, context, o, w.recurrent); },
        [&](const op::SelectiveScan& o) { selective_scan(team, context, o, w.recurrent); },
        [&](const op::Attention& o) { attention(team, context, o, w.attention); },
        [&](const op::DenseFfn& o) { dense_ffn(team, context, o, w); },
        [&](const op::MoeFfn& o) { moe_ffn(team, context, o, w); },
        [&](const op::LmHead& o) { lm_head(team, context, o, outputs, w); },
        [&](const op::LayerNorm& o) { layer_norm(team, context, o); },
        [&](const op::Gelu& o) { gelu(team, context, o); },
        [&](const op::HiddenOut& o) { hidden_out(team, context, o, outputs); },
        [&](const op::DraftInput& o) { draft_input(team, context, o); },
    };
    for (const Op& op : batch.is_draft_pass() ? program_.draft_pass() : program_.trunk()) {
      std::visit(run_op, op);
      if (!observe_) continue;
      team.each([&](int rank, int) {
        if (rank == 0) show_inputs(context, op, outputs, w, observe_);
      });
    }
  });
  forget_table_pages(batch.n_rows());
  return workspace_.store ? workspace_.store->failure() : Ok{};
}

// Looking up a row of a table in the file maps the pages around it too; left alone, the whole table would become
// resident beside the weights within a few hundred tokens.
void CpuExecutable::forget_table_pages(int n_rows) {
  rows_looked_up_ += n_rows;
  if (rows_looked_up_ < kChunkTokens || !matrix_taken_) return;
  rows_looked_up_ = 0;
  for (const Op& any : program_.ops) {
    const auto* o = std::get_if<op::Embed>(&any);
    if (o && !workspace_.matrices[o->table]) matrix_taken_(program_.matrices[o->table]);
  }
}

Status CpuExecutable::replay(float* recurrent, const float* recorded, int n_tokens) {
  pool_.run([&](Team& team) {
    RecurrentScratch& scratch = workspace_.recurrent;
    const Overloaded replay_op{
        [&](const op::GdnMix& o) { gdn_replay(team, program_, layout_, o, recurrent, recorded, n_tokens, scratch); },
        [&](const op::Mamba2Mix& o) {
          mamba2_replay(team, program_, layout_, o, recurrent, recorded, n_tokens, scratch);
        },
        [&](const op::CausalConv& o) { conv_replay(team, layout_, o, recurrent, recorded, n_tokens, scratch); },
        [&](const op::SelectiveScan& o) {
          scan_replay(team, program_, layout_, o, recurrent, recorded, n_tokens, scratch);
        },
        []<class O>(const O&) { static_assert(!HasState<O>, "an op with a recurrent state has a replay"); },
    };
    for (const Op& op : program_.ops) std::visit(replay_op, op);
  });
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options) {
  TRY_ASSIGN(StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, options.kv));
  auto executable = std::make_unique<CpuExecutable>(std::move(program), std::move(layout), options);
  TRY(executable->take_weights(options));
  executable->reserve();
  return Result<std::unique_ptr<Executable>>{std::move(executable)};
}

}  // namespace chimere::cpu
