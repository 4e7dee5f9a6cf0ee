#include "backend/cuda/mapped_experts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "backend/cuda/expert_uses.h"
#include "base/check.h"
#include "base/thread_pool.h"

namespace chimere::cuda {
namespace {

constexpr int kPassesCounted = 16;  // between two looks at the counts
constexpr size_t kMostMoves = 128;  // of a look: some milliseconds of the bus
constexpr int kMostOfLayer = 8;     // of these, of one layer: they are without a slot for a while
constexpr float kFading = 0.97f;    // of uses, from look to look
constexpr float kMoreThan = 1.25f;  // how much hotter a newcomer must be, and by
constexpr float kMoreBy = 1.0f;     // how many uses, so that equals do not take turns

std::vector<MatrixId> matrices_of(const op::MoeFfn& mixture) {
  std::vector<MatrixId> ids;
  for (const MatrixId id : {mixture.gate, mixture.up, mixture.down}) {
    if (id != kNone) ids.push_back(id);
  }
  return ids;
}

uint64_t expert_bytes(const TensorView& stack, PackForm form, int n_experts) {
  return packed_bytes(stack, form) / static_cast<uint64_t>(n_experts);
}

// Slots of a layer are in pieces in their order: where those of a piece begin, and the piece of a slot.
int first_slot(int n_slots, int piece) { return n_slots * piece / kSlotPieces; }
int piece_of(int n_slots, int slot) { return (kSlotPieces * (slot + 1) - 1) / n_slots; }

}  // namespace

MappedSizes::MappedSizes(const Program& program, std::span<const op::MoeFfn* const> mixtures, PackForm form,
                         int n_slots) {
  for (const op::MoeFfn* mixture : mixtures) {
    const auto n = static_cast<uint64_t>(mixture->n_experts);
    uint64_t record = 0, head = 0;
    for (const MatrixId id : matrices_of(*mixture)) {
      head = record;
      record += expert_bytes(program.matrices[id], form, mixture->n_experts);
      places += 2 * n * sizeof(const uint8_t*);
    }
    ram += n * record;
    const uint64_t in_slots = std::min(n, static_cast<uint64_t>(n_slots));
    slots += in_slots * record;
    for (int p = 0; p < kSlotPieces; ++p) {
      const int in_layer = static_cast<int>(in_slots);
      pieces[static_cast<size_t>(p)] +=
          static_cast<uint64_t>(first_slot(in_layer, p + 1) - first_slot(in_layer, p)) * record;
    }
    const uint64_t staged = in_slots < n ? std::min(n, n - in_slots + kMostOfLayer) : 0;
    stage_up = std::max(stage_up, staged * head);
    stage_down = std::max(stage_down, staged * (record - head));
    counts += n * sizeof(uint32_t);
  }
}

MappedExperts::MappedExperts(Stream copies, Event sent, Event counted, Event copied, HalfEvents up, HalfEvents down)
    : copies_(std::move(copies)),
      sent_(std::move(sent)),
      counted_(std::move(counted)),
      copied_(std::move(copied)),
      halves_{std::move(up), std::move(down)} {}

// A copy may be under way.
MappedExperts::~MappedExperts() {
  static_cast<void>(static_cast<bool>(copies_.synchronize()));
  const CardTraffic traffic = this->traffic();
  if (uses_path_.empty() || traffic.hits + traffic.misses == 0) return;
  std::vector<float> uses;
  for (const Layer& layer : layers_) uses.insert(uses.end(), layer.heat.begin(), layer.heat.end());
  static_cast<void>(static_cast<bool>(write_uses(uses_path_, uses)));  // without it, the next start learns again
}

// What an earlier start has learned.
void MappedExperts::remember() {
  const std::vector<float> uses = uses_path_.empty() ? std::vector<float>() : read_uses(uses_path_, n_experts_);
  if (uses.empty()) return;
  for (Layer& layer : layers_) {
    const auto first = uses.begin() + static_cast<ptrdiff_t>(layer.first_expert);
    std::copy_n(first, layer.heat.size(), layer.heat.begin());
  }
}

Result<std::unique_ptr<MappedExperts>> MappedExperts::create(const Program& program,
                                                             std::span<const op::MoeFfn* const> mixtures, PackForm form,
                                                             int n_slots, Ledger& ledger, const LoadOptions& options) {
  TRY_ASSIGN(Stream copies, Stream::create());
  TRY_ASSIGN(Event sent, Event::create());
  TRY_ASSIGN(Event counted, Event::create());
  TRY_ASSIGN(Event copied, Event::create());
  TRY_ASSIGN(Event up_brought, Event::create());
  TRY_ASSIGN(Event up_used, Event::create());
  TRY_ASSIGN(Event down_brought, Event::create());
  TRY_ASSIGN(Event down_used, Event::create());
  std::unique_ptr<MappedExperts> made(new MappedExperts(std::move(copies), std::move(sent), std::move(counted),
                                                        std::move(copied), {std::move(up_brought), std::move(up_used)},
                                                        {std::move(down_brought), std::move(down_used)}));
  made->lay_out(program, mixtures, form, n_slots);
  const MappedSizes sizes(program, mixtures, form, n_slots);
  made->ledger_ = &ledger;
  made->piece_bytes_ = sizes.pieces;
  for (size_t p = 0; p < made->slots_.size(); ++p) {
    TRY_ASSIGN(made->slots_[p], DeviceBuffer<std::byte>::create(ledger, Purpose::weights, sizes.pieces[p]));
  }
  TRY_ASSIGN(made->stage_, DeviceBuffer<std::byte>::create(ledger, Purpose::weights, sizes.stage()));
  TRY_ASSIGN(made->places_, DeviceBuffer<const uint8_t*>::create(ledger, Purpose::weights, 2 * made->n_places_));
  TRY_ASSIGN(made->counts_, DeviceBuffer<uint32_t>::create(ledger, Purpose::weights, made->n_experts_));
  TRY_ASSIGN(made->host_places_, PinnedBuffer<const uint8_t*>::create(2 * made->n_places_));
  TRY_ASSIGN(made->host_counts_, PinnedBuffer<uint32_t>::create(made->n_experts_));
  made->stage_up_ = sizes.stage_up;
  for (Layer& layer : made->layers_) {
    const uint64_t up = sizes.stage_up / layer.head, down = sizes.stage_down / (layer.record - layer.head);
    layer.n_staged = static_cast<int>(std::min({up, down, static_cast<uint64_t>(layer.n_experts)}));
  }
  made->traffic_.ram_bytes = sizes.ram;
  made->traffic_.slot_bytes = sizes.slots;
  TRY(made->counts_.zero(made->copies_));
  if (options.fingerprint != 0 && !options.experts_folder.empty()) {
    made->uses_path_ = uses_path(options.experts_folder, options.fingerprint);
  }
  made->remember();
  TRY(made->take(program, form, options));
  TRY(made->fill_slots());
  return Result<std::unique_ptr<MappedExperts>>{std::move(made)};
}

void MappedExperts::lay_out(const Program& program, std::span<const op::MoeFfn* const> mixtures, PackForm form,
                            int n_slots) {
  for (const op::MoeFfn* mixture : mixtures) {
    Layer& layer = layers_.emplace_back();
    layer.n_experts = mixture->n_experts;
    layer.n_slots = std::min(n_slots, layer.n_experts);
    layer.first_expert = n_experts_;
    for (const MatrixId id : matrices_of(*mixture)) {
      const uint64_t bytes = expert_bytes(program.matrices[id], form, layer.n_experts);
      layer.parts.push_back({id, layer.record, bytes, n_places_});
      layer.head = layer.record;
      layer.record += bytes;
      n_places_ += static_cast<size_t>(layer.n_experts);
    }
    const auto n = static_cast<size_t>(layer.n_experts);
    n_experts_ += n;
    layer.slot_of.assign(n, kNone);
    layer.counted.assign(n, 0);
    layer.heat.assign(n, 0.0f);
    traffic_.n_slots += static_cast<uint64_t>(layer.n_slots);
  }
  traffic_.n_experts = n_experts_;
  pieces_.resize(program.matrices.size());
}

// Packs all experts into pinned memory, a layer at a time.
Status MappedExperts::take(const Program& program, PackForm form, const LoadOptions& options) {
  ThreadPool pool(options.n_threads);
  uint64_t done = 0;
  for (Layer& layer : layers_) {
    TRY_ASSIGN(layer.ram, PinnedBuffer<std::byte>::create(layer.record * static_cast<uint64_t>(layer.n_experts)));
    for (const Part& part : layer.parts) {
      const TensorView& stack = program.matrices[part.id];
      const uint64_t rows = stack.rows() / static_cast<uint64_t>(layer.n_experts);
      pool.run([&](Team& team) {
        team.parallel_for(layer.n_experts, 1, [&](int64_t begin, int64_t end) {
          for (int64_t e = begin; e < end; ++e) {
            std::byte* to = ram_record(layer, static_cast<int>(e)) + part.offset;
            pack_rows(stack, static_cast<uint64_t>(e) * rows, rows, to, form);
          }
        });
      });
      pieces_[static_cast<size_t>(part.id)] = {reinterpret_cast<const uint8_t*>(layer.ram.data() + part.offset),
                                               places_.data() + part.first_place};
      if (options.matrix_taken) options.matrix_taken(stack);
      done += part.bytes * static_cast<uint64_t>(layer.n_experts);
      if (options.progress) options.progress(done, traffic_.ram_bytes);
    }
    for (int e = 0; e < layer.n_experts; ++e) point(layer, e, ram_record(layer, e));
  }
  return Ok{};
}

// With those that were used most, as far as that is known, else with the first experts of every layer.
Status MappedExperts::fill_slots() {
  std::array<uint64_t, kSlotPieces> at{};
  for (Layer& layer : layers_) {
    layer.slots = at;
    for (int p = 0; p < kSlotPieces; ++p) {
      const int in_piece = first_slot(layer.n_slots, p + 1) - first_slot(layer.n_slots, p);
      at[static_cast<size_t>(p)] += static_cast<uint64_t>(in_piece) * layer.record;
    }
    std::vector<int> order(static_cast<size_t>(layer.n_experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return layer.heat[static_cast<size_t>(a)] > layer.heat[static_cast<size_t>(b)];
    });
    for (int slot = 0; slot < layer.n_slots; ++slot) {
      const int e = order[static_cast<size_t>(slot)];
      TRY(copies_.copy(slot_record(layer, slot), ram_record(layer, e), layer.record));
      layer.slot_of[static_cast<size_t>(e)] = slot;
      point(layer, e, slot_record(layer, slot));
    }
    point_prompts(layer);
  }
  TRY(send_tables(copies_));
  return copies_.synchronize();
}

void MappedExperts::point(const Layer& layer, int expert, const std::byte* record) {
  for (const Part& part : layer.parts) {
    host_places_[part.first_place + static_cast<size_t>(expert)] =
        reinterpret_cast<const uint8_t*>(record + part.offset);
  }
}

std::byte* MappedExperts::slot_record(const Layer& layer, int slot) const {
  const int piece = piece_of(layer.n_slots, slot), in_piece = slot - first_slot(layer.n_slots, piece);
  const auto p = static_cast<size_t>(piece);
  return slots_[p].data() + layer.slots[p] + static_cast<uint64_t>(in_piece) * layer.record;
}

// Those without a slot stand on the stage in their order. When slots were given up there may be more of them than it has
// room for: these are read where they are.
void MappedExperts::point_prompts(const Layer& layer) {
  uint64_t rank = 0;
  for (int e = 0; e < layer.n_experts; ++e) {
    const bool is_staged =
        layer.slot_of[static_cast<size_t>(e)] == kNone && rank < static_cast<uint64_t>(layer.n_staged);
    for (const Part& part : layer.parts) {
      const size_t at = part.first_place + static_cast<size_t>(e);
      const std::byte* staged = part.offset < layer.head
                                    ? stage_.data() + rank * layer.head + part.offset
                                    : stage_.data() + stage_up_ + rank * (layer.record - layer.head);
      host_places_[n_places_ + at] = is_staged ? reinterpret_cast<const uint8_t*>(staged) : host_places_[at];
    }
    rank += is_staged ? 1 : 0;
  }
}

Status MappedExperts::bring(const Stream& stream, int mixture, Half half) {
  const Layer& layer = layers_[static_cast<size_t>(mixture)];
  HalfEvents& events = halves_[half == Half::down];
  TRY(events.used.hold(copies_));
  const bool is_down = half == Half::down;
  const uint64_t from = is_down ? layer.head : 0, width = is_down ? layer.record - layer.head : layer.head;
  std::byte* to = stage_.data() + (is_down ? stage_up_ : 0);
  // Neighbours without a slot go together.
  int room = layer.n_staged;
  for (int e = 0; e < layer.n_experts && room > 0;) {
    int end = e;
    while (end < layer.n_experts && end - e < room && layer.slot_of[static_cast<size_t>(end)] == kNone) ++end;
    room -= end - e;
    if (end > e) {
      const auto n = static_cast<uint64_t>(end - e);
      TRY(copies_.copy_rows({to, width}, {ram_record(layer, e) + from, layer.record}, width, n));
      to += n * width;
    }
    e = end + 1;
  }
  TRY(events.brought.record(copies_));
  return events.brought.hold(stream);
}

Status MappedExperts::done_with(const Stream& stream, Half half) {
  return halves_[half == Half::down].used.record(stream);
}

Status MappedExperts::send_tables(const Stream& stream) {
  TRY(places_.write(stream, host_places_.span()));
  return sent_.record(stream);
}

Status MappedExperts::rearrange(const Stream& stream) {
  if (!moves_.empty()) {
    TRY_ASSIGN(const bool is_done, copied_.is_done());
    return is_done ? end_moves(stream) : Ok{};
  }
  if (is_counting_) {
    TRY_ASSIGN(const bool is_done, counted_.is_done());
    if (!is_done) return Ok{};
    is_counting_ = false;
    learn();
    TRY_ASSIGN(const bool takes, take_again(stream));
    return takes ? Ok{} : begin_moves(stream, chosen_moves());
  }
  if (++n_passes_ < kPassesCounted) return Ok{};
  n_passes_ = 0;
  is_counting_ = true;
  TRY(counts_.read(stream, host_counts_.span()));
  return counted_.record(stream);
}

Status MappedExperts::rest(const Stream& stream) {
  if (moves_.empty()) return Ok{};
  TRY(copied_.synchronize());
  return end_moves(stream);
}

void MappedExperts::learn() {
  std::lock_guard lock(mutex_);
  for (Layer& layer : layers_) {
    for (size_t e = 0; e < layer.heat.size(); ++e) {
      const uint32_t now = host_counts_[layer.first_expert + e], uses = now - layer.counted[e];
      layer.counted[e] = now;
      layer.heat[e] = layer.heat[e] * kFading + static_cast<float>(uses);
      (layer.slot_of[e] == kNone ? traffic_.misses : traffic_.hits) += uses;
      if (layer.slot_of[e] == kNone) traffic_.bytes_read += uses * layer.record;
    }
  }
}

// In every layer the hottest experts without a slot for the coldest that have one, as long as that is worth it.
std::vector<MappedExperts::Move> MappedExperts::chosen_moves() {
  std::vector<Move> moves;
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    if (layer.n_slots == 0 || layer.n_slots == layer.n_experts) continue;
    std::vector<int> inside, outside;
    for (int e = 0; e < layer.n_experts; ++e) {
      (layer.slot_of[static_cast<size_t>(e)] == kNone ? outside : inside).push_back(e);
    }
    const auto heat = [&](int e) { return layer.heat[static_cast<size_t>(e)]; };
    const size_t most = std::min({inside.size(), outside.size(), size_t{kMostOfLayer}});
    std::partial_sort(inside.begin(), inside.begin() + static_cast<ptrdiff_t>(most), inside.end(),
                      [&](int a, int b) { return std::pair(heat(a), a) < std::pair(heat(b), b); });
    std::partial_sort(outside.begin(), outside.begin() + static_cast<ptrdiff_t>(most), outside.end(),
                      [&](int a, int b) { return std::pair(-heat(a), a) < std::pair(-heat(b), b); });
    for (size_t i = 0; i < most && heat(outside[i]) > heat(inside[i]) * kMoreThan + kMoreBy; ++i) {
      moves.push_back({l, outside[i], layer.slot_of[static_cast<size_t>(inside[i])]});
    }
  }
  // The best ones of all layers.
  const auto heat = [&](const Move& m) { return layers_[m.layer].heat[static_cast<size_t>(m.expert)]; };
  std::stable_sort(moves.begin(), moves.end(), [&](const Move& a, const Move& b) { return heat(a) > heat(b); });
  if (moves.size() > kMostMoves) moves.resize(kMostMoves);
  return moves;
}

// For the slots of a piece, which nothing is in.
std::vector<MappedExperts::Move> MappedExperts::moves_into(int piece) {
  std::vector<Move> moves;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const int first = first_slot(layer.n_slots, piece), end = first_slot(layer.n_slots, piece + 1);
    std::vector<int> outside;
    for (int e = 0; e < layer.n_experts; ++e) {
      if (layer.slot_of[static_cast<size_t>(e)] == kNone) outside.push_back(e);
    }
    std::stable_sort(outside.begin(), outside.end(), [&](int a, int b) {
      return layer.heat[static_cast<size_t>(a)] > layer.heat[static_cast<size_t>(b)];
    });
    for (int slot = first; slot < end; ++slot) moves.push_back({l, outside[static_cast<size_t>(slot - first)], slot});
  }
  return moves;
}

Result<bool> MappedExperts::give_up(const Stream& stream) {
  const auto given = std::find_if(slots_.rbegin(), slots_.rend(), [](const auto& piece) { return piece.size() > 0; });
  if (given == slots_.rend()) return false;
  const int piece = static_cast<int>(slots_.rend() - given) - 1;
  TRY(rest(stream));
  TRY(sent_.synchronize());
  uint64_t n_slots = 0;
  for (Layer& layer : layers_) {
    for (int e = 0; e < layer.n_experts; ++e) {
      int& slot = layer.slot_of[static_cast<size_t>(e)];
      if (slot == kNone || piece_of(layer.n_slots, slot) != piece) continue;
      slot = kNone;
      point(layer, e, ram_record(layer, e));
      ++n_slots;
    }
    point_prompts(layer);
  }
  TRY(send_tables(stream));
  TRY(stream.synchronize());
  *given = {};
  take_again_at_ = std::chrono::steady_clock::now() + take_again_after_;
  take_again_after_ = std::min<std::chrono::steady_clock::duration>(2 * take_again_after_, kLongestWait);
  std::lock_guard lock(mutex_);
  traffic_.n_slots -= n_slots;
  traffic_.slot_bytes -= piece_bytes_[static_cast<size_t>(piece)];
  return true;
}

bool MappedExperts::wants_memory() const {
  for (size_t p = 0; p < slots_.size(); ++p) {
    if (slots_[p].size() == 0 && piece_bytes_[p] > 0) return std::chrono::steady_clock::now() >= take_again_at_;
  }
  return false;
}

Result<bool> MappedExperts::take_again(const Stream& stream) {
  for (size_t p = 0; p < slots_.size(); ++p) {
    if (slots_[p].size() > 0 || piece_bytes_[p] == 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (now < take_again_at_) return false;
    take_again_at_ = now + kFirstWait;
    auto piece = DeviceBuffer<std::byte>::create(*ledger_, Purpose::weights, piece_bytes_[p]);
    if (!piece) return false;  // not yet
    slots_[p] = std::move(*piece);
    std::vector<Move> moves = moves_into(static_cast<int>(p));
    {
      std::lock_guard lock(mutex_);
      traffic_.n_slots += moves.size();
      traffic_.slot_bytes += piece_bytes_[p];
    }
    TRY(begin_moves(stream, std::move(moves)));
    return true;
  }
  return false;
}

Status MappedExperts::begin_moves(const Stream& stream, std::vector<Move> moves) {
  moves_ = std::move(moves);
  if (moves_.empty()) return Ok{};
  TRY(sent_.synchronize());
  for (const Move& move : moves_) {
    Layer& layer = layers_[move.layer];
    const auto leaving = std::find(layer.slot_of.begin(), layer.slot_of.end(), move.slot);
    if (leaving == layer.slot_of.end()) continue;
    *leaving = kNone;
    const int expert = static_cast<int>(leaving - layer.slot_of.begin());
    point(layer, expert, ram_record(layer, expert));
  }
  for (const Move& move : moves_) point_prompts(layers_[move.layer]);
  TRY(send_tables(stream));
  TRY(sent_.hold(copies_));
  for (const Move& move : moves_) {
    const Layer& layer = layers_[move.layer];
    TRY(copies_.copy(slot_record(layer, move.slot), ram_record(layer, move.expert), layer.record));
  }
  return copied_.record(copies_);
}

Status MappedExperts::end_moves(const Stream& stream) {
  TRY(sent_.synchronize());
  for (const Move& move : moves_) {
    Layer& layer = layers_[move.layer];
    layer.slot_of[static_cast<size_t>(move.expert)] = move.slot;
    point(layer, move.expert, slot_record(layer, move.slot));
  }
  for (const Move& move : moves_) point_prompts(layers_[move.layer]);
  {
    std::lock_guard lock(mutex_);
    traffic_.moved += moves_.size();
  }
  moves_.clear();
  return send_tables(stream);
}

}  // namespace chimere::cuda
