// adapters.cpp  Bringing adapters to the card, and grouping the rows of a pass by them.
#include "backend/cuda/adapters.h"

#include <algorithm>

#include "base/check.h"

namespace chimere::cuda {
namespace {

// A feed-forward of so many rows keeps the tensor cores busy; more would only cost memory.
constexpr int kFfnRows = 512;

struct HeldAdapter {
  DeviceArena memory;
  const DeviceChange* changes = nullptr;   // on the device, by MatrixId
  std::vector<DeviceChange> host_changes;  // the same table
  std::vector<bool> changed;               // by MatrixId
  int max_rank = 0;                        // padded
};

const HeldAdapter& held(const AdapterSet::Use& use) {
  CHECK(use.adapter->held && "an adapter that no backend holds");
  return *static_cast<const HeldAdapter*>(use.adapter->held.get());
}

bool same_uses(const AdapterSet& a, const AdapterSet& b) {
  return std::equal(
      a.uses.begin(), a.uses.end(), b.uses.begin(), b.uses.end(),
      [](const AdapterSet::Use& x, const AdapterSet::Use& y) { return x.adapter == y.adapter && x.scale == y.scale; });
}

int power_of_two_from(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

// Rows with the same adapters.
struct AdaptedRows {
  const AdapterSet* set;
  std::vector<int32_t> rows;
};

std::vector<AdaptedRows> group_rows(const Batch& batch, const Pass& pass) {
  std::vector<AdaptedRows> groups;
  int32_t row = 0;
  for (const int32_t i : pass.slices) {
    const Slice& slice = batch.slices[i];
    const int32_t first = row;
    row += slice.n_tokens;
    if (!slice.is_adapted()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const AdaptedRows& g) {
      return g.set == slice.adapters || same_uses(*g.set, *slice.adapters);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {slice.adapters, {}});
    for (int32_t r = first; r < row; ++r) group->rows.push_back(r);
  }
  return groups;
}

}  // namespace

// Tiles: a decode pass may have one for each row, rounded up to a power of two; a pass of prompts has full ones and
// at most one more for each slice.
AdapterMemory::AdapterMemory(Ledger& ledger, const Program& program, int max_rows, const PassLimits& limits)
    : ledger_(ledger),
      n_matrices_(program.matrices.size()),
      max_tiles_(std::max(power_of_two_from(limits.decode_rows), max_rows / kAdapterRows + limits.prefill_slices)),
      ffn_rows_(std::min(max_rows, kFfnRows)) {
  for (const Op& any : program.ops) {
    if (const auto* o = std::get_if<op::DenseFfn>(&any)) {
      d_ff_ = std::max(d_ff_, static_cast<int>(program.matrices[o->up].ne[1]));
    }
  }
}

Status AdapterMemory::reserve_work() {
  const std::lock_guard lock(mutex_);
  if (low_) return Ok{};
  const uint64_t low = sizeof(float) * uint64_t{kMaxAdapted} * max_tiles_ * kAdapterRows * kAdapterWindow;
  const uint64_t ffn = sizeof(float) * static_cast<uint64_t>(ffn_rows_) * d_ff_;
  TRY_ASSIGN(work_,
             DeviceArena::create(ledger_, Purpose::adapters, DeviceArena::padded(low) + 2 * DeviceArena::padded(ffn)));
  TRY_ASSIGN(host_tiles_, PinnedBuffer<AdapterTile>::create(max_tiles_));
  TRY_ASSIGN(tiles_, DeviceBuffer<AdapterTile>::create(ledger_, Purpose::adapters, max_tiles_));
  low_ = reinterpret_cast<float*>(work_.take(low));
  ffn_gate_ = reinterpret_cast<float*>(work_.take(ffn));
  ffn_up_ = reinterpret_cast<float*>(work_.take(ffn));
  return Ok{};
}

Result<std::shared_ptr<const void>> AdapterMemory::hold(const Adapter& adapter) {
  CHECK(adapter.by_matrix.size() == n_matrices_);
  TRY(reserve_work());
  auto on_card = std::make_shared<HeldAdapter>();
  uint64_t bytes = DeviceArena::padded(sizeof(DeviceChange) * n_matrices_);
  for (const LowRank& change : adapter.by_matrix) {
    bytes +=
        DeviceArena::padded(change.a.size() * sizeof(float)) + DeviceArena::padded(change.b.size() * sizeof(float));
  }
  TRY_ASSIGN(on_card->memory, DeviceArena::create(ledger_, Purpose::adapters, bytes));
  TRY_ASSIGN(const Stream stream, Stream::create());
  const auto copy = [&](const std::vector<float>& from) -> Result<const float*> {
    auto* to = on_card->memory.take_array<float>(from.size());
    TRY(stream.copy(to, from.data(), from.size() * sizeof(float)));
    return static_cast<const float*>(to);
  };
  auto* table = on_card->memory.take_array<DeviceChange>(n_matrices_);
  std::vector<DeviceChange> changes(n_matrices_, DeviceChange{});
  for (size_t i = 0; i < n_matrices_; ++i) {
    const LowRank& change = adapter.by_matrix[i];
    on_card->changed.push_back(change.rank > 0);
    if (change.rank == 0) continue;
    TRY_ASSIGN(changes[i].a, copy(change.a));
    TRY_ASSIGN(changes[i].b, copy(change.b));
    changes[i].rank = change.rank;
    on_card->max_rank = std::max(on_card->max_rank, padded_rank(change.rank));
  }
  TRY(stream.copy(table, changes.data(), changes.size() * sizeof(DeviceChange)));
  TRY(stream.synchronize());
  on_card->changes = table;
  on_card->host_changes = std::move(changes);
  return std::shared_ptr<const void>(std::move(on_card));
}

Status AdapterMemory::refresh(const Stream& stream, const Adapter& adapter) {
  CHECK(adapter.held && "an adapter that no backend holds");
  const auto& on_card = *static_cast<const HeldAdapter*>(adapter.held.get());
  for (size_t i = 0; i < n_matrices_; ++i) {
    const LowRank& change = adapter.by_matrix[i];
    CHECK(change.rank == on_card.host_changes[i].rank);
    if (change.rank == 0) continue;
    TRY(stream.copy(const_cast<float*>(on_card.host_changes[i].a), change.a.data(), change.a.size() * sizeof(float)));
    TRY(stream.copy(const_cast<float*>(on_card.host_changes[i].b), change.b.data(), change.b.size() * sizeof(float)));
  }
  return stream.synchronize();
}

Status AdapterMemory::reserve_uses(size_t n) {
  if (n <= uses_.size()) return Ok{};
  constexpr size_t kUsual = 1024;
  const size_t size = std::max(kUsual, 2 * n);
  TRY_ASSIGN(host_uses_, PinnedBuffer<AdapterUse>::create(size));
  TRY_ASSIGN(uses_, DeviceBuffer<AdapterUse>::create(ledger_, Purpose::adapters, size));
  return Ok{};
}

Result<PassAdapters> AdapterMemory::stage(const Stream& stream, const Batch& batch, const Pass& pass) {
  PassAdapters adapters;
  if (!pass.is_adapted) return Result<PassAdapters>{std::move(adapters)};
  const std::vector<AdaptedRows> groups = group_rows(batch, pass);
  size_t n_uses = 0;
  for (const AdaptedRows& group : groups) n_uses += group.set->uses.size();
  TRY(reserve_uses(n_uses));

  adapters.changed.resize(n_matrices_);
  int n_tiles = 0, use = 0, most_rows = 0;
  for (const AdaptedRows& group : groups) {
    const int first_use = use;
    int rank = 0;
    for (const AdapterSet::Use& u : group.set->uses) {
      const HeldAdapter& on_card = held(u);
      host_uses_[use++] = {on_card.changes, u.scale, 0};
      rank += on_card.max_rank;
      for (size_t i = 0; i < n_matrices_; ++i) adapters.changed[i] = adapters.changed[i] || on_card.changed[i];
    }
    adapters.view.max_rank = std::max(adapters.view.max_rank, rank);
    const int n_rows = static_cast<int>(group.rows.size());
    for (int first = 0; first < n_rows; first += kAdapterRows) {
      AdapterTile tile{std::min(kAdapterRows, n_rows - first), first_use, use - first_use, 0, {}};
      std::copy_n(group.rows.begin() + first, tile.n_rows, tile.rows);
      most_rows = std::max(most_rows, tile.n_rows);
      host_tiles_[n_tiles++] = tile;
    }
  }
  // A graph serves all numbers of tiles up to its own.
  const int wanted = pass.is_decode ? power_of_two_from(n_tiles) : n_tiles;
  CHECK(wanted <= max_tiles_);
  while (n_tiles < wanted) host_tiles_[n_tiles++] = {};
  TRY(tiles_.write(stream, host_tiles_.span().first(n_tiles)));
  TRY(uses_.write(stream, host_uses_.span().first(use)));
  adapters.view.tiles = tiles_.data();
  adapters.view.uses = uses_.data();
  adapters.view.n_tiles = n_tiles;
  adapters.view.tile_rows = most_rows == 1 ? 1 : kAdapterRows;
  adapters.view.low = low_;
  adapters.ffn_gate = ffn_gate_;
  adapters.ffn_up = ffn_up_;
  adapters.ffn_rows = ffn_rows_;
  return Result<PassAdapters>{std::move(adapters)};
}

}  // namespace chimere::cuda
