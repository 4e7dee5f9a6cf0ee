#include "backend/cuda/lowering.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace chimere::cuda {
namespace {

// Where memory begins while it is only measured.
std::byte* nowhere() { return reinterpret_cast<std::byte*>(DeviceArena::kAlign); }

template <class O>
concept HasState = requires(const O& o) {
  o.recurrent_layer;
};

BoundOpPtr bound(const BindContext& context, const Op& op) {
  const auto bind = [&]<class O>(const O& o) -> BoundOpPtr {
    auto made = bind_op(context, o);
    static_assert(!HasState<O> || std::is_same_v<decltype(made), RecurrentOpPtr>, "such an op has a replay");
    return made;
  };
  return std::visit(bind, op);
}

}  // namespace

Lowering::Lowering(const Program& program, const StateLayout& layout, const ProgramBinding& binding,
                   const DeviceInfo& device, bool exact, int max_rows, int decode_rows)
    : context_{.program = program,
               .layout = layout,
               .constants = binding,
               .device = device,
               .exact = exact,
               .max_rows = max_rows,
               .max_prefill_slices = std::clamp(max_rows / (kDecodeTokens + 1), 1, 64),
               .max_decode_rows = decode_rows,
               .memory = WorkingMemory(program, sizes_, max_rows, decode_rows, nowhere())} {
  bind();
  for (const BoundOpPtr& op : ops_) {
    context_.max_decode_rows = std::min(context_.max_decode_rows, op->max_decode_rows());
  }
  for (const BoundOpPtr& op : ops_) op->measure(context_, sizes_);
  place(nowhere());
  ops_.clear();  // bound to nowhere
}

void Lowering::place(std::byte* base) {
  context_.memory = WorkingMemory(context_.program, sizes_, context_.max_rows, head_rows(), base);
}

void Lowering::bind() {
  for (const Op& op : context_.program.ops) {
    BoundOpPtr next = bound(context_, op);
    if (!ops_.empty()) ops_.back()->leave_norm_to(*next);
    ops_.push_back(std::move(next));
  }
}

Status Lowering::allocate(Ledger& ledger, const Stream& stream, HostExperts* host, const ImposedChoices* imposed) {
  TRY_ASSIGN(memory_, DeviceBuffer<std::byte>::create(ledger, Purpose::scratch, working_bytes()));
  place(memory_.data());
  if (sizes_.moe > 0) TRY(stream.zero(context_.memory.moe, sizes_.moe));
  if (sizes_.arrivals > 0) TRY(stream.zero(context_.memory.arrivals, sizes_.arrivals));
  context_.host = host;
  context_.imposed = imposed;
  bind();
  return Ok{};
}

std::span<const BoundOpPtr> Lowering::ops_of(const PassShape& pass) const {
  const size_t n_trunk = context_.program.trunk().size();
  return pass.drafts ? std::span(ops_).subspan(n_trunk) : std::span(ops_).first(n_trunk);
}

Status Lowering::body(const Stream& stream, const PassShape& pass) const {
  LayerBringer* const bringer = pass.drafts ? nullptr : context_.constants.bringer();
  // Kernels that start before the one ahead of them has ended read their weights at once: none of those that wait for
  // theirs to come may.
  PassShape awaiting = pass;
  awaiting.dependent = false;
  if (bringer && bringer->has_ops()) TRY(bringer->begin(stream));
  for (const BoundOpPtr& op : ops_of(pass)) {
    const auto i = static_cast<size_t>(&op - ops_.data());
    const bool is_brought = bringer && bringer->is_next(i);
    if (is_brought) TRY(bringer->await(stream));
    Status done = op->run(stream, is_brought ? awaiting : pass);
    if (done && is_brought) done = bringer->done_with(stream);
    if (!done) {
      done.error().message = std::string(op_name(context_.program.ops[i])) + ", op " + std::to_string(i) + ", " +
                             std::to_string(pass.batch.n_rows) + " rows: " + done.error().message;
      return done;
    }
  }
  return Ok{};
}

Status Lowering::family(const Stream& stream, const PassShape& pass, Family family) const {
  for (const BoundOpPtr& op : ops_of(pass)) TRY(op->run_family(stream, pass, family));
  return Ok{};
}

Status Lowering::head(const Stream& stream, const PassShape& pass, int first, int n) const {
  for (const BoundOpPtr& op : ops_of(pass)) TRY(op->run_head(stream, pass, first, n));
  return Ok{};
}

Status Lowering::row_hidden(const Stream& stream, const PassShape& pass, int first, int n, float* out) const {
  for (const BoundOpPtr& op : ops_of(pass)) TRY(op->run_row_hidden(stream, first, n, out));
  return Ok{};
}

Status Lowering::replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const {
  for (const BoundOpPtr& op : ops_) TRY(op->replay(stream, recurrent, recorded, n_tokens));
  return Ok{};
}

}  // namespace chimere::cuda
