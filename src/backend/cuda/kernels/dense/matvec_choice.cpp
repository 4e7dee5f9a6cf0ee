#include "backend/cuda/kernels/dense/matvec_choice.h"

#include <algorithm>

namespace chimere::cuda {
namespace {

constexpr size_t kFloatBytes = 96 * 1024;    // float_rows: of activations, at most
constexpr size_t kStagedBytes = 160 * 1024;  // staged: of a block's weights, at most
constexpr size_t kOfTheSystem = 1024;        // shared memory that every block gives away
// tensor_rows from so many rows on: below, weights in registers are faster (head of Qwen3.5, H200: 131 us for 2 rows and
// 154 for 4, where this takes 300).
constexpr int kTensorRows = 8;
// staged_two and staged_rows: elements of the rows that every block quantises for itself, at most. Each 4096 take it 1.3
// us; a launch of its own takes two.
constexpr int kMadeElements = 2 * 4096;

constexpr int div_up(int a, int b) { return (a + b - 1) / b; }

// The format that most of the bytes have, if there is a kernel for it.
DType main_format(const MatvecArgs& a) {
  DType best = DType::F32;
  uint64_t most = 0;
  for (int i = 0; i < a.n_outs; ++i) {
    uint64_t bytes = 0;
    for (int j = 0; j < a.n_outs; ++j) {
      if (a.outs[j].weight.type == a.outs[i].weight.type) {
        bytes += static_cast<uint64_t>(a.outs[j].weight.row_bytes) * a.outs[j].weight.rows;
      }
    }
    if (has_kernels(a.outs[i].weight.type, kMatvecKernels) && bytes > most) {
      most = bytes;
      best = a.outs[i].weight.type;
    }
  }
  return best;
}

// Projections of the format first, tiles not numbered.
MatvecPlan in_order(const MatvecArgs& args, DType format) {
  MatvecPlan plan;
  plan.args = args;
  const uint32_t G = row_groups(args.in.width);
  plan.lanes_log2 = log2_of(lanes_per_row(G / 2));
  plan.side_lanes_log2 = log2_of(lanes_per_row(G));
  int n = 0;
  for (const bool first : {true, false}) {
    for (int i = 0; i < args.n_outs; ++i) {
      if ((args.outs[i].weight.type == format && format != DType::F32) == first) plan.args.outs[n++] = args.outs[i];
    }
    if (first) plan.n_own = n;
  }
  plan.quantise = false;
  for (int i = 0; i < args.n_outs; ++i) plan.quantise |= !args.exact && !args.outs[i].weight.is_float();
  return plan;
}

// Numbers the tiles of all projections; those of the kernel's own format have own_rows rows.
void number_tiles(MatvecPlan& plan, int own_rows) {
  for (int i = 0; i < plan.args.n_outs; ++i) {
    const MatvecOut& o = plan.args.outs[i];
    const bool is_own = i < plan.n_own;
    plan.first_tile[i] = plan.all_tiles;
    plan.all_tiles += div_up(o.weight.rows, is_own ? own_rows : side_rows_per_tile(plan, o));
    if (is_own) plan.own_tiles = plan.all_tiles;
  }
}
struct TileCount {
  int own = 0, all = 0;
};
TileCount count_tiles(MatvecPlan plan, int own_rows) {
  number_tiles(plan, own_rows);
  return {plan.own_tiles, plan.all_tiles};
}

// Does not look at the rows: a row's bits must not depend on how many there are.
bool takes_floats(const MatvecArgs& a) {
  const auto bytes = static_cast<size_t>(a.in.width) * sizeof(float);
  if (a.n_outs == 0 || a.in.width % 8 != 0 || a.in.width == 0 || bytes > kFloatBytes) return false;
  for (int i = 0; i < a.n_outs; ++i) {
    const Weight& w = a.outs[i].weight;
    if (!w.is_float() || w.type != a.outs[0].weight.type || w.row_bytes % 16 != 0) return false;
  }
  return true;
}

// As many blocks as run at once: more would only repeat the staging of the activations.
int blocks_for(int n_tiles, int at_once, int n_passes) {
  return std::min(div_up(n_tiles, kDotWarps), std::max(1, at_once / n_passes)) * n_passes;
}

MatvecChoice float_rows(const MatvecArgs& a, const CardFacts& card) {
  MatvecChoice c;
  c.kernel = MatvecKernel::float_rows;
  c.format = a.outs[0].weight.type;
  c.tile_rows = kFloatTileRows;
  const size_t row = static_cast<size_t>(a.in.width) * sizeof(float);
  c.pass_rows = a.n_rows > 4 && 8 * row <= kFloatBytes ? 8 : a.n_rows > 1 && 4 * row <= kFloatBytes ? 4 : 1;
  c.n_passes = div_up(a.n_rows, c.pass_rows);
  int n_tiles = 0;
  for (int i = 0; i < a.n_outs; ++i) n_tiles += div_up(a.outs[i].weight.rows, kFloatTileRows);
  c.blocks = blocks_for(n_tiles, card.n_sms * (c.pass_rows == 1 ? 3 : 2), c.n_passes);
  c.shared_bytes = static_cast<size_t>(c.pass_rows) * row;
  return c;
}

// False where not even `least` slots, or as many as the block has tiles, find room beside passes of so many columns.
bool fit_tensor_rows(const MatvecPlan& p, const CardFacts& card, int pass_tiles, int least, MatvecChoice& c) {
  const int column_tiles = div_up(p.args.n_rows, kColumnTile), own_tiles = count_tiles(p, kTileRows).own;
  c.n_passes = div_up(column_tiles, pass_tiles);
  pass_tiles = div_up(column_tiles, c.n_passes);
  const int parts = std::min(own_tiles, std::max(1, card.n_sms / c.n_passes)), most = div_up(own_tiles, parts);
  const auto n = static_cast<uint32_t>(pass_tiles);
  const uint32_t acts = n * (row_groups(p.args.in.width) / 2) * kPairBytes;
  const uint32_t slot = kTileRows * padded_row(p.args.outs[0].weight.row_bytes);
  const uint32_t sums = static_cast<uint32_t>(kTeams) * kTeamWarps * n * 32u * 4u * sizeof(float);
  c.together = most == 1 && p.lanes() > kTeamWarps;
  // Blocks that have but one tile a team put the sums where the activations were.
  const bool once = most <= kTeams;
  const uint32_t before = once ? std::max(acts, sums) : acts + sums;
  const size_t room = card.shared_limit - kOfTheSystem;
  if (before + static_cast<size_t>(std::min(least, most)) * slot > room) return false;
  c.kernel = MatvecKernel::tensor_rows;
  c.tile_rows = kTileRows;
  c.pass_rows = pass_tiles * kColumnTile;
  c.blocks = parts * c.n_passes;
  c.n_slots = std::min(std::min(most, kMaxSlots), static_cast<int>((room - before) / slot));
  c.sums_at = once ? 0 : acts;
  c.slots_at = before;
  c.shared_bytes = before + static_cast<size_t>(c.n_slots) * slot;
  return true;
}

bool takes_tensor_cores(const MatvecPlan& p, const CardFacts& card, const MatvecChoice& c) {
  return p.args.n_rows > 1 && p.args.records && p.lanes() >= kTeamWarps && has_kernels(c.format, kTensorKernels) &&
         card.has_bulk_copy;
}

bool tensor_rows(const MatvecPlan& p, const CardFacts& card, MatvecChoice& c) {
  if (p.args.n_rows < kTensorRows || !takes_tensor_cores(p, card, c)) return false;
  for (const int least : {3, 2}) {
    for (int pass_tiles = kPassTiles; pass_tiles > 0; pass_tiles /= 2) {
      MatvecChoice fitting = c;
      if (!fit_tensor_rows(p, card, pass_tiles, least, fitting)) continue;
      c = fitting;
      return true;
    }
  }
  return false;
}

// Slots for a block's rows of Q8_0 beside those of the kernel's format, as far as there is room. True if all rows of
// other formats have one.
bool add_side_slots(const MatvecPlan& p, const TileCount& tiles, size_t limit, MatvecChoice& c) {
  bool all = true;
  for (int i = p.n_own; i < p.args.n_outs; ++i) {
    const Weight& w = p.args.outs[i].weight;
    all &= w.type == DType::Q8_0;
    if (w.type == DType::Q8_0) c.side_slot_bytes = w.row_bytes << (5 - p.side_lanes_log2);
  }
  if (c.side_slot_bytes == 0) return all;
  const int most = div_up(tiles.all - tiles.own, c.blocks);
  c.side_slots = std::min(most, static_cast<int>((limit - c.shared_bytes) / c.side_slot_bytes));
  c.shared_bytes += static_cast<size_t>(c.side_slots) * c.side_slot_bytes;
  return all && c.side_slots == most;
}

// False where a block's weights do not fit, or those of another format than the kernel's.
bool staged_rows(const MatvecPlan& p, const CardFacts& card, MatvecChoice& choice) {
  const MatvecArgs& a = p.args;
  // Parts put their sums where the codes of their first pair were: there has to be one.
  const uint32_t pairs = row_groups(a.in.width) / 2;
  if (!takes_tensor_cores(p, card, choice) || a.n_rows > kFewDecodeRows || pairs < kTeamWarps) return false;
  const TileCount tiles = count_tiles(p, kTileRows);
  MatvecChoice c = choice;
  c.kernel = MatvecKernel::staged_rows;
  c.tile_rows = kTileRows;
  c.pass_rows = kColumnTile;
  c.blocks = std::min(tiles.own, card.n_sms);
  const int most = div_up(tiles.own, c.blocks);
  // Two rows of larger matrices: fragments are three quarters empty, and weights in registers are faster.
  if (a.n_rows == 2 && most > 2) return false;
  const size_t bytes = static_cast<size_t>(most) * kTileRows * padded_row(a.outs[0].weight.row_bytes);
  const size_t limit = card.shared_limit - kOfTheSystem;
  c.staged_bytes = static_cast<uint32_t>(bytes);
  c.shared_bytes = static_cast<size_t>(a.n_rows) * record_bytes(a.in.width) + bytes;
  if (most > kMaxStagedTiles || c.shared_bytes > limit || !add_side_slots(p, tiles, limit, c)) return false;
  // Two tiles keep the warps busy in eight parts each, one does in sixteen.
  const bool halves = most % 2 == 1 && p.lanes() >= 2 * kTeamWarps && pairs >= 2 * kTeamWarps;
  c.parts = halves ? 2 * kTeamWarps : kTeamWarps;
  c.makes_records = !a.in.activates() && a.n_rows * a.in.width <= kMadeElements;
  choice = c;
  return true;
}

// Of one row or two. False where a block's weights do not fit.
bool staged(const MatvecPlan& p, const CardFacts& card, MatvecChoice& choice) {
  const MatvecArgs& a = p.args;
  if (a.n_rows > 2 || (a.n_rows == 2 && !a.records)) return false;
  if (p.lanes_log2 == 0 || !card.has_bulk_copy) return false;
  const int per_unit = 32 >> p.lanes_log2;
  const TileCount tiles = count_tiles(p, per_unit);
  const int blocks = std::min(tiles.own, card.n_sms);
  const size_t bytes = static_cast<size_t>(div_up(tiles.own, blocks)) * per_unit * a.outs[0].weight.row_bytes;
  const size_t records = static_cast<size_t>(a.n_rows) * record_bytes(a.in.width);
  const size_t shared = book_bytes(choice.format) + records + bytes, limit = card.shared_limit - kOfTheSystem;
  if (bytes > kStagedBytes || shared > limit) return false;
  MatvecChoice c = choice;
  c.kernel = a.n_rows == 1 ? MatvecKernel::staged : MatvecKernel::staged_two;
  c.makes_records = a.n_rows == 2 && !a.in.activates() && a.n_rows * a.in.width <= kMadeElements;
  c.tile_rows = per_unit;
  c.blocks = blocks;
  c.staged_bytes = static_cast<uint32_t>(bytes);
  c.shared_bytes = shared;
  // Two rows have no other way for rows of other formats.
  if (!add_side_slots(p, tiles, limit, c) && a.n_rows == 2) return false;
  choice = c;
  return true;
}

// False where there is too little work for every warp to cycle through its slots, or the slots do not fit.
bool ring(const MatvecPlan& p, const CardFacts& card, MatvecChoice& c) {
  const MatvecArgs& a = p.args;
  const bool two = a.n_rows == 2 && p.lanes_log2 == 5;
  if ((a.n_rows != 1 && !two) || !card.has_bulk_copy) return false;
  const size_t fixed = book_bytes(c.format) + static_cast<size_t>(a.n_rows) * record_bytes(a.in.width);
  const auto slot_bytes = [&](int rows) { return static_cast<uint32_t>(rows) * a.outs[0].weight.row_bytes; };
  const auto room_for = [&](int rows) { return RingRoom(card.shared_limit, fixed, slot_bytes(rows), kDotWarps); };
  // Where a warp works on one row at a time, a slot has several: four where it holds the activations, if two blocks
  // then still fit.
  const bool side_by_side = p.lanes_log2 < 5, four = holds_pair(a.in.width) && !two;
  int rows = side_by_side ? 32 >> p.lanes_log2 : four ? 4 : 2;
  RingRoom room = room_for(rows);
  if (four && room.blocks < 2) room = room_for(rows = 2);
  const int blocks = card.n_sms * room.blocks;
  if (room.blocks == 0 || count_tiles(p, rows).own < blocks * kDotWarps * room.slots) return false;
  c.kernel = MatvecKernel::ring;
  c.tile_rows = rows;
  c.blocks = blocks;
  c.n_slots = room.slots;
  c.shared_bytes = fixed + static_cast<size_t>(room.slots * kDotWarps) * slot_bytes(rows);
  return true;
}

// The most activations per pass whose records fit into shared memory beside the codebook.
void registers(const MatvecPlan& p, const CardFacts& card, MatvecChoice& c) {
  const size_t record = record_bytes(p.args.in.width), book = book_bytes(c.format);
  const size_t fits = (card.shared_limit - kOfTheSystem - book) / record;
  const int want = p.args.n_rows;
  c.kernel = p.n_own > 0 ? MatvecKernel::registers : MatvecKernel::any_format;
  c.pass_rows = want > 8 && fits >= 16 ? 16 : want > 4 && fits >= 8 ? 8 : want > 1 && fits >= 4 ? 4 : 1;
  c.tile_rows = tile_rows(c.pass_rows) * 32 >> p.lanes_log2;
  c.n_passes = div_up(want, c.pass_rows);
  c.blocks = blocks_for(count_tiles(p, c.tile_rows).all, card.n_sms * matvec_blocks(c.pass_rows), c.n_passes);
  c.shared_bytes = static_cast<size_t>(c.pass_rows) * record + book;
}

}  // namespace

MatvecChoice choose_matvec(const MatvecArgs& args, const CardFacts& card) {
  if (takes_floats(args)) return float_rows(args, card);
  MatvecChoice c;
  // Lanes take two groups at a time.
  if (!args.exact && row_groups(args.in.width) % 2 == 0) c.format = main_format(args);
  const MatvecPlan plan = in_order(args, c.format);
  if (plan.n_own > 0 &&
      (staged(plan, card, c) || staged_rows(plan, card, c) || tensor_rows(plan, card, c) || ring(plan, card, c))) {
    return c;
  }
  registers(plan, card, c);
  return c;
}

MatvecPlan plan_matvec(const MatvecArgs& args, const MatvecChoice& choice) {
  MatvecPlan plan = in_order(args, choice.kernel == MatvecKernel::any_format ? DType::F32 : choice.format);
  number_tiles(plan, choice.tile_rows);
  plan.n_passes = choice.n_passes;
  return plan;
}

}  // namespace chimere::cuda
