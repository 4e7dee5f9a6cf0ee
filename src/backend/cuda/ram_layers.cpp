#include "backend/cuda/ram_layers.h"

#include <algorithm>
#include <initializer_list>

#include "base/thread_pool.h"

namespace chimere::cuda {
namespace {

// The matrices of an op, in the order in which it reads them.
std::vector<MatrixId> read_by(const Op& op) {
  std::vector<MatrixId> ids;
  const auto add = [&](std::initializer_list<MatrixId> more) {
    for (const MatrixId id : more) {
      if (id != kNone) ids.push_back(id);
    }
  };
  if (const auto* e = std::get_if<op::Embed>(&op)) {
    add({e->table, e->positions});
  } else if (const auto* p = std::get_if<op::NormMatmul>(&op)) {
    for (const op::Projection& out : p->outs) add({out.weight});
  } else if (const auto* o = std::get_if<op::MatmulAdd>(&op)) {
    add({o->weight});
  } else if (const auto* d = std::get_if<op::DenseFfn>(&op)) {
    add({d->gate, d->up, d->down});
  } else if (const auto* m = std::get_if<op::MoeFfn>(&op)) {
    add({m->router, m->gate, m->up, m->down, m->shared_gate, m->shared_up, m->shared_down, m->latent_down,
         m->latent_up});
  } else if (const auto* h = std::get_if<op::LmHead>(&op)) {
    add({h->weight});
  }
  return ids;
}

bool is_product(const Op& op) {
  return std::holds_alternative<op::NormMatmul>(op) || std::holds_alternative<op::MatmulAdd>(op) ||
         std::holds_alternative<op::DenseFfn>(op);
}

}  // namespace

int n_layers(const Program& program) {
  const size_t n_trunk = program.trunk().size();
  return static_cast<int>(
      std::count_if(program.layer_ends.begin(), program.layer_ends.end(), [&](size_t end) { return end <= n_trunk; }));
}

RamLayers::RamLayers(const Program& program, int n_in_ram, bool with_table, PackForm form) {
  if (n_in_ram == 0 && !with_table) return;
  std::vector<int> n_readers(program.matrices.size(), 0);
  for (const Op& op : program.ops) {
    for (const MatrixId id : read_by(op)) ++n_readers[static_cast<size_t>(id)];
  }
  // What several ops read has no place of one of them.
  const auto is_shared = [&](MatrixId id) { return n_readers[static_cast<size_t>(id)] > 1; };
  places_.assign(program.matrices.size(), kElsewhere);
  if (const auto* embed = program.ops.empty() ? nullptr : std::get_if<op::Embed>(&program.ops.front());
      with_table && embed && !is_shared(embed->table)) {
    table_ = embed->table;
    places_[static_cast<size_t>(table_)] = 0;
    ram_bytes_ += packed_bytes(program.matrices[table_], form);
  }
  const int n_all = n_layers(program);
  size_t begin = 0;
  for (int layer = 0; layer < n_all; ++layer) {
    const size_t end = program.layer_ends[static_cast<size_t>(layer)];
    const bool in_ram = (layer + 1) * n_in_ram / n_all > layer * n_in_ram / n_all;
    for (size_t i = begin; in_ram && i < end; ++i) {
      const std::vector<MatrixId> ids = read_by(program.ops[i]);
      if (!is_product(program.ops[i]) || std::any_of(ids.begin(), ids.end(), is_shared)) continue;
      RamOp op{i, {}, 0};
      for (const MatrixId id : ids) {
        op.pieces.push_back({id, op.bytes});
        op.bytes += DeviceArena::padded(packed_bytes(program.matrices[id], form));
        ram_bytes_ += packed_bytes(program.matrices[id], form);
      }
      uint64_t& place = place_bytes_[ops_.size() % 2];
      place = std::max(place, op.bytes);
      ops_.push_back(std::move(op));
    }
    begin = end;
  }
  for (size_t k = 0; k < ops_.size(); ++k) {
    for (const Piece& piece : ops_[k].pieces) places_[static_cast<size_t>(piece.id)] = place_offset(k) + piece.offset;
  }
}

Result<std::unique_ptr<LayerBringer>> LayerBringer::create(const Program& program, const RamLayers& layers,
                                                           PackForm form, Ledger& ledger, const LoadOptions& options) {
  TRY_ASSIGN(Stream copies, Stream::create());
  TRY_ASSIGN(Event begun, Event::create());
  TRY_ASSIGN(Event brought_a, Event::create());
  TRY_ASSIGN(Event used_a, Event::create());
  TRY_ASSIGN(Event brought_b, Event::create());
  TRY_ASSIGN(Event used_b, Event::create());
  std::unique_ptr<LayerBringer> made(new LayerBringer(layers, std::move(copies), std::move(begun),
                                                      {std::move(brought_a), std::move(used_a)},
                                                      {std::move(brought_b), std::move(used_b)}));
  TRY_ASSIGN(made->places_, DeviceBuffer<std::byte>::create(ledger, Purpose::weights, layers.card_bytes()));
  ThreadPool pool(options.n_threads);
  uint64_t done = 0;
  const auto take = [&](MatrixId id, std::byte* to) {
    const TensorView& matrix = program.matrices[id];
    const uint64_t row_bytes = packed_row_bytes(matrix.type, matrix.ne[0], form);
    constexpr int64_t kGrain = 16;
    pool.run([&](Team& team) {
      team.parallel_for(static_cast<int64_t>(matrix.rows()), kGrain, [&](int64_t begin, int64_t end) {
        pack_rows(matrix, static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin),
                  to + static_cast<uint64_t>(begin) * row_bytes, form);
      });
    });
    if (options.matrix_taken) options.matrix_taken(matrix);
    done += packed_bytes(matrix, form);
    if (options.progress) options.progress(done, layers.ram_bytes());
  };
  if (layers.table() != kNone) {
    const uint64_t bytes = packed_bytes(program.matrices[layers.table()], form);
    TRY_ASSIGN(made->table_, PinnedBuffer<std::byte>::create(bytes));
    take(layers.table(), made->table_.data());
  }
  for (const RamLayers::RamOp& op : layers.ops()) {
    TRY_ASSIGN(auto ram, PinnedBuffer<std::byte>::create(op.bytes));
    for (const RamLayers::Piece& piece : op.pieces) take(piece.id, ram.data() + piece.offset);
    made->ram_.push_back(std::move(ram));
  }
  return Result<std::unique_ptr<LayerBringer>>{std::move(made)};
}

// A copy may be under way.
LayerBringer::~LayerBringer() { static_cast<void>(static_cast<bool>(copies_.synchronize())); }

// Nothing before it in the stream is at work on a place any more when its first copies begin: a pass has waited for all
// it brought.
Status LayerBringer::begin(const Stream& stream) {
  next_ = 0;
  TRY(begun_.record(stream));
  TRY(begun_.hold(copies_));
  for (size_t op = 0; op < std::min<size_t>(2, layers_.ops().size()); ++op) TRY(bring(op));
  return Ok{};
}

Status LayerBringer::bring(size_t op) {
  TRY(copies_.copy(places_.data() + layers_.place_offset(op), ram_[op].data(), layers_.ops()[op].bytes));
  return events_[op % 2].brought.record(copies_);
}

Status LayerBringer::await(const Stream& stream) { return events_[next_ % 2].brought.hold(stream); }

Status LayerBringer::done_with(const Stream& stream) {
  const size_t op = next_++;
  if (op + 2 >= layers_.ops().size()) return Ok{};
  Event& used = events_[op % 2].used;
  TRY(used.record(stream));
  TRY(used.hold(copies_));
  return bring(op + 2);
}

}  // namespace chimere::cuda
