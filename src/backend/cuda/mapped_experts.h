// mapped_experts.h  Routed experts in RAM that the card reads by itself, over the bus, and slots on the card for those
// that are used most.
//
// All experts of such a layer are in pinned memory, in the kernels' format, and every layer has the same number of slots
// on the card. A table in device memory says where each expert is; kernels read that place and do the same with what
// they find there, so that bits do not depend on it. Nothing waits for the host: what is not in a slot is read from RAM
// while it is multiplied.
//
// Decode passes count the uses of each expert. Now and then the counts are taken to the host, where they fade, and
// experts that are used more than one in a slot take its place, in three steps between passes:
//
//   1. the table points to RAM for the one that leaves; passes begun from here on do not touch its slot
//   2. behind the passes before that, a stream of its own copies the newcomer into the slot
//   3. when that is done, the table points to the slot
//
// Slots are in several pieces of memory. Where the card has no more for the states of sequences, as another program took
// what was left, a piece is given up, and taken again later, when there is room: its experts are in RAM meanwhile, and no
// bit changes.
//
// A prompt uses nearly all experts, and reading whole blocks is several times as fast as what its kernels would do. For
// it the experts of a layer that have no slot are copied to a place of their own on the card, by the copy engine: gates
// and up-projections while the layer before is in its down-projection, down-projections while this one is in its up-projection.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/weights/pack.h"
#include "base/result.h"

namespace chimere::cuda {

// The memory of slots that can be given up by itself.
inline constexpr int kSlotPieces = 8;

// What the experts of some layers take.
struct MappedSizes {
  uint64_t ram = 0;
  std::array<uint64_t, kSlotPieces> pieces{};  // of `slots`
  // On the card. The stage has the up-projections of the layer with the most, gates with them, then down-projections.
  uint64_t slots = 0, stage_up = 0, stage_down = 0, places = 0, counts = 0;

  // n_slots: of every layer, where it has as many experts.
  MappedSizes(const Program& program, std::span<const op::MoeFfn* const> mixtures, PackForm form, int n_slots);
  uint64_t stage() const { return stage_up + stage_down; }
  uint64_t card() const { return slots + stage() + places + counts; }
  uint64_t taken() const {
    uint64_t bytes = Ledger::taken_bytes(stage()) + Ledger::taken_bytes(places) + Ledger::taken_bytes(counts);
    for (const uint64_t piece : pieces) bytes += Ledger::taken_bytes(piece);
    return bytes;
  }
};

class MappedExperts {
 public:
  // Of the options, n_threads, progress, matrix_taken, and where uses are kept between two starts matter.
  static Result<std::unique_ptr<MappedExperts>> create(const Program& program,
                                                       std::span<const op::MoeFfn* const> mixtures, PackForm form,
                                                       int n_slots, Ledger& ledger, const LoadOptions& options);
  ~MappedExperts();

  // Of a matrix of these layers: expert 0 in RAM, and the table.
  const uint8_t* data(MatrixId id) const { return pieces_[static_cast<size_t>(id)].first; }
  const uint8_t* const* places(MatrixId id) const { return pieces_[static_cast<size_t>(id)].places; }
  // The table for prompts.
  const uint8_t* const* staged_places(MatrixId id) const { return places(id) + n_places_; }
  // How often each expert of a layer was used, in device memory: for decode passes to count in.
  uint32_t* uses(int mixture) const { return counts_.data() + layers_[static_cast<size_t>(mixture)].first_expert; }

  // Before a decode pass is given to the stream: takes what the passes before it counted, and moves experts.
  Status rearrange(const Stream& stream);

  // Whether it will ask the card for memory that it gave up.
  bool wants_memory() const;
  // Gives a piece of the slots back to the card, between passes. False where there is none left.
  Result<bool> give_up(const Stream& stream);

  // Ends what is on its way: nothing touches the card's memory by itself afterwards.
  Status rest(const Stream& stream);

  // For a prompt: brings what a layer's up-projection (gates with it) or down-projection lacks, and makes the stream wait
  // for it. Afterwards done_with() says that its kernels have been given to the stream.
  enum class Half { up, down };
  Status bring(const Stream& stream, int mixture, Half half);
  Status done_with(const Stream& stream, Half half);

  // From any thread.
  CardTraffic traffic() const {
    std::lock_guard lock(mutex_);
    return traffic_;
  }
  uint64_t ram_bytes() const { return traffic().ram_bytes; }

 private:
  // A matrix of one layer's experts.
  struct Part {
    MatrixId id;
    uint64_t offset, bytes;  // inside an expert's record, and there
    size_t first_place;      // of its part of the table
  };
  struct Layer {
    std::vector<Part> parts;
    int n_experts = 0, n_slots = 0;
    int n_staged = 0;                           // experts that the stage has room for
    std::array<uint64_t, kSlotPieces> slots{};  // where they begin in each piece
    size_t first_expert = 0;                    // among those of all layers
    uint64_t record = 0;                        // bytes of an expert
    uint64_t head = 0;                          // of these, before the down-projection
    PinnedBuffer<std::byte> ram;
    std::vector<int> slot_of;       // by expert, or kNone
    std::vector<uint32_t> counted;  // the last count
    std::vector<float> heat;        // uses, faded
  };
  struct Piece {
    const uint8_t* first = nullptr;
    const uint8_t* const* places = nullptr;
  };
  struct Move {
    size_t layer;
    int expert, slot;
  };

  // Of a half on the stage.
  struct HalfEvents {
    Event brought, used;
  };

  // Before a piece is taken again; twice as long each time that one is given up once more. Tests do not wait for it.
#ifdef CHIMERE_SIMT_EMULATOR
  static constexpr std::chrono::milliseconds kFirstWait{100}, kLongestWait{400};
#else
  static constexpr std::chrono::seconds kFirstWait{10}, kLongestWait{640};
#endif

  MappedExperts(Stream copies, Event sent, Event counted, Event copied, HalfEvents up, HalfEvents down);
  void lay_out(const Program& program, std::span<const op::MoeFfn* const> mixtures, PackForm form, int n_slots);
  Status take(const Program& program, PackForm form, const LoadOptions& options);
  Status fill_slots();
  void remember();
  void point(const Layer& layer, int expert, const std::byte* record);
  void point_prompts(const Layer& layer);
  Status send_tables(const Stream& stream);
  void learn();
  std::vector<Move> chosen_moves();
  std::vector<Move> moves_into(int piece);
  // What shall be in slots: those that leave them, if any do, and those that come.
  Status begin_moves(const Stream& stream, std::vector<Move> moves);
  // A piece that was given up, where the card has the memory.
  Result<bool> take_again(const Stream& stream);
  Status end_moves(const Stream& stream);
  static std::byte* ram_record(const Layer& layer, int expert) {
    return layer.ram.data() + static_cast<uint64_t>(expert) * layer.record;
  }
  std::byte* slot_record(const Layer& layer, int slot) const;

  std::string uses_path_;  // empty: they are not kept
  std::vector<Layer> layers_;
  std::vector<Piece> pieces_;  // by MatrixId
  size_t n_places_ = 0, n_experts_ = 0;
  Ledger* ledger_ = nullptr;
  std::array<DeviceBuffer<std::byte>, kSlotPieces> slots_;
  std::array<uint64_t, kSlotPieces> piece_bytes_{};
  std::chrono::steady_clock::time_point take_again_at_{};
  std::chrono::steady_clock::duration take_again_after_ = kFirstWait;
  DeviceBuffer<std::byte> stage_;
  uint64_t stage_up_ = 0;                     // bytes of the stage before the down-projections
  DeviceBuffer<const uint8_t*> places_;       // of decode passes, then of prompts
  PinnedBuffer<const uint8_t*> host_places_;  // the table as it will be; unchanged while sent_ is not done
  DeviceBuffer<uint32_t> counts_;
  PinnedBuffer<uint32_t> host_counts_;
  Stream copies_;
  Event sent_, counted_, copied_;
  HalfEvents halves_[2];
  int n_passes_ = 0;  // since counts were asked for
  bool is_counting_ = false;
  std::vector<Move> moves_;  // on their way
  mutable std::mutex mutex_;
  CardTraffic traffic_;  // by mutex_
};

}  // namespace chimere::cuda
