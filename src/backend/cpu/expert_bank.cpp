// expert_bank.cpp  A program of experts alone, run mixture by mixture with the CPU backend's own op.
#include "backend/cpu/expert_bank.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace chimere::cpu {
namespace {

// What is left of the mixtures: rows in, rows out, and the experts between them.
Program experts_of(const Program& program, const std::vector<const op::MoeFfn*>& mixtures) {
  Program experts;
  const auto matrix = [&](MatrixId id) {
    if (id == kNone) return kNone;
    experts.matrices.push_back(program.matrices[id]);
    return static_cast<MatrixId>(experts.matrices.size() - 1);
  };
  const auto vector = [&](VectorId id) {
    if (id == kNone) return kNone;
    experts.vectors.push_back(program.vectors[id]);
    return static_cast<VectorId>(experts.vectors.size() - 1);
  };
  for (const op::MoeFfn* mixture : mixtures) {
    const int width = static_cast<int>(program.matrices[mixture->up].ne[0]);
    op::MoeFfn op{};
    op.x = static_cast<BufferId>(experts.buffers.size());
    op.norm = op.router = kNone;
    op.gate = matrix(mixture->gate);
    op.up = matrix(mixture->up);
    op.down = matrix(mixture->down);
    op.gate_bias = vector(mixture->gate_bias);
    op.up_bias = vector(mixture->up_bias);
    op.down_bias = vector(mixture->down_bias);
    op.n_experts = mixture->n_experts;
    op.n_used = mixture->n_used;
    op.activation = mixture->activation;
    experts.buffers.push_back({"experts", width});
    experts.d_model = std::max(experts.d_model, width);
    experts.ops.push_back(op);
  }
  return experts;
}

}  // namespace

ExpertBank::ExpertBank(Program experts, StateLayout layout, const LoadOptions& options)
    : experts_(std::move(experts)),
      layout_(std::move(layout)),
      pool_(options.n_threads),
      buffers_(experts_.buffers.size()) {
  workspace_.exact = options.exact;
}

Result<std::unique_ptr<ExpertBank>> ExpertBank::create(const Program& program,
                                                       const std::vector<const op::MoeFfn*>& mixtures, int max_rows,
                                                       const LoadOptions& options) {
  TRY_ASSIGN(StateLayout layout, StateLayout::create({}, {}, {}));
  std::unique_ptr<ExpertBank> bank(new ExpertBank(experts_of(program, mixtures), std::move(layout), options));
  TRY(bank->take_weights(options));
  bank->workspace_.reserve(bank->experts_, bank->layout_, max_rows, bank->pool_.size());
  return Result<std::unique_ptr<ExpertBank>>{std::move(bank)};
}

Status ExpertBank::take_weights(const LoadOptions& options) {
  uint64_t total = 0, done = 0;
  for (const TensorView& m : experts_.matrices) total += m.size_bytes();
  const ParallelFor parallel = [this](int64_t n, const std::function<void(int64_t, int64_t)>& body) {
    pool_.run([&](Team& team) { team.parallel_for(n, 1, body); });
  };
  std::vector<const op::MoeFfn*> mixtures;
  for (const Op& op : experts_.ops) mixtures.push_back(&std::get<op::MoeFfn>(op));
  std::vector<MatrixId> ids(experts_.matrices.size());
  std::iota(ids.begin(), ids.end(), 0);
  TRY_ASSIGN(const uint64_t slot_bytes, store_ram_bytes(experts_, mixtures, ids, options.ram_bytes));
  if (slot_bytes > 0) {
    TRY_ASSIGN(workspace_.store, ExpertStore::create(experts_, mixtures, slot_bytes, parallel, options));
    for (const MatrixId id : ids) workspace_.matrices.emplace_back(workspace_.store->matrix(id));
    return Ok{};
  }
  for (const TensorView& tensor : experts_.matrices) {
    TRY_ASSIGN(PackedMatrix packed, pack_matrix(tensor, parallel));
    workspace_.matrices.emplace_back(std::move(packed));
    if (options.matrix_taken) options.matrix_taken(tensor);
    done += tensor.size_bytes();
    if (options.progress) options.progress(done, total);
  }
  return Ok{};
}

void ExpertBank::run(int mixture, int n_rows, const float* x, const int32_t* ids, const float* weights, float* out) {
  const auto& op = std::get<op::MoeFfn>(experts_.ops[mixture]);
  const int64_t width = experts_.buffers[op.x].width;
  const size_t n_choices = static_cast<size_t>(n_rows) * op.n_used;
  Routing& routing = workspace_.routing;
  CHECK(n_choices <= routing.chosen.size());
  std::copy_n(ids, n_choices, routing.chosen.data());
  std::copy_n(weights, n_choices, routing.weight.data());
  batch_.tokens.resize(n_rows);
  buffers_[op.x] = out;
  Activations& in = workspace_.normed(width).acts;
  in.bind(x, width, n_rows, width);
  const Context context{experts_, layout_, batch_, buffers_};
  group_choices(context, op, workspace_);
  pool_.run([&](Team& team) {
    team.parallel_for(n_rows, 4, [&](int64_t begin, int64_t end) {
      std::fill(out + begin * width, out + end * width, 0.0f);
      if (!workspace_.exact) in.quantize_rows(begin, end);
    });
    moe_experts(team, context, op, workspace_);
  });
}

}  // namespace chimere::cpu
