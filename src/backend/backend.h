// backend.h  What runs a Program: three implementations, reference/ (oracle), cpu/, cuda/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/expert_traffic.h"
#include "backend/ops.h"
#include "base/result.h"
#include "sampling/sampler.h"

namespace chimere {

struct Adapter;  // adapter.h
struct AdapterSet;

// Where one sequence's state lives, in backend memory. Filled by cache/, read and written by ops.
struct SequenceView {
  std::byte* const* kv_pages = nullptr;  // [ceil((pos + n_tokens) / kPageTokens)], all writable where this slice writes
  float* recurrent = nullptr;            // the blob of StateLayout
  // When set, every recurrent op also records its raw inputs here, so that a rollback can replay them exactly:
  // [n_tokens of the slice][ReplayLayout::floats_per_token].
  float* replay = nullptr;
  // When set, the first token of the slice leaves its state in `recurrent` and the last one here, which held nothing: if
  // those behind the first are taken back, the state is there. REQUIRES otherwise than null: Executable::splits_drafts(),
  // a slice of the decode class with two tokens at least.
  float* recurrent_ahead = nullptr;

  float* behind_first() const { return recurrent_ahead ? recurrent_ahead : recurrent; }
};

// n_tokens consecutive tokens of one sequence, starting at position pos; their rows start at first_row.
struct Slice {
  SequenceView state;
  int32_t pos = 0;
  int32_t n_tokens = 0;
  int32_t first_row = 0;
  const AdapterSet* adapters = nullptr;  // null: none. REQUIRES otherwise: the executable holds each of them
  // For encoders: from this token of the slice on, tokens are of the second type, the other text of a pair.
  int32_t second_kind_at = INT32_MAX;

  bool is_adapted() const;
  bool is_decode() const { return n_tokens <= kDecodeTokens; }
};

inline constexpr int32_t kHeadBlock = 16;  // tokens of Batch::head_blocks

// One forward pass: any mix of prefill chunks and single tokens. A sequence appears in at most one slice.
struct Batch {
  std::vector<int32_t> tokens;      // [n_rows]
  std::vector<Slice> slices;        // cover the rows in order
  std::vector<int32_t> logit_rows;  // rows whose logits are wanted, ascending
  // [n_rows, d_model] in host memory: run the draft pass of the program instead of its trunk, over these hidden states.
  // A slice of it may begin at any position whose predecessors the pass has seen, also beyond the trunk's. It writes
  // nothing but its own KV layer. REQUIRES otherwise than null: Program::has_drafts(), and no adapters.
  const float* draft_hidden = nullptr;
  // Run the draft pass over blocks: each slice is a block, behind what the trunk has run. REQUIRES otherwise than false:
  // Program::draft_blocks, and no adapters.
  bool draft_blocks = false;
  // [slices], descending, or empty. With draft_hidden: a chain of so many guesses behind each slice. Each is the best
  // token of its row; with that row's hidden state it is the input of the next. logit_rows are the last rows of the
  // slices, and Outputs::guesses is all that comes back.
  // REQUIRES otherwise than empty: Executable::chains_drafts(), decode-class slices with pages for the chain.
  std::vector<int32_t> draft_depths = {};
  // Blocks of kHeadBlock tokens of the vocabulary, ascending: logits of these alone are computed, and others stay as they
  // were in Outputs::logits; what is drawn is the best token of them. Empty: all. REQUIRES otherwise than empty:
  // Executable::prepare_head_blocks() of as many returned true; the draft pass, where there is one;
  // draws that are greedy and nothing else.
  std::span<const int32_t> head_blocks = {};

  int n_rows() const { return static_cast<int>(tokens.size()); }
  bool is_draft_pass() const { return draft_hidden || draft_blocks; }
};

// What to draw from a logit row, as Sampler::sample takes it. Without params nothing is drawn.
struct Draw {
  const SamplingParams* params = nullptr;
  const SamplerState* state = nullptr;
  RowInputs inputs;
  uint64_t position = 0;
  std::span<const int32_t> ahead = {};  // tokens behind those of the state that count as accepted: guesses
};

// Where the results for the batch's logit rows go, in host memory. A null pointer: not computed.
struct Outputs {
  float* logits = nullptr;  // [logit_rows, n_vocab]; rows that a token is drawn from are not written
  float* hidden = nullptr;  // [logit_rows, d_model], after the final norm
  // [n_rows, d_model]: the same of every row, for a draft pass. REQUIRES otherwise than null: the program has logits.
  float* row_hidden = nullptr;
  // [logit_rows], or empty. The logits stay on the device and only the drawn tokens come back.
  // REQUIRES: Executable::prepare_draws() returned true.
  std::span<const Draw> draws = {};
  std::span<Result<Sampled>> drawn = {};  // one for each draw
  std::span<int32_t> guesses = {};        // of Batch::draft_depths, one slice's after the other's
};

// Allocates and copies sequence state in a backend's memory.
class StateMemory {
 public:
  virtual ~StateMemory() = default;
  // 64-byte aligned; zeroed, but for the last `unset_bytes`, which may hold anything.
  virtual Result<std::byte*> allocate(uint64_t bytes, uint64_t unset_bytes = 0) = 0;
  virtual void release(std::byte* memory, uint64_t bytes) = 0;
  virtual void zero(std::byte* to, uint64_t bytes) = 0;
  // What it can still give, where there is a figure: no more of it is promised.
  virtual uint64_t free_bytes() const { return UINT64_MAX; }
  virtual void copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;  // inside the backend
  virtual void read(std::byte* host, const std::byte* from, uint64_t bytes) = 0;
  virtual void write(std::byte* to, const std::byte* host, uint64_t bytes) = 0;
};

// Called while weights are loaded: bytes done, bytes in total.
using LoadProgress = std::function<void(uint64_t, uint64_t)>;
// Called when a matrix of the file has been copied and its mapped pages may be dropped.
using MatrixTaken = std::function<void(const TensorView&)>;

// Rows that a matrix was multiplied with.
struct MatrixInput {
  const Program& program;
  MatrixId matrix;
  int expert;         // of a stack; 0 otherwise
  const float* rows;  // the first one; `width` values each, one behind the other
  int64_t width;
  int64_t n_rows;
  std::span<const int32_t> which = {};  // the rows meant, or empty: all of them
};
// Called for each matrix of the ops of a batch, in order, by one thread.
using InputObserver = std::function<void(const MatrixInput&)>;

// How many experts of a mixture a token uses (op::MoeFfn): `least` to `most`, by the entropy of its router.
struct ExpertRange {
  int least = 0;  // 0: what the file says, always
  int most = 0;   // 0: what the file says
  float entropy_low = 0.3f, entropy_high = 0.7f;

  // Writes it into every op::MoeFfn. Refuses a range that the program cannot do.
  Status apply_to(Program& program) const;
};

inline constexpr int kAllMixtures = -1;
inline constexpr int kFittingMixtures = -2;
inline constexpr int kAllLayers = -1;
inline constexpr int kFittingLayers = -2;
// LoadOptions::gpu_layers as it is written on a command line: a number, "all" or "auto".
Result<int> gpu_layers_from_text(std::string_view text);

// LoadOptions::cpu_moe as it is written on a command line: a number, "all" or "auto".
Result<int> cpu_moe_from_text(std::string_view text);

// Who computes with routed experts that are in RAM beside a card: the CPU, where they are, or the card, which reads them
// over the bus and keeps those that are used most. automatic: the card, where RAM has room for all of them.
enum class RamExperts { automatic, cpu, card };
// As it is written on a command line: "auto", "cpu" or "card".
Result<RamExperts> ram_experts_from_text(std::string_view text);

// LoadOptions::imposed_skew as it is written on a command line: "model" for none, "uniform" or "zipf:1.0".
Result<std::optional<float>> imposed_skew_from_text(std::string_view text);

struct LoadOptions {
  KvFormat kv;
  int decode_rows = kDecodeTokens;  // batch rows reserved for decoding sequences beside a slice of a prompt
  int max_rows = 0;    // the largest batch; 0: a prefill slice that suits the model, and some decoding rows beside it
  bool exact = false;  // activations stay float32 whatever the weights are
  int n_threads = 0;   // 0: one per core
  ExpertRange experts;
  std::string drafter;        // a DFlash drafter's file, in place of the file's draft pass; empty: none
  bool drafts = false;        // with the file's draft pass, where it has one; without, nothing of that is held or kept
  uint64_t device_bytes = 0;  // the most of a card's memory to use; 0: all that is free
  // CUDA only: the routed experts of the first `cpu_moe` MoE layers stay in host memory. kAllMixtures: of every MoE layer.
  // kFittingMixtures: what does not fit on the card beside all else, with the state of sequences as it is wanted, as far
  // as that is possible: whole layers where the CPU computes them, some experts of every layer where the card does.
  int cpu_moe = 0;
  RamExperts ram_experts = RamExperts::automatic;
  // CUDA only: layers whose matrices are on the card; those of others, but for routed experts, are in host memory and
  // brought to the card for every pass. kFittingLayers: as many as fit beside the state of sequences as it is wanted, once
  // all routed experts that may are in host memory. With as many as there are, or more: all.
  int gpu_layers = kAllLayers;
  // CPU, and experts beside a card: RAM for weights. What is more are routed experts, which then lie on disk, and those
  // that are used most in RAM. 0: any.
  uint64_t ram_bytes = 0;
  std::string experts_folder;     // for those files
  uint64_t fingerprint = 0;       // of the weights, so that the files are found again; 0: they are not kept
  int n_sequences = 1;            // that have room beside the model
  int context_tokens = 0;         // of each of them; 0: one page
  uint64_t state_bytes = 0;       // of all of them, where that is more
  bool drafts_need_room = false;  // `drafts` only where no experts are in RAM for want of room on the card
  // For benchmarks, CUDA only: in decode passes experts are drawn, with probabilities as 1 / rank^skew of an order that
  // every layer has of its own.
  std::optional<float> imposed_skew;
  LoadProgress progress;
  MatrixTaken matrix_taken;
  // Called by models::Model before a program is bound to a backend, with these options as they are by then. An error is
  // that of the load.
  std::function<Status(const Program&, const LoadOptions&, bool on_card)> before_load;
  InputObserver observe;  // sees what matrices are multiplied with; CPU only
};

// For backends that cannot show what their matrices are multiplied with.
inline Status refuse_observer(const LoadOptions& options, const char* backend) {
  if (!options.observe) return Ok{};
  return Error{Code::unsupported, std::string("backend '") + backend +
                                      "' does not show what its matrices are multiplied with; 'cpu' does"};
}

// The default of LoadOptions::max_rows. A batch should be large enough that the tokens of an expert share each read of
// its weights: about 16 tokens per chosen expert, within bounds that keep activations small beside the weights and a
// step short enough for the people whose answers wait for it.
int default_max_rows(const Program& program, int decode_rows);

// The longest slice of a prompt in a batch of max_rows: whole chunks, or the whole batch when it is smaller than one.
inline int prefill_rows(int max_rows, int decode_rows) {
  const int whole = (max_rows - decode_rows) / kChunkTokens * kChunkTokens;
  return whole > 0 ? whole : max_rows;
}

// Where the weights of a model went on a machine with a card, and why.
struct Placement {
  int n_mixtures = 0;       // layers with routed experts
  int n_hosted = 0;         // of these, those whose experts are in RAM
  bool card_reads = false;  // these experts, and has a slot for `n_slots` of each layer's
  int n_slots = 0;
  int n_layers = 0;           // that may be in RAM
  int n_layers_in_ram = 0;    // of these, those whose other weights are there, and brought to the card for every pass
  uint64_t host_bytes = 0;    // of all that is in RAM
  uint64_t card_bytes = 0;    // of the weights on the card
  uint64_t budget_bytes = 0;  // of the card's memory, what may be used
  uint64_t everything_bytes = 0;  // what it would take to have all of them there, with working memory and states
  std::string text;               // in words
};

// What a card reports about itself, for benchmarks.
struct DeviceReport {
  std::string name;
  std::string memory;       // what its memory is used for, in words
  double copy_bytes_s = 0;  // copies inside its memory, bytes read and bytes written
  uint64_t peak_bytes = 0;  // of its memory, that were in use at once so far
};

// The launches of one kind of kernel in a batch, timed alone.
struct FamilyTime {
  std::string name;
  int n_launches = 0;
  double seconds = 0;
};

// A program bound to a backend: weights in place, buffers allocated. Used by one thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  // Runs the batch. Fails only when the device fails.
  // REQUIRES: 1 <= n_rows <= max_rows, tokens in [0, n_vocab), slices and pages as Batch says.
  virtual Status run(const Batch& batch, const Outputs& outputs) = 0;

  // Advances recurrent states over n_tokens inputs recorded through SequenceView::replay by decode-class slices, bit
  // for bit as run() did.
  virtual Status replay(float* recurrent, const float* recorded, int n_tokens) = 0;

  // Prepares for Outputs::draws; `suppressed` ids stand for no text and are never drawn. False: this backend leaves
  // drawing to the host's Sampler, or has no memory left for it.
  virtual Result<bool> prepare_draws(std::span<const int32_t> suppressed) {
    static_cast<void>(suppressed);
    return false;
  }

  // Whether it takes Batch::draft_depths, once prepare_draws() has returned true.
  virtual bool chains_drafts() const { return false; }
  // Whether it takes SequenceView::recurrent_ahead.
  virtual bool splits_drafts() const { return false; }
  // Makes room for Batch::head_blocks of up to so many blocks; may be called again, with more. False: this backend
  // computes all logits whenever it computes any, or has no memory left for it.
  virtual bool prepare_head_blocks(int n_blocks) {
    static_cast<void>(n_blocks);
    return false;
  }

  // Whether slices may have adapters.
  virtual bool has_adapters() const { return false; }
  // Copies an adapter to where kernels can read it. The result goes into Adapter::held, which keeps the copy alive and
  // must be released before the executable. Null where the adapter can be used in place. Any thread. Fails if full.
  virtual Result<std::shared_ptr<const void>> hold_adapter(const Adapter& adapter) {
    static_cast<void>(adapter);
    return std::shared_ptr<const void>();
  }

  // Brings changed values of an adapter that it holds to where kernels read them, for adapters that learn. By the thread
  // that runs batches, between two of them. REQUIRES: ranks and matrices are those that were held.
  virtual Status refresh_adapter(const Adapter& adapter) {
    static_cast<void>(adapter);
    return Ok{};
  }

  // Gives the card's memory to other programs until wake(): weights, states and working memory go to the host's, and
  // come back as they were. Nothing else may be called meanwhile but what releases memory. A failure changes nothing.
  // Returns the bytes that were given away.
  virtual Result<uint64_t> sleep() {
    return Error{Code::unsupported, "the model lies in this machine's memory and not on a card: no card to give back"};
  }
  // Fails as exhausted while others hold that memory, and may be called again. Nothing happens where it is awake.
  virtual Status wake() { return Ok{}; }

  // Nothing where no experts are on disk. Any thread.
  virtual std::optional<ExpertTraffic> expert_traffic() const { return std::nullopt; }
  virtual std::optional<CardTraffic> card_traffic() const { return std::nullopt; }

  // Nothing when the model runs on the CPU.
  virtual Result<std::optional<DeviceReport>> report() { return std::optional<DeviceReport>{}; }
  // Times each kind of launch of the batch alone, the median of `repeats`. Destroys the sequences' state. Empty where
  // there are no launches.
  virtual Result<std::vector<FamilyTime>> profile(const Batch& batch, int repeats) {
    static_cast<void>(batch), static_cast<void>(repeats);
    return std::vector<FamilyTime>{};
  }

  virtual const Program& program() const = 0;
  virtual const StateLayout& layout() const = 0;
  virtual StateMemory& memory() = 0;
  virtual int max_rows() const = 0;
  // The longest slice of a prompt that leaves room for LoadOptions::decode_rows in the same batch.
  virtual int prefill_rows() const = 0;
  virtual uint64_t weight_bytes() const = 0;  // as the backend stores them
  // The same for one matrix of the program.
  virtual uint64_t matrix_bytes(MatrixId id) const { return program().matrices[id].size_bytes(); }
  virtual uint64_t scratch_bytes() const = 0;  // activations and working memory
  // Nothing when the model runs on the CPU.
  virtual std::optional<Placement> placement() const { return std::nullopt; }
};

// What a token's replay record holds: for each recurrent layer its raw conv input, then the inputs of its gates:
//   GdnMix  alpha, beta      Mamba2Mix  dt before bias and softplus      SelectiveScan  x, dt, B as it reads them
struct ReplayLayout {
  explicit ReplayLayout(const StateLayout& state) {
    for (const RecurrentLayer& layer : state.recurrent()) {
      offset.push_back(floats_per_token);
      floats_per_token += layer.conv_channels + layer.recorded_gates;
    }
  }
  std::vector<int64_t> offset;  // of each layer inside a token's record, in floats
  int64_t floats_per_token = 0;
};

namespace reference {
Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options);
}
namespace cpu {
Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options);
}
// In builds with CUDA alone (CHIMERE_HAS_CUDA).
namespace cuda {
Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options);
}

}  // namespace chimere
