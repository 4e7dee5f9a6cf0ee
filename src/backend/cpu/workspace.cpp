#include "backend/cpu/workspace.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "tensor/dequantize.h"

namespace chimere::cpu {
namespace {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

uint64_t act_bytes(int64_t rows, int64_t width) { return rows * round_up(width, 32) / 32 * sizeof(ActBlock); }

// Widest of what a visitor returns over the ops of one kind.
template <class OpType, class F>
int64_t widest(const Program& program, F&& width) {
  int64_t most = 0;
  for (const Op& op : program.ops) {
    if (const auto* o = std::get_if<OpType>(&op)) most = std::max<int64_t>(most, width(*o));
  }
  return most;
}

}  // namespace

Result<PackedMatrix> pack_matrix(const TensorView& tensor, const ParallelFor& parallel) {
  std::vector<float> values;
  TensorView packable = tensor;
  if (!PackedMatrix::supports(tensor.type)) {
    values.resize(tensor.elems());
    for (uint64_t r = 0; r < tensor.rows(); ++r) {
      dequantize_row(tensor.type, tensor.row(r), values.data() + r * tensor.ne[0], static_cast<int64_t>(tensor.ne[0]));
    }
    packable.type = DType::F32;
    packable.data = reinterpret_cast<const std::byte*>(values.data());
  }
  auto packed = PackedMatrix::pack(packable, parallel);
  if (!packed) packed.error().message = "tensor '" + std::string(tensor.name) + "': " + packed.error().message;
  return packed;
}

Result<PackedMatrix> layout_of_matrix(const TensorView& tensor) {
  TensorView packable = tensor;
  if (!PackedMatrix::supports(tensor.type)) packable.type = DType::F32;
  return PackedMatrix::layout_of(packable);
}

void Rows::reserve(int64_t max_rows, int64_t row_width) {
  width = row_width;
  if (width == 0) return;
  floats.resize(max_rows * width);
  acts.reserve(max_rows, width);
}

uint64_t Rows::size_bytes() const {
  return width == 0 ? 0 : floats.size() * sizeof(float) + act_bytes(static_cast<int64_t>(floats.size()) / width, width);
}

void Routing::reserve(int64_t max_rows, int n_experts, int n_used) {
  logits.resize(max_rows * round_up(n_experts, 16));
  keys.resize(max_rows * n_experts);
  chosen.resize(max_rows * n_used);
  weight.resize(max_rows * n_used);
  slot.resize(max_rows * n_used);
  token_of_slot.resize(max_rows * n_used);
  slot_rows.resize(max_rows * n_used);
  std::iota(slot_rows.begin(), slot_rows.end(), 0);
  shared_gate.resize(max_rows);
  expert_begin.resize(n_experts + 1);
  active.reserve(n_experts);
}

// A counting sort.
void Routing::group(int n_rows, int n_experts, int n_used) {
  std::fill(expert_begin.begin(), expert_begin.end(), 0);
  for (int i = 0; i < n_rows * n_used; ++i) {
    if (chosen[i] != kNoExpert) ++expert_begin[chosen[i] + 1];
  }
  active.clear();
  for (int e = 0; e < n_experts; ++e) {
    if (expert_begin[e + 1] > 0) active.push_back(e);
    expert_begin[e + 1] += expert_begin[e];
  }
  const int32_t n_slots = expert_begin[n_experts];
  for (int i = n_rows * n_used - 1; i >= 0; --i) {
    if (chosen[i] == kNoExpert) continue;
    // Filled from the back: expert_begin[e + 1] walks down to the first slot of e and becomes its begin.
    const int32_t s = --expert_begin[chosen[i] + 1];
    slot[i] = s;
    token_of_slot[s] = i / n_used;
  }
  // Every begin moved one place up; the end of the last expert is the number of slots.
  for (int e = 0; e < n_experts; ++e) expert_begin[e] = expert_begin[e + 1];
  expert_begin[n_experts] = n_slots;
}

void Workspace::reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads) {
  const auto& m = program.matrices;
  auto rows_of = [&](MatrixId id) { return id == kNone ? int64_t{0} : static_cast<int64_t>(m[id].ne[1]); };
  const int64_t dense_ff = widest<op::DenseFfn>(program, [&](const auto& o) { return rows_of(o.up); });
  const int64_t expert_ff = widest<op::MoeFfn>(program, [&](const auto& o) { return rows_of(o.up); });
  const int64_t shared_ff = widest<op::MoeFfn>(program, [&](const auto& o) { return rows_of(o.shared_up); });
  const int64_t latent_width = widest<op::MoeFfn>(program, [&](const auto& o) { return rows_of(o.latent_down); });
  const int64_t n_used = widest<op::MoeFfn>(program, [](const auto& o) { return o.n_used; });
  const int64_t n_experts = widest<op::MoeFfn>(program, [](const auto& o) { return o.n_experts; });
  const int64_t slots = std::max<int64_t>(max_rows, max_rows * n_used);

  for (const Op& op : program.ops) {
    std::visit(
        [&](const auto& o) {
          // The ops with a norm that is not their own business; the head has rows of its own.
          if constexpr (requires {
                          o.x;
                          o.norm;
                        } &&
                        !std::is_same_v<std::decay_t<decltype(o)>, op::LmHead>) {
            const int64_t width = program.buffers[o.x].width;
            for (const Rows& r : normed_rows) {
              if (r.width == width) return;
            }
            normed_rows.emplace_back().reserve(max_rows, width);
          }
        },
        op);
  }
  head.reserve(max_rows, program.d_model);
  hidden.reserve(n_used > 0 ? slots : max_rows, std::max(dense_ff, expert_ff));
  shared_hidden.reserve(max_rows, shared_ff);
  latent.reserve(max_rows, latent_width);
  latent_sum.reserve(max_rows, latent_width);
  product.resize(slots * std::max<int64_t>(program.d_model, latent_width));
  gate.resize(std::max(max_rows * dense_ff, slots * expert_ff + max_rows * shared_ff));
  if (shared_ff > 0) shared_product.resize(static_cast<int64_t>(max_rows) * program.d_model);
  if (n_used > 0) routing.reserve(max_rows, static_cast<int>(n_experts), static_cast<int>(n_used));
  buffer_acts.resize(program.buffers.size());
  for (const Op& op : program.ops) {
    const auto* o = std::get_if<op::MatmulAdd>(&op);
    if (!o || buffer_acts[o->x].k() > 0) continue;
    const int64_t width = program.buffers[o->x].width;
    buffer_acts[o->x].reserve(max_rows, width);
    buffer_acts[o->x].bind(nullptr, width, 0, width);
    buffer_acts_bytes += act_bytes(max_rows, width);
  }
  recurrent.reserve(program, layout, max_rows, n_threads);
  attention.reserve(program, layout, max_rows, n_threads);
}

void Workspace::begin(const Program& program, const Batch& batch, const std::vector<float*>& buffers) {
  const int n = batch.n_rows();
  for (Rows& r : normed_rows) r.bind(n);
  head.bind(static_cast<int64_t>(batch.logit_rows.size()));
  for (const Op& op : program.ops) {
    if (const auto* o = std::get_if<op::MatmulAdd>(&op)) {
      const int64_t width = program.buffers[o->x].width;
      buffer_acts[o->x].bind(buffers[o->x], width, n, width);
    }
  }
  attention.begin(program, batch);
}

Rows& Workspace::normed(int64_t width) {
  const auto found =
      std::find_if(normed_rows.begin(), normed_rows.end(), [&](const Rows& r) { return r.width == width; });
  CHECK(found != normed_rows.end());
  return *found;
}

uint64_t Workspace::weight_bytes() const {
  uint64_t bytes = 0;
  for (const auto& m : matrices) bytes += m && m->owns_bytes() ? m->size_bytes() : 0;
  return bytes + (store ? store->ram_bytes() : 0);
}

uint64_t Workspace::scratch_bytes() const {
  uint64_t floats = product.size() + gate.size() + shared_product.size() + routing.logits.size() + routing.keys.size();
  uint64_t bytes = floats * sizeof(float) + buffer_acts_bytes + recurrent.size_bytes() + attention.size_bytes();
  for (const Rows* r : {&head, &hidden, &shared_hidden, &latent, &latent_sum}) bytes += r->size_bytes();
  for (const Rows& r : normed_rows) bytes += r.size_bytes();
  return bytes;
}

}  // namespace chimere::cpu
