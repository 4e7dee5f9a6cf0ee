#include "backend/cuda/kernels/experts/experts_choice.h"

#include <algorithm>

#include "backend/cuda/kernels/dense/matvec.h"

namespace chimere::cuda {
namespace {

constexpr size_t kFusedBytes = 48 * 1024;    // of records that blocks make themselves, at most
constexpr uint32_t kOneStatic = 4096;        // more than the one-row kernels' own arrays
constexpr size_t kOneUpBytes = 136 * 1024;   // of slots, at most
constexpr size_t kOneDownBytes = 72 * 1024;  // of slots, at most
// The same of a few rows, where two slots of a warp take less.
constexpr size_t kFewUpBytes = 144 * 1024, kFewDownBytes = 112 * 1024;
// What the system takes of an SM's shared memory for a block, and what one of a few rows takes beside its room.
constexpr size_t kSystemBytes = 1024, kFewBeside = 2048 + kSystemBytes;
constexpr bool kPrefetchesDown = true;  // a few rows: the up-projection, for the other
// Slots read an expert once for each row that chose it: from 8 rows on rings, which read it once, are faster.
constexpr int kSlotRows = kFewDecodeRows - 1;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
constexpr int whole_groups(int width) { return ceil_div(width, kGroup) * kGroup; }
int log2_lanes(uint32_t pieces) { return log2_of(lanes_per_row(pieces)); }

// Of gate and up. Without a gate rows go by twos, and there must be an even number of them.
DType common_type(const Weight& gate, const Weight& up) {
  if (!gate) return up.rows % 2 == 0 ? up.type : DType::F32;
  return gate.type == up.type ? up.type : DType::F32;
}

// The records that the blocks of a launch for few rows have room for. Whether there is room for a kernel at all must
// not depend on the number of rows: the kernels for any type have another order of additions.
size_t few_records_bytes(int width) {
  const size_t bytes = record_bytes(width);
  return bytes * std::clamp<size_t>(kFusedBytes / bytes, 1, kFusedRows);
}

bool has_ring(const CardFacts& card, size_t fixed, uint32_t slot_bytes) {
  return RingRoom(card.shared_limit, fixed, slot_bytes, kDotWarps).blocks > 0;
}
bool ring_up_fits(const MoePlan& p, const CardFacts& card, const ProjectionChoice& c, int elements) {
  const size_t fixed = book_bytes(c.routed) + GroupRoom::most(p.args) + few_records_bytes(p.args.in.width);
  return has_ring(card, fixed, ring_up_slot(p, c.shared != DType::F32, elements));
}
bool ring_down_fits(const MoePlan& p, const CardFacts& card, const ProjectionChoice& c) {
  const size_t book = book_bytes(c.routed);
  const size_t few = book + few_records_bytes(p.hidden_width) + few_shares_bytes(p) * kFusedRows;
  const bool shared = c.shared != DType::F32;
  return has_ring(card, few, ring_down_slot(p, shared, kDownRows)) &&
         has_ring(card, book + GroupRoom::most(p.args), ring_down_slot(p, shared, grouped_rows(c.routed)));
}

// Lanes take two groups at a time.
ProjectionChoice with_formats(const MoeArgs& a, DType routed, DType shared, int width, int shared_width) {
  if (a.exact || row_groups(width) % 2 != 0 || row_groups(shared_width) % 2 != 0) return {};
  const ExpertFormats formats = expert_formats(routed, shared);
  if (!formats.exist) return {};
  return {ExpertsKernel::ring, routed, formats.shared};
}

// One row whose experts every block chooses, or a few rows, whoever chooses.
bool takes_slots(const MoePlan& p, const CardFacts& card, const ProjectionChoice& up, const ProjectionChoice& down) {
  const MoeArgs& a = p.args;
  const bool few = !a.choose_only && a.n_rows > 1 && a.n_rows <= kSlotRows && a.n_used <= kBlockUsed;
  if (!(few || (a.n_rows == 1 && p.choice_by_block)) || p.log2_in == 0 || !card.has_bulk_copy) return false;
  // Not where kernels of any type serve several rows: the bits would differ.
  if (up.kernel != ExpertsKernel::ring || down.kernel != ExpertsKernel::ring) return false;
  if (a.shared_up && (up.shared == DType::F32 || down.shared == DType::F32)) return false;
  if (a.up.rows % kGroup != 0 || a.shared_up.rows % kGroup != 0) return false;
  if (a.shared_up && static_cast<bool>(a.gate) != static_cast<bool>(a.shared_gate)) return false;
  // Of a few rows, a slot is filled while another is read.
  const int least = few ? 2 : 1;
  const int of_up = few ? few_up_room(p, card).n_slots : one_up_room(p, card).n_slots;
  return of_up >= least && one_down_room(p, card).n_slots >= least;
}

// Slots of a warp, given what else a block keeps in shared memory and what its slots may take at most.
int one_slots(const CardFacts& card, int wanted, uint32_t slot_bytes, size_t fixed, size_t most) {
  const size_t limit = card.shared_limit, taken = fixed + kOneStatic;
  if (taken >= limit) return 0;
  const size_t room = std::min(limit - taken, most) / (size_t{slot_bytes} * kOneWarps);
  return std::min(std::min(wanted, kMostRingSlots), static_cast<int>(room));
}

// More than half of the shared memory: the router leaves SMs empty, and each would take two blocks.
constexpr size_t up_bytes(size_t wanted, const CardFacts& card) {
  return std::max(wanted, (card.shared_limit / 2 + 16) / 16 * 16);
}

// What a block of a few rows keeps in shared memory beside its slots, and how large one of those is.
struct FewNeeds {
  size_t fixed;
  uint32_t slot_bytes;

  size_t slots_bytes(int n) const { return size_t{slot_bytes} * static_cast<size_t>(kOneWarps * n); }
  int most_slots(const CardFacts& card, size_t most) const {
    return one_slots(card, kMostRingSlots, slot_bytes, fixed, std::max(most, slots_bytes(2)));
  }
};

FewNeeds few_up_needs(const MoePlan& p, const FewUpRoom& r) {
  const MoeArgs& a = p.args;
  const int rounds = ceil_div(r.units, r.blocks);  // of a block, at most
  const size_t values = sizeof(float) * 2 * kGroup * static_cast<size_t>(rounds);
  return {book_bytes(a.up.type) + static_cast<size_t>(a.n_rows) * record_bytes(a.in.width) + values, r.slot_bytes};
}

// Slots of a warp in both kernels of a few rows: as many as leave room for a block of each on an SM, side by side. Then
// the copies of the down-projection begin while the up-projection still multiplies, and those of the kernel behind it
// while it does. Where not even two slots each find room so, as many as each has alone.
struct FewSlots {
  int up = 0, down = 0;

  FewSlots(const FewNeeds& of_up, const FewNeeds& of_down, const CardFacts& card) {
    const int most_up = of_up.most_slots(card, kFewUpBytes), most_down = of_down.most_slots(card, kFewDownBytes);
    const auto fit = [&](int n_up, int n_down) {
      const size_t both = up_bytes(of_up.fixed + of_up.slots_bytes(n_up), card) + of_down.fixed +
                          of_down.slots_bytes(n_down) + 2 * kFewBeside;
      return both <= card.shared_limit + kSystemBytes;
    };
    up = most_up, down = most_down;
    for (int all = most_up + most_down; all >= 4; --all) {
      for (int n_up = std::min(most_up, all - 2); n_up >= std::max(2, all - most_down); --n_up) {
        if (!fit(n_up, all - n_up)) continue;
        up = n_up, down = all - n_up;
        return;
      }
    }
  }
};

}  // namespace

uint32_t ring_up_slot(const MoePlan& p, bool shared, int elements) {
  const uint32_t routed = 2u * static_cast<uint32_t>(elements * 32 >> p.log2_in) * p.args.up.row_bytes;
  const uint32_t own = 2u * static_cast<uint32_t>(32 >> p.log2_in) * p.args.shared_up.row_bytes;
  return shared && p.args.shared_up ? std::max(routed, own) : routed;
}

int near_slots(const MoePlan& p, const CardFacts& card, bool shared, int elements) {
  constexpr size_t kStatic = 3072;  // more than the kernel's own arrays
  constexpr int kLeast = 3;         // fewer would leave the memory idle: two blocks of half as many warps have four
  const MoeArgs& a = p.args;
  if (!p.made_in || !card.has_bulk_copy || a.exact) return 0;
  const size_t records = size_t{record_bytes(a.in.width)} * static_cast<size_t>(a.n_rows);
  const size_t fixed = book_bytes(a.up.type) + GroupRoom(a).bytes + records + kStatic;
  if (fixed >= card.shared_limit) return 0;
  const size_t slots = (card.shared_limit - fixed) / (size_t{ring_up_slot(p, shared, elements)} * kOneWarps);
  return slots < kLeast ? 0 : std::min(static_cast<int>(slots), kMostRingSlots);
}

// Where there are few chunks, blocks would end at different times.
int down_rounds(const MoePlan& p) { return p.args.n_rows * p.args.n_used >= 128 ? 2 : 1; }

uint32_t ring_down_slot(const MoePlan& p, bool shared, int rows) {
  const MoeArgs& a = p.args;
  const uint32_t routed = static_cast<uint32_t>(rows * 32 >> p.log2_hidden) * a.down.row_bytes;
  const uint32_t own = static_cast<uint32_t>(kDownRows * 32 >> p.log2_shared) * a.shared_down.row_bytes;
  return shared && a.shared_down ? std::max(routed, own) : routed;
}

size_t few_shares_bytes(const MoePlan& p) {
  return sizeof(float) * static_cast<size_t>(kFewOutputs * (p.args.n_used + 1));
}

OneUpRoom one_up_room(const MoePlan& p, const CardFacts& card) {
  const MoeArgs& a = p.args;
  OneUpRoom r;
  r.groups_an_expert = a.up.rows / kGroup;
  r.own_groups = a.shared_up.rows / kGroup;
  r.groups = r.own_groups + a.n_used * r.groups_an_expert;
  r.blocks = std::min(r.groups, card.n_sms);
  const int rounds = ceil_div(r.groups, r.blocks);  // of a block, at most
  r.slot_bytes = (a.gate ? 2u : 1u) * kOneElements * std::max(a.up.row_bytes, a.shared_up.row_bytes);
  r.slots = book_bytes(a.up.type);
  const auto values = static_cast<uint32_t>(sizeof(float)) * 2 * kGroup * static_cast<uint32_t>(rounds);
  r.n_slots = one_slots(card, rounds, r.slot_bytes, r.slots + record_bytes(a.in.width) + values, kOneUpBytes);
  r.record = r.slots + static_cast<uint32_t>(kOneWarps * r.n_slots) * r.slot_bytes;
  r.values = r.record + record_bytes(a.in.width);
  r.bytes = static_cast<uint32_t>(up_bytes(r.values + values, card));
  return r;
}

namespace {

// All but the slots.
FewUpRoom few_up_units(const MoePlan& p, const CardFacts& card) {
  const MoeArgs& a = p.args;
  FewUpRoom r;
  r.groups_an_expert = a.up.rows / kGroup;
  r.shared_groups = a.shared_up.rows / kGroup;
  r.units = a.n_rows * (r.shared_groups + a.n_used * r.groups_an_expert);
  r.blocks = std::min(r.units, card.n_sms);
  r.down_blocks = std::min(a.down.rows, card.n_sms);
  r.prefetches = kPrefetchesDown && !a.down.places;
  r.slot_bytes = 2 * std::max(a.up.row_bytes, a.shared_up.row_bytes);
  return r;
}

// Of the down-projection of one row or a few.
struct DownUnits {
  int blocks, most;       // outputs of a block, at most
  int unit, shared_unit;  // outputs
  FewNeeds needs;

  DownUnits(const MoePlan& p, const CardFacts& card)
      : blocks(std::min(p.args.down.rows, card.n_sms)),
        most(ceil_div(p.args.down.rows, blocks)),
        unit(kOneOutputs * 32 >> p.log2_hidden),
        shared_unit(kOneOwnOutputs * 32 >> p.log2_shared) {
    const MoeArgs& a = p.args;
    needs.slot_bytes = std::max(static_cast<uint32_t>(std::min(most, unit)) * a.down.row_bytes,
                                static_cast<uint32_t>(std::min(most, shared_unit)) * a.shared_down.row_bytes);
    needs.fixed = book_bytes(a.down.type) + records_bytes(p) + shares_bytes(p);
  }
  static uint32_t records_bytes(const MoePlan& p) {
    return static_cast<uint32_t>(p.args.n_rows) * record_bytes(p.hidden_width);
  }
  uint32_t shares_bytes(const MoePlan& p) const {
    return static_cast<uint32_t>(sizeof(float)) * static_cast<uint32_t>(p.args.n_rows * most * (p.args.n_used + 1));
  }
};

FewSlots few_slots(const MoePlan& p, const CardFacts& card) {
  return {few_up_needs(p, few_up_units(p, card)), DownUnits(p, card).needs, card};
}

}  // namespace

FewUpRoom few_up_room(const MoePlan& p, const CardFacts& card) {
  FewUpRoom r = few_up_units(p, card);
  r.n_slots = few_slots(p, card).up;
  r.slots = book_bytes(p.args.up.type);
  r.records = r.slots + static_cast<uint32_t>(kOneWarps * r.n_slots) * r.slot_bytes;
  r.values = r.records + static_cast<uint32_t>(p.args.n_rows) * record_bytes(p.args.in.width);
  const FewNeeds needs = few_up_needs(p, r);
  r.bytes = static_cast<uint32_t>(up_bytes(needs.fixed + needs.slots_bytes(r.n_slots), card));
  return r;
}

OneDownRoom one_down_room(const MoePlan& p, const CardFacts& card) {
  const MoeArgs& a = p.args;
  const DownUnits units(p, card);
  OneDownRoom r;
  r.blocks = units.blocks;
  r.slot_bytes = units.needs.slot_bytes;
  r.slots = book_bytes(a.down.type);
  const int own_tiles = a.shared_down ? ceil_div(units.most, units.shared_unit) : 0;
  const int rounds = ceil_div(a.n_used * ceil_div(units.most, units.unit) + own_tiles, kOneWarps);
  r.n_slots =
      a.n_rows > 1 ? few_slots(p, card).down : one_slots(card, rounds, r.slot_bytes, units.needs.fixed, kOneDownBytes);
  r.record = r.slots + static_cast<uint32_t>(kOneWarps * r.n_slots) * r.slot_bytes;
  r.shares = r.record + DownUnits::records_bytes(p);
  r.bytes = r.shares + units.shares_bytes(p);
  return r;
}

int moe_hidden_width(const MoeArgs& a) {
  return whole_groups(a.n_used * a.down.width) + whole_groups(a.shared_down.width);
}

MoePlan plan_moe(const MoeArgs& a, const CardFacts& card) {
  MoePlan p;
  p.args = a;
  p.scratch = moe_scratch(a, a.n_rows, a.scratch);
  p.log2_in = log2_lanes(row_groups(a.in.width) / 2);
  p.log2_hidden = log2_lanes(row_groups(a.down.width) / 2);
  p.log2_shared = log2_lanes(row_groups(a.shared_down.width) / 2);
  p.any_log2_in = log2_lanes(row_groups(a.in.width));
  p.any_log2_hidden = log2_lanes(row_groups(a.down.width));
  p.any_log2_shared = log2_lanes(row_groups(a.shared_down.width));
  p.made_in = !a.choose_only && a.n_rows > 1 &&
              (a.n_rows > kFusedRows || size_t{record_bytes(a.in.width)} * a.n_rows > kFusedBytes);
  p.hidden_width = moe_hidden_width(a);
  p.shared_at = whole_groups(a.n_used * a.down.width);
  // Keys that need the scores of all experts are no router block's to make.
  const bool has_keys = a.style.gating != op::Gating::softmax || a.style.selection_bias == nullptr;
  const bool by_block = !a.choose_only && has_keys && a.n_used <= kBlockUsed && a.router.rows <= kBlockExperts;
  p.choice_by_block = by_block && a.n_rows == 1;
  p.made_hidden = a.n_rows > kFusedRows || size_t{record_bytes(p.hidden_width)} * a.n_rows > kFusedBytes;
  const ExpertsChoice choice = choose_experts(p, card);
  const ExpertsKernel kernel = choice.up.kernel;
  p.one_row = kernel == ExpertsKernel::one_row;
  p.few_rows = kernel == ExpertsKernel::few_rows;
  if (p.one_row || p.few_rows) p.made_in = true;
  if (p.few_rows || (choice.near_records && a.n_rows > kFusedRows && a.n_rows <= kNearChoices)) {
    p.choice_by_block = by_block;
  }
  return p;
}

ExpertsChoice choose_experts(const MoePlan& p, const CardFacts& card) {
  const MoeArgs& a = p.args;
  ExpertsChoice c;
  c.up = with_formats(a, common_type(a.gate, a.up), common_type(a.shared_gate, a.shared_up), a.in.width, a.in.width);
  c.down = with_formats(a, a.down.type, a.shared_down.type, a.down.width, a.shared_down.width);
  if (c.up.kernel == ExpertsKernel::ring && !ring_up_fits(p, card, c.up, 1)) c.up.kernel = ExpertsKernel::any_format;
  if (c.down.kernel == ExpertsKernel::ring && !ring_down_fits(p, card, c.down)) {
    c.down.kernel = ExpertsKernel::any_format;
  }
  if (takes_slots(p, card, c.up, c.down)) {
    c.up.kernel = c.down.kernel = a.n_rows == 1 ? ExpertsKernel::one_row : ExpertsKernel::few_rows;
  }
  const int most = most_up_elements(c.up.routed);
  if (c.up.kernel == ExpertsKernel::ring && a.n_rows > 1 && ring_up_fits(p, card, c.up, most)) c.up_elements = most;
  c.near_records = c.up.kernel == ExpertsKernel::ring && a.n_rows > 1 &&
                   near_slots(p, card, c.up.shared != DType::F32, c.up_elements) > 0;
  return c;
}

}  // namespace chimere::cuda
