// executable.cpp  Runs a program on a CUDA card: a batch is staged, run in passes, and its results are copied back.
#include <algorithm>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/adapters.h"
#include "backend/cuda/card_plan.h"
#include "backend/cuda/drawing.h"
#include "backend/cuda/head_part.h"
#include "backend/cuda/host_experts.h"
#include "backend/cuda/imposed_routing.h"
#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/lowering.h"
#include "backend/cuda/mapped_experts.h"
#include "backend/cuda/measure.h"
#include "backend/cuda/pass.h"
#include "backend/cuda/profile.h"
#include "backend/cuda/program_binding.h"
#include "backend/cuda/runtime/device.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/state_memory.h"
#include "backend/cuda/step_graphs.h"
#include "backend/cuda/support.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(Program program, StateLayout layout, const DeviceInfo& device, const CardPlan& plan, Stream stream)
      : program_(std::move(program)),
        layout_(std::move(layout)),
        device_(device),
        plan_(plan),
        ledger_(plan.budget),
        stream_(std::move(stream)),
        binding_(program_, plan.hosted, plan.form),
        memory_(ledger_, stream_, layout_.page_bytes()),
        graphs_(ledger_),
        replays_(ledger_) {}
  // The card may still be at work on what we own.
  ~CudaExecutable() override {
    const HostLane::Attention attention(host_ ? host_->lane() : nullptr);
    static_cast<void>(static_cast<bool>(stream_.synchronize()));
  }

  Status load(const LoadOptions& options);

  Status run(const Batch& batch, const Outputs& outputs) override;
  Status replay(float* recurrent, const float* recorded, int n_tokens) override;
  Result<bool> prepare_draws(std::span<const int32_t> suppressed) override;
  bool chains_drafts() const override { return drawing_.has_value(); }
  bool prepare_head_blocks(int n_blocks) override;
  bool has_adapters() const override { return true; }
  Result<std::shared_ptr<const void>> hold_adapter(const Adapter& adapter) override { return adapters_->hold(adapter); }
  Status refresh_adapter(const Adapter& adapter) override { return adapters_->refresh(stream_, adapter); }
  Result<uint64_t> sleep() override;
  Status wake() override { return ledger_.wake(stream_); }
  std::optional<ExpertTraffic> expert_traffic() const override { return host_ ? host_->traffic() : std::nullopt; }
  std::optional<CardTraffic> card_traffic() const override {
    const MappedExperts* mapped = binding_.mapped();
    return mapped ? std::optional(mapped->traffic()) : std::nullopt;
  }
  Result<std::optional<DeviceReport>> report() override;
  Result<std::vector<FamilyTime>> profile(const Batch& batch, int repeats) override;

  const Program& program() const override { return program_; }
  const StateLayout& layout() const override { return layout_; }
  StateMemory& memory() override { return memory_; }
  int max_rows() const override { return max_rows_; }
  int prefill_rows() const override { return prefill_rows_; }
  uint64_t weight_bytes() const override { return binding_.size_bytes() + ram_bytes(); }
  uint64_t matrix_bytes(MatrixId id) const override {
    const TensorView& matrix = program_.matrices[id];
    return binding_.weight(id) ? packed_bytes(matrix, binding_.form()) : matrix.size_bytes();
  }
  uint64_t scratch_bytes() const override { return ledger_.used_bytes(Purpose::scratch); }
  std::optional<Placement> placement() const override { return placement_; }

 private:
  Status take_weights(const LoadOptions& options);
  uint64_t ram_bytes() const {
    const MappedExperts* mapped = binding_.mapped();
    const uint64_t of_experts = host_ ? host_->weight_bytes() : mapped ? mapped->ram_bytes() : 0;
    return of_experts + binding_.ram_layers().ram_bytes();
  }
  // Writes what the pass reads into the parcel of the staging.
  Result<PassShape> stage(const Batch& batch, const Pass& pass, const Outputs& outputs);
  Status run_pass(const Batch& batch, const Pass& pass, const Outputs& outputs);
  // The same for what is drawn from logit rows [first, first + n) of the pass.
  Result<DrawShape> stage_draws(const Pass& pass, int first, int n, const Outputs& outputs);
  Status draw(const PassShape& shape, const DrawShape& draws, int first, int n) const;
  Status run_prompts(const Pass& pass, const PassShape& shape, const Outputs& outputs);
  Status run_step(const Batch& batch, const Pass& pass, const PassShape& shape, const Outputs& outputs);
  Status run_chain(const Batch& batch, const Pass& pass, const PassShape& shape, const Outputs& outputs);
  // The step as one graph, once its shape has come back.
  Status launch_step(const StepShape& step);
  Status deliver(const Pass& pass, const PassShape& shape, int first, int n, const Outputs& outputs,
                 bool tokens_alone = false);
  void give_logits(const PassShape& shape, const float* from, float* to) const;
  void gather_draft_hidden(const Batch& batch, const Pass& pass);
  Status bring_draft_hidden(const PassShape& shape);
  Status deliver_row_hidden(const Batch& batch, const Pass& pass, const PassShape& shape, float* to);
  void scatter_row_hidden(const Batch& batch, const Pass& pass, int first, int n, float* to) const;
  Status wait();
  Status wait_for_tokens();
  Status fail(Error error);

  Program program_;
  StateLayout layout_;
  const DeviceInfo device_;
  const CardPlan plan_;
  Ledger ledger_;
  Stream stream_;
  ProgramBinding binding_;
  std::unique_ptr<HostExperts> host_;
  std::unique_ptr<ImposedChoices> imposed_;  // of a benchmark
  std::optional<Event> finished_;            // with experts on the host alone
  DeviceStateMemory memory_;
  StepGraphs graphs_;
  ShapeGraphs<ReplayShape> replays_;
  int max_rows_ = 0, prefill_rows_ = 0;
  std::optional<Lowering> lowering_;
  std::optional<BatchStaging> staging_;
  std::optional<AdapterMemory> adapters_;
  std::optional<Drawing> drawing_;
  std::optional<HeadPart> head_part_;
  PinnedBuffer<float> host_logits_, host_hidden_;
  PinnedBuffer<float> host_row_hidden_;    // [head_rows, d_model]; kernels write to it
  PinnedBuffer<float> host_draft_hidden_;  // [max_rows, d_model]; none without a draft pass
  std::vector<const Draw*> draws_;         // of the rows that are drawn from now
  uint64_t n_moves_ = 0;                   // of parcels, when graphs_ was cleared last
  std::optional<Error> failure_;
  Placement placement_;
};

// To the card, and to the host's experts what they keep. Progress counts both.
Status CudaExecutable::take_weights(const LoadOptions& options) {
  TRY_ASSIGN(const auto hosted, hosted_mixtures(program_, plan_.hosted.card_reads ? 0 : plan_.hosted.n_hosted));
  uint64_t host_bytes = 0;
  for (const op::MoeFfn* mixture : hosted) {
    for (const MatrixId id : {mixture->gate, mixture->up, mixture->down}) {
      if (id != kNone) host_bytes += program_.matrices[id].size_bytes();
    }
  }
  LoadOptions here = options;
  if (options.progress) {
    here.progress = [&](uint64_t done, uint64_t total) { options.progress(done, total + host_bytes); };
  }
  TRY(binding_.upload(program_, ledger_, here));
  if (!hosted.empty()) {
    const uint64_t before = binding_.size_bytes();
    if (options.progress) {
      here.progress = [&](uint64_t done, uint64_t total) { options.progress(before + done, before + total); };
    }
    TRY_ASSIGN(host_, HostExperts::create(program_, hosted, max_rows_, here));
    TRY_ASSIGN(Event finished, Event::create_sleeping());
    finished_.emplace(std::move(finished));
  }
  // Rows gathered at load were only needed until here; their names still are.
  for (const auto& gathered : program_.owned) std::vector<std::byte>().swap(gathered->data);
  return Ok{};
}

Status CudaExecutable::load(const LoadOptions& options) {
  TRY(ledger_.charge(Purpose::context, plan_.context));
  max_rows_ = plan_.max_rows;
  prefill_rows_ = chimere::prefill_rows(max_rows_, options.decode_rows);
  lowering_.emplace(program_, layout_, binding_, device_, options.exact, max_rows_, plan_.pass_rows);
  TRY(take_weights(options));
  if (options.imposed_skew) {
    TRY_ASSIGN(imposed_, ImposedChoices::create(program_, *options.imposed_skew, ledger_, stream_));
  }
  TRY(lowering_->allocate(ledger_, stream_, host_.get(), imposed_.get()));
  TRY_ASSIGN(BatchStaging staging, BatchStaging::create(ledger_, max_rows_, layout_.page_bytes() > 0));
  staging_.emplace(std::move(staging));
  adapters_.emplace(ledger_, program_, max_rows_, lowering_->limits());
  const auto head_rows = static_cast<size_t>(lowering_->head_rows());
  TRY_ASSIGN(host_logits_, PinnedBuffer<float>::create(head_rows * program_.n_vocab));
  TRY_ASSIGN(host_hidden_, PinnedBuffer<float>::create(head_rows * program_.d_model));
  TRY_ASSIGN(host_row_hidden_, PinnedBuffer<float>::create(head_rows * program_.d_model));
  if (program_.has_drafts()) {
    const auto floats = static_cast<size_t>(max_rows_) * static_cast<size_t>(program_.d_model);
    TRY_ASSIGN(host_draft_hidden_, PinnedBuffer<float>::create(floats));
  }
  if (MappedExperts* mapped = binding_.mapped()) {
    memory_.when_refused([this, mapped] { return mapped->give_up(stream_); });
  }
  const uint64_t host_bytes = ram_bytes();
  placement_ = {plan_.n_mixtures,
                plan_.hosted.n_hosted,
                plan_.hosted.card_reads,
                plan_.hosted.n_slots,
                plan_.n_layers,
                plan_.hosted.n_brought,
                host_bytes,
                binding_.size_bytes(),
                plan_.budget,
                plan_.everything,
                placement_text(plan_, device_, host_bytes, options)};
  return stream_.synchronize();
}

Result<bool> CudaExecutable::prepare_draws(std::span<const int32_t> suppressed) {
  auto drawing = Drawing::create(ledger_, stream_, program_.n_vocab, suppressed);
  if (!drawing && drawing.error().code == Code::exhausted) return false;
  if (!drawing) return drawing.error();
  graphs_.clear();  // they may hold addresses of another
  drawing_.emplace(std::move(*drawing));
  return true;
}

bool CudaExecutable::prepare_head_blocks(int n_blocks) {
  if (head_part_ && n_blocks <= head_part_->max_blocks()) return true;
  // Logits of a part are written where those of all are.
  if (!program_.has_drafts() || program_.draft_blocks || n_blocks > program_.n_vocab / kHeadBlock) return false;
  const auto* head = std::get_if<op::LmHead>(&program_.ops.back());
  if (!head || failure_ || !wait()) return false;
  graphs_.clear();  // they may hold addresses of a smaller one
  head_part_.reset();
  auto part = HeadPart::create(ledger_, binding_.weight(head->weight), n_blocks);
  if (!part) return false;
  head_part_.emplace(std::move(*part));
  return true;
}

Result<uint64_t> CudaExecutable::sleep() {
  if (failure_) return *failure_;
  if (MappedExperts* mapped = binding_.mapped()) TRY(mapped->rest(stream_));
  TRY(wait());
  memory_.trim();
  return ledger_.sleep(stream_);
}

// For all that the card was given. The host's experts want every core: nobody spins beside them.
Status CudaExecutable::wait() {
  if (!finished_) return stream_.synchronize();
  TRY(finished_->record(stream_));
  return finished_->synchronize();
}

// Tokens are there before the stream has ended: what is left of it is nothing that the host touches. It is asked now
// and then, as one that failed writes no tokens.
Status CudaExecutable::wait_for_tokens() {
  constexpr int kLooks = 1 << 14;
  for (;;) {
    TRY_ASSIGN(const bool is_done, Event::none_waits(stream_));
    if (drawing_->looked_for(is_done ? 0 : kLooks)) return Ok{};
    CHECK(!is_done && "a stream that is done has drawn from all rows");
  }
}

// An error of the device is for good: whatever is asked later gets the same answer. Want of memory may pass.
Status CudaExecutable::fail(Error error) {
  if (error.code == Code::exhausted) return error;
  error.code = Code::device;
  failure_ = error;
  return error;
}

Status CudaExecutable::run(const Batch& batch, const Outputs& outputs) {
  if (failure_) return *failure_;
  CHECK(outputs.draws.empty() ||
        (drawing_ && outputs.draws.size() == batch.logit_rows.size() && outputs.drawn.size() == outputs.draws.size()));
  if (Status memory = memory_.failure(); !memory) return fail(std::move(memory.error()));
  const HostLane::Attention attention(host_ ? host_->lane() : nullptr);
  for (const Pass& pass : split_batch(batch, lowering_->limits())) {
    if (pass.is_decode && binding_.mapped()) {
      if (binding_.mapped()->wants_memory()) memory_.trim();
      if (Status moved = binding_.mapped()->rearrange(stream_); !moved) return fail(std::move(moved.error()));
    }
    if (Status done = run_pass(batch, pass, outputs); !done) return fail(std::move(done.error()));
  }
  // A disk may come back: that is no failure of the card.
  return host_ ? host_->failure() : Ok{};
}

Result<PassShape> CudaExecutable::stage(const Batch& batch, const Pass& pass, const Outputs& outputs) {
  PassShape shape;
  TRY_ASSIGN(shape.batch, staging_->stage(batch, pass));
  if (pass.is_decode) shape.pinned_tokens = staging_->parcel().host_of(shape.batch.tokens);
  TRY_ASSIGN(shape.adapters, adapters_->stage(stream_, batch, pass));
  stream_.want_all_shared(pass.is_decode && shape.batch.n_rows <= kFewDecodeRows);
  shape.is_decode = pass.is_decode;
  shape.dependent = pass.is_decode && device_.dependent_launch();
  const int n_outputs = shape.batch.n_logit_rows;
  shape.logits = n_outputs > 0 && (outputs.logits || !outputs.draws.empty());
  shape.hidden = n_outputs > 0 && outputs.hidden;
  shape.drafts = batch.is_draft_pass();
  if (!batch.head_blocks.empty()) {
    CHECK(head_part_ && shape.drafts);
    TRY_ASSIGN(shape.head_part, head_part_->choose(stream_, batch.head_blocks));
  }
  shape.max_tokens = pass.max_tokens;
  // A power of two, so that a growing context changes the shape seldom.
  shape.kv_bound = kPageTokens;
  while (shape.kv_bound < pass.max_kv) shape.kv_bound *= 2;
  return Result<PassShape>{std::move(shape)};
}

Result<DrawShape> CudaExecutable::stage_draws(const Pass& pass, int first, int n, const Outputs& outputs) {
  draws_.clear();
  for (int i = 0; i < n; ++i) draws_.push_back(&outputs.draws[static_cast<size_t>(pass.outputs[first + i])]);
  return drawing_->stage(draws_);
}

Status CudaExecutable::run_pass(const Batch& batch, const Pass& pass, const Outputs& outputs) {
  TRY_ASSIGN(const PassShape shape, stage(batch, pass, outputs));
  if (batch.draft_hidden) gather_draft_hidden(batch, pass);
  if (!batch.draft_depths.empty()) return run_chain(batch, pass, shape, outputs);
  if (pass.is_decode) return run_step(batch, pass, shape, outputs);
  TRY(run_prompts(pass, shape, outputs));
  return outputs.row_hidden ? deliver_row_hidden(batch, pass, shape, outputs.row_hidden) : Ok{};
}

// Draws [first, first + n) of the parcel, from the logits that the head left.
Status CudaExecutable::draw(const PassShape& shape, const DrawShape& draws, int first, int n) const {
  if (shape.head_part) return drawing_->launch(stream_, lowering_->logits(), shape.head_part, first, n);
  return drawing_->launch(stream_, lowering_->logits(), draws, first, n);
}

Status CudaExecutable::run_prompts(const Pass& pass, const PassShape& shape, const Outputs& outputs) {
  TRY(staging_->parcel().send(stream_));
  if (shape.drafts && !program_.draft_blocks) TRY(bring_draft_hidden(shape));
  TRY(lowering_->body(stream_, shape));
  if (!shape.logits && !shape.hidden) return wait();
  for (int first = 0; first < shape.batch.n_logit_rows; first += lowering_->head_rows()) {
    const int n = std::min(lowering_->head_rows(), shape.batch.n_logit_rows - first);
    TRY(lowering_->head(stream_, shape, first, n));
    if (shape.logits && !outputs.draws.empty()) {
      TRY_ASSIGN(const DrawShape draws, stage_draws(pass, first, n, outputs));
      TRY(drawing_->parcel().send(stream_));
      TRY(draw(shape, draws, 0, n));
    }
    TRY(deliver(pass, shape, first, n, outputs));
  }
  return Ok{};
}

// A decode pass is one graph from what the host wrote to the tokens that it reads.
Status CudaExecutable::run_step(const Batch& batch, const Pass& pass, const PassShape& shape, const Outputs& outputs) {
  const int n_outputs = shape.batch.n_logit_rows;
  StepShape step{shape, {}};
  step.row_hidden = outputs.row_hidden != nullptr;
  if (shape.logits && !outputs.draws.empty()) {
    TRY_ASSIGN(step.draws, stage_draws(pass, 0, n_outputs, outputs));
  }
  TRY(launch_step(step));
  const bool tokens_alone = step.draws && !step.draws.needs.figures() && !step.row_hidden && !host_;
  TRY(deliver(pass, shape, 0, n_outputs, outputs, tokens_alone));
  if (step.row_hidden) scatter_row_hidden(batch, pass, 0, pass.n_rows, outputs.row_hidden);
  return Ok{};
}

// The passes of a chain follow one another on the device: a token is drawn into the next pass's, and hidden vectors stay
// where the head left them.
Status CudaExecutable::run_chain(const Batch& batch, const Pass& pass, const PassShape& shape, const Outputs& outputs) {
  CHECK(pass.is_decode && shape.drafts && outputs.guesses.data());
  SamplingParams greedy;
  greedy.temperature = 0;
  const SamplerState nothing_said;
  const Draw best{&greedy, &nothing_said, {}, 0};
  StepShape step{shape, {}};
  step.pass.logits = step.pass.hidden = true;
  std::vector<int32_t*> accept_into(pass.slices.size(), nullptr);
  for (size_t k = 0, begin = 0; k < staging_->chain().size(); ++k) {
    const BatchView& next = staging_->chain()[k];
    PassShape& chained = step.chain.emplace_back(step.pass);
    chained.chained = true;
    chained.batch = next;
    chained.max_tokens = 1;
    chained.pinned_tokens = nullptr;
    for (int i = 0; i < next.n_rows; ++i) accept_into[begin + i] = const_cast<int32_t*>(next.tokens) + i;
    begin = accept_into.size();
    accept_into.resize(begin + static_cast<size_t>(next.n_rows), nullptr);
  }
  draws_.assign(accept_into.size(), &best);
  TRY_ASSIGN(step.draws, drawing_->stage(draws_, accept_into));
  TRY(launch_step(step));
  TRY(host_ ? wait() : wait_for_tokens());
  // Drawn one pass after the other; wanted one slice after the other.
  std::vector<size_t> to(batch.slices.size(), 0);
  for (size_t s = 1; s < to.size(); ++s) to[s] = to[s - 1] + static_cast<size_t>(batch.draft_depths[s - 1]);
  int i = 0;
  for (size_t k = 0; k <= step.chain.size(); ++k) {
    const size_t n = k == 0 ? pass.slices.size() : static_cast<size_t>(step.chain[k - 1].batch.n_rows);
    for (size_t s = 0; s < n; ++s, ++i) {
      TRY_ASSIGN(const Sampled guess, drawing_->drawn(i));
      outputs.guesses[to[static_cast<size_t>(pass.slices[s])] + k] = guess.id;
    }
  }
  return Ok{};
}

Status CudaExecutable::launch_step(const StepShape& step) {
  const PassShape& shape = step.pass;
  TRY(staging_->parcel().offer(stream_));
  if (step.draws) TRY(drawing_->parcel().offer(stream_));
  const uint64_t n_moves = staging_->parcel().n_moves() + (drawing_ ? drawing_->parcel().n_moves() : 0);
  if (n_moves != n_moves_) {
    TRY(stream_.synchronize());
    graphs_.clear();
  }
  n_moves_ = n_moves;
  return graphs_.launch(stream_, step, [&]() -> Status {
    if (shape.drafts && !program_.draft_blocks) TRY(bring_draft_hidden(shape));
    Fetch fetches[kMaxFetches] = {staging_->parcel().fetch()};
    if (step.draws) fetches[1] = drawing_->parcel().fetch();
    TRY(fetch(stream_, std::span(fetches).first(step.draws ? 2 : 1)));
    int n_drawn = 0;
    const auto run_one = [&](const PassShape& one) -> Status {
      const int n = one.batch.n_logit_rows;
      TRY(lowering_->body(stream_, one));
      if (step.row_hidden) {
        TRY(lowering_->row_hidden(stream_, one, 0, one.batch.n_rows, host_row_hidden_.data()));
      }
      if (one.logits || one.hidden) TRY(lowering_->head(stream_, one, 0, n));
      if (step.draws) TRY(draw(one, step.draws, n_drawn, n));
      n_drawn += n;
      return Ok{};
    };
    TRY(run_one(shape));
    for (const PassShape& chained : step.chain) TRY(run_one(chained));
    return Ok{};
  });
}

// Takes results [first, first + n) of the pass, which are on the device, to where the batch wants them. tokens_alone:
// its draws give nothing but tokens.
Status CudaExecutable::deliver(const Pass& pass, const PassShape& shape, int first, int n, const Outputs& outputs,
                               bool tokens_alone) {
  const size_t v = shape.head_part ? shape.head_part.n_rows() : program_.n_vocab, d = program_.d_model;
  const auto output = [&](int i) { return static_cast<size_t>(pass.outputs[first + i]); };
  const bool draws = shape.logits && !outputs.draws.empty();
  const auto wants_logits = [&](int i) {
    return shape.logits && outputs.logits && !(draws && outputs.draws[output(i)].params);
  };
  for (int i = 0; i < n; ++i) {
    if (!wants_logits(i)) continue;
    tokens_alone = false;
    TRY(stream_.copy(host_logits_.data() + i * v, lowering_->logits() + i * v, v * sizeof(float)));
  }
  if (shape.hidden) TRY(stream_.copy(host_hidden_.data(), lowering_->hidden(), n * d * sizeof(float)));
  TRY(tokens_alone && !shape.hidden ? wait_for_tokens() : wait());
  for (int i = 0; i < n; ++i) {
    const size_t to = output(i);
    if (wants_logits(i)) give_logits(shape, host_logits_.data() + i * v, outputs.logits + to * program_.n_vocab);
    if (shape.hidden) std::copy_n(host_hidden_.data() + i * d, d, outputs.hidden + to * d);
    if (draws && outputs.draws[to].params) outputs.drawn[to] = drawing_->drawn(i);
  }
  return Ok{};
}

// A row of them, all or those of some blocks, to where the batch wants it.
void CudaExecutable::give_logits(const PassShape& shape, const float* from, float* to) const {
  if (!shape.head_part) {
    std::copy_n(from, program_.n_vocab, to);
    return;
  }
  for (const int32_t block : head_part_->blocks()) {
    const int32_t first = block * kHeadBlock;
    std::copy_n(from, std::min(kHeadBlock, program_.n_vocab - first), to + first);
    from += kHeadBlock;
  }
}

// The rows of a pass lie in the order of its slices. Nobody reads what was brought last: a pass is waited for.
void CudaExecutable::gather_draft_hidden(const Batch& batch, const Pass& pass) {
  const auto d = static_cast<size_t>(program_.d_model);
  float* to = host_draft_hidden_.data();
  for (const int32_t i : pass.slices) {
    const Slice& slice = batch.slices[i];
    const size_t n = static_cast<size_t>(slice.n_tokens) * d;
    to = std::copy_n(batch.draft_hidden + static_cast<size_t>(slice.first_row) * d, n, to);
  }
}

Status CudaExecutable::bring_draft_hidden(const PassShape& shape) {
  const size_t floats = static_cast<size_t>(shape.batch.n_rows) * static_cast<size_t>(program_.d_model);
  return stream_.copy(lowering_->draft_hidden(), host_draft_hidden_.data(), floats * sizeof(float));
}

// The residual stream is as the pass left it: the final norm of every row, and where the batch has that row.
Status CudaExecutable::deliver_row_hidden(const Batch& batch, const Pass& pass, const PassShape& shape, float* to) {
  for (int first = 0; first < pass.n_rows; first += lowering_->head_rows()) {
    const int n = std::min(lowering_->head_rows(), pass.n_rows - first);
    TRY(lowering_->row_hidden(stream_, shape, first, n, host_row_hidden_.data()));
    TRY(wait());
    scatter_row_hidden(batch, pass, first, n, to);
  }
  return Ok{};
}

// Rows [first, first + n) of the pass, from pinned memory to where the batch has them.
void CudaExecutable::scatter_row_hidden(const Batch& batch, const Pass& pass, int first, int n, float* to) const {
  const auto d = static_cast<size_t>(program_.d_model);
  int row = 0;
  for (const int32_t s : pass.slices) {
    const Slice& slice = batch.slices[s];
    for (int t = 0; t < slice.n_tokens; ++t, ++row) {
      if (row < first || row >= first + n) continue;
      std::copy_n(host_row_hidden_.data() + static_cast<size_t>(row - first) * d, d,
                  to + static_cast<size_t>(slice.first_row + t) * d);
    }
  }
}

Status CudaExecutable::replay(float* recurrent, const float* recorded, int n_tokens) {
  if (failure_) return *failure_;
  const auto record = [&] { return lowering_->replay(stream_, recurrent, recorded, n_tokens); };
  Status done = replays_.launch(stream_, {recurrent, recorded, n_tokens}, record);
  return done ? Status(Ok{}) : fail(std::move(done.error()));
}

Result<std::optional<DeviceReport>> CudaExecutable::report() {
  TRY_ASSIGN(const double bandwidth, copy_bandwidth(ledger_, stream_));
  std::string memory = ledger_.text();
  if (plan_.is_partly_in_ram()) {
    const int hosted = plan_.hosted.n_hosted, brought = plan_.hosted.n_brought;
    memory += "; in RAM: ";
    if (hosted > 0) memory += "experts of " + std::to_string(hosted) + " layers ";
    if (brought > 0) memory += (hosted > 0 ? "and " : "") + std::to_string(brought) + " layers ";
    memory += bytes_text(ram_bytes());
  }
  return std::optional(DeviceReport{device_.name, std::move(memory), bandwidth, ledger_.peak_bytes()});
}

Result<std::vector<FamilyTime>> CudaExecutable::profile(const Batch& batch, int repeats) {
  std::vector<FamilyTime> times;
  std::vector<float> logits(batch.logit_rows.size() * program_.n_vocab);
  const Outputs outputs{.logits = logits.data()};
  TRY(run(batch, outputs));
  const HostLane::Attention attention(host_ ? host_->lane() : nullptr);
  // As a usual chat draws.
  SamplingParams usual;
  usual.temperature = 0.7f, usual.top_k = 20, usual.top_p = 0.8f;
  const SamplerState nothing_said;
  const std::vector<Draw> draws(batch.logit_rows.size(), {&usual, &nothing_said, {}, 0});
  for (const Pass& pass : split_batch(batch, lowering_->limits())) {
    // Experts that are brought for a prompt come on a stream of their own, which no graph of a family has. Layers that
    // are brought are where they were left: a family is timed without their way.
    if (!pass.is_decode && binding_.mapped()) continue;
    TRY_ASSIGN(const PassShape shape, stage(batch, pass, outputs));
    TRY(staging_->parcel().send(stream_));
    ProfiledPass profiled{*lowering_, shape, staging_->parcel()};
    if (pass.is_decode && drawing_ && shape.logits) {
      TRY_ASSIGN(profiled.draws, stage_draws(pass, 0, shape.batch.n_logit_rows, {.draws = draws}));
      TRY(drawing_->parcel().send(stream_));
      profiled.drawing = &*drawing_;
    }
    TRY(profile_pass(stream_, profiled, repeats, times));
  }
  return times;
}

}  // namespace

Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options) {
  TRY(refuse_observer(options, "cuda"));
  TRY(check_supported(program));
  TRY_ASSIGN(const DeviceInfo device, probe_device());
  const uint64_t budget = card_budget(device, options);
  const auto layout_of = [&options](const Program& p) {
    return StateLayout::create(p.kv_layers, p.recurrent_layers, options.kv);
  };
  TRY_ASSIGN(StateLayout layout, layout_of(program));
  auto plan = plan_card(program, layout, device, budget, options);
  if (options.drafts_need_room && program.has_drafts() && !program.draft_blocks &&
      (!plan || plan->is_partly_in_ram())) {
    program.drop_drafts();
    TRY_ASSIGN(layout, layout_of(program));
    plan = plan_card(program, layout, device, budget, options);
    if (plan) plan->without_drafts = true;
  }
  if (!plan) return std::move(plan.error());
  // Some systems let a program pin less of the RAM than is free. Then the CPU computes what the card can not read.
  const bool may_compute =
      plan->hosted.card_reads && plan->hosted.n_brought == 0 && options.ram_experts == RamExperts::automatic;
  std::optional<Program> again = may_compute ? std::optional(program) : std::nullopt;
  TRY_ASSIGN(Stream stream, Stream::create());
  auto executable =
      std::make_unique<CudaExecutable>(std::move(program), std::move(layout), device, *plan, std::move(stream));
  Status loaded = executable->load(options);
  if (!loaded && loaded.error().code == Code::exhausted && again) {
    executable.reset();
    LoadOptions computed = options;
    computed.ram_experts = RamExperts::cpu;
    return compile(std::move(*again), computed);
  }
  TRY(std::move(loaded));
  return Result<std::unique_ptr<Executable>>{std::move(executable)};
}

}  // namespace chimere::cuda
