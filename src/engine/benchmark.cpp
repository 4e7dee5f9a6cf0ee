#include "engine/benchmark.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string>

#include "base/thread_pool.h"
#include "cache/sequence.h"
#include "engine/block_pass.h"
#include "engine/draft_model.h"
#include "engine/draft_pass.h"
#include "engine/step_timing.h"
#include "speculative/likely_tokens.h"
#include "speculative/plan.h"

namespace chimere::engine {
namespace {

using Clock = std::chrono::steady_clock;

Timing summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {median, (samples.back() - samples.front()) / 2 / median};
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Bytes that one decoded token reads (and writes, for recurrent state): weights as the backend holds them, of the
// routed experts only the chosen share, plus the sequence's state at this depth.
double bytes_per_token(Executable& executable, int depth) {
  const Program& program = executable.program();
  double touched = 0;
  std::vector<bool> is_table(program.matrices.size(), false);
  for (const Op& op : program.trunk()) {
    if (const auto* e = std::get_if<op::Embed>(&op)) is_table[e->table] = true;
    if (const auto* h = std::get_if<op::LmHead>(&op)) is_table[h->weight] = false;
  }
  std::vector<double> share(program.matrices.size(), 1.0);
  for (const Op& op : program.trunk()) {
    if (const auto* m = std::get_if<op::MoeFfn>(&op)) {
      for (MatrixId id : {m->gate, m->up, m->down}) {
        if (id != kNone) share[id] = static_cast<double>(m->n_used) / m->n_experts;
      }
    }
  }
  for (size_t i = 0; i < program.trunk_matrices().size(); ++i) {
    if (!is_table[i]) touched += static_cast<double>(executable.matrix_bytes(static_cast<MatrixId>(i))) * share[i];
  }
  const StateLayout& layout = executable.layout();
  return touched + 2.0 * layout.recurrent_floats() * sizeof(float) +
         static_cast<double>(layout.kv_bytes_per_token()) * depth;
}

// Steps with drafts, and how many guesses at each place were taken.
struct DraftedSteps {
  uint64_t n_steps = 0, n_tokens = 0;
  std::vector<uint64_t> taken;
};

class Bench {
 public:
  Bench(models::Model& model, const BenchmarkPlan& plan) : model_(model), plan_(plan), pass_(model), blocks_(model) {
    pass_.set_candidates(speculative::LikelyTokens(model.n_vocab(), kHeadBlock).blocks());
    if (auto ready = model.executable().prepare_draws({})) draws_ = *ready;
    sampling_.temperature = 0.7f;
    sampling_.top_k = 20;
    sampling_.top_p = 0.8f;
  }

  Status prefill(Sequence& sequence, int n) {
    for (int at = 0; at < n;) {
      const int rows = std::min(n - at, model_.executable().prefill_rows());
      TRY(step({&sequence}, rows, at + rows == n));
      at += rows;
    }
    return Ok{};
  }

  Result<double> time_prefill() {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
    TRY(prefill(sequence, plan_.depth));
    const auto start = Clock::now();
    TRY(prefill(sequence, plan_.n_prompt));
    return plan_.n_prompt / seconds_since(start);
  }

  Result<double> time_decode(int streams) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(streams));
    const std::vector<Sequence*> pointers = all(sequences);
    const auto begin = Clock::now();
    for (int i = 0; i < plan_.n_decode; ++i) TRY(step(pointers, 1, true));
    return plan_.n_decode * streams / seconds_since(begin);
  }

  // The same logits afterwards, or an error: nothing of weights and state may be lost.
  Result<SleepTiming> time_sleep() {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
    TRY(prefill(sequence, 64));
    const auto logits = [&]() -> Result<std::vector<float>> {
      std::vector<float> row(static_cast<size_t>(model_.n_vocab()));
      TRY_ASSIGN(const Snapshot before, sequence.snapshot());
      TRY_ASSIGN(const Slice slice, sequence.begin(1));
      TRY(model_.executable().run(Batch{{1}, {slice}, {0}}, {.logits = row.data()}));
      TRY(sequence.restore(before));
      return Result<std::vector<float>>{std::move(row)};
    };
    TRY_ASSIGN(const std::vector<float> before, logits());
    SleepTiming timing;
    auto begin = Clock::now();
    TRY_ASSIGN(timing.bytes, model_.executable().sleep());
    timing.sleep_s = seconds_since(begin);
    begin = Clock::now();
    TRY(model_.executable().wake());
    timing.wake_s = seconds_since(begin);
    begin = Clock::now();
    TRY_ASSIGN(const std::vector<float> after, logits());
    timing.first_step_s = seconds_since(begin);
    if (after != before) return Error{Code::internal, "--sleep: other logits after the sleep than before it"};
    return timing;
  }

  // What a step of 1 to 16 rows costs, drawn from as the others are, the fastest of a few.
  Result<speculative::StepCosts> step_costs() {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
    TRY(prefill(sequence, plan_.depth));
    std::vector<speculative::StepCosts::Point> points;
    const int most = std::min(kDecodeTokens, model_.executable().max_rows());
    for (int rows = 1; rows <= most; rows *= 2) points.push_back({rows, 1e9});
    for (int round = 0; round < 4; ++round) {
      for (auto& point : points) {
        const auto begin = Clock::now();
        TRY(draft_step(sequence, point.rows, 1));
        point.seconds = std::min(point.seconds, std::max(seconds_since(begin), 1e-9));
      }
    }
    return speculative::StepCosts(std::move(points));  // with what it costs to begin a draft and to go back
  }

  // Tokens a second of one stream whose guesses are right so often, with the steps it took.
  Result<double> time_drafts(double acceptance, int depth, DraftedSteps& steps) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(1));
    int done = 0;
    const auto begin = Clock::now();
    while (done < plan_.n_decode) {
      const int n_right = play(acceptance, depth, steps);
      TRY(draft_step(sequences[0], 1 + depth, 1 + n_right));
      done += 1 + n_right;
    }
    return done / seconds_since(begin);
  }

  // The same with guesses that the draft pass makes: what stayed of the last step is run through it first.
  Result<double> time_passes(double acceptance, int depth, DraftedSteps& steps) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(1));
    Sequence& sequence = sequences[0];
    const auto d = static_cast<size_t>(model_.d_model());
    std::vector<float> rows(d, 0.0f);  // of the positions that the pass has not seen, each with the state before it
    const auto begin = Clock::now();
    int done = 0;
    while (done < plan_.n_decode) {
      const auto n_behind = static_cast<int>(rows.size() / d);
      std::vector<int32_t> tokens, guesses;
      for (int i = 0; i < n_behind; ++i) tokens.push_back(random_token());
      const DraftPass::Part part{&sequence, sequence.length() + 1 - n_behind, tokens, rows, depth};
      if (depth > 0) TRY(pass_.run_chains({&part, 1}));
      for (int i = 0; i < depth; ++i) guesses.push_back(pass_.guess(0, i));
      const int n_right = play(acceptance, depth, steps);
      row_hidden_.resize(static_cast<size_t>(1 + depth) * d);
      TRY(draft_step(sequence, 1 + depth, 1 + n_right, guesses));
      rows.assign(row_hidden_.begin(), row_hidden_.begin() + static_cast<std::ptrdiff_t>((1 + n_right) * d));
      done += 1 + n_right;
    }
    return done / seconds_since(begin);
  }

  // The same with guesses that a drafter makes.
  Result<double> time_blocks(double acceptance, int depth, DraftedSteps& steps) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(1));
    const auto begin = Clock::now();
    int done = 0;
    while (done < plan_.n_decode) {
      std::vector<int32_t> guesses;
      const BlockPass::Part part{sequences.data(), random_token(), depth};
      if (depth > 0) TRY(blocks_.run({&part, 1}));
      for (int i = 0; i < depth; ++i) guesses.push_back(blocks_.guess(0, i));
      const int n_right = play(acceptance, depth, steps);
      TRY(draft_step(sequences[0], 1 + depth, 1 + n_right, guesses));
      done += 1 + n_right;
    }
    return done / seconds_since(begin);
  }

  // The same with guesses that a draft model makes.
  Result<double> time_draft_model(DraftModel& draft, double acceptance, int depth, DraftedSteps& steps) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(1));
    Companion companion;
    TRY(draft.begin(companion));
    std::vector<int32_t> text;
    for (int i = 0; i <= plan_.depth; ++i) text.push_back(random_token());
    const auto rest = [&] { return std::span<const int32_t>(text).subspan(static_cast<size_t>(companion.length())); };
    while (rest().size() > 1) {
      const size_t rows = static_cast<size_t>(draft.model().executable().prefill_rows());
      const DraftModel::Part part{&companion, rest().first(std::min(rest().size() - 1, rows))};
      TRY(draft.run({&part, 1}));
    }
    const auto begin = Clock::now();
    int done = 0;
    while (done < plan_.n_decode) {
      if (depth > 0) {
        TRY(draft.settle(companion, text));
        const DraftModel::Part part{&companion, rest(), depth};
        TRY(draft.run_chains({&part, 1}));
      }
      const int n_right = play(acceptance, depth, steps);
      TRY(draft_step(sequences[0], 1 + depth, 1 + n_right, companion.guesses));
      text.insert(text.end(), companion.guesses.begin(), companion.guesses.begin() + n_right);
      text.push_back(random_token());
      done += 1 + n_right;
    }
    return done / seconds_since(begin);
  }

  Result<std::vector<FamilyTime>> profile(int streams, int n_tokens) {
    TRY_ASSIGN(std::vector<Sequence> sequences, start(streams));
    TRY_ASSIGN(const Batch batch, make_batch(all(sequences), n_tokens, true));
    return model_.executable().profile(batch, 20);
  }

 private:
  int32_t random_token() { return static_cast<int32_t>(random_() % static_cast<uint64_t>(model_.n_vocab())); }
  // How many guesses of a step are right.
  int play(double acceptance, int depth, DraftedSteps& steps) {
    int n_right = 0;
    while (n_right < depth && chance_(random_) < acceptance) ++n_right;
    steps.taken.resize(static_cast<size_t>(depth));
    for (int i = 0; i < n_right; ++i) ++steps.taken[static_cast<size_t>(i)];
    ++steps.n_steps;
    steps.n_tokens += static_cast<uint64_t>(1 + n_right);
    return n_right;
  }
  Result<std::vector<Sequence>> start(int streams) {
    std::vector<Sequence> sequences;
    for (int i = 0; i < streams; ++i) {
      TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
      TRY(prefill(sequence, plan_.depth));
      sequences.push_back(std::move(sequence));
    }
    return Result<std::vector<Sequence>>{std::move(sequences)};
  }
  static std::vector<Sequence*> all(std::vector<Sequence>& sequences) {
    std::vector<Sequence*> pointers;
    for (Sequence& s : sequences) pointers.push_back(&s);
    return pointers;
  }

  void add(Batch& batch, Slice slice) {
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    for (int i = 0; i < slice.n_tokens; ++i) {
      batch.tokens.push_back(random_token());
    }
  }

  Result<Batch> make_batch(const std::vector<Sequence*>& sequences, int n_tokens, bool want_logits) {
    Batch batch;
    for (Sequence* s : sequences) {
      TRY_ASSIGN(const Slice slice, s->begin(n_tokens));
      add(batch, slice);
      if (want_logits) batch.logit_rows.push_back(batch.n_rows() - 1);
    }
    return Result<Batch>{std::move(batch)};
  }

  Status step(const std::vector<Sequence*>& sequences, int n_tokens, bool want_logits) {
    TRY_ASSIGN(const Batch batch, make_batch(sequences, n_tokens, want_logits));
    TRY(run(batch));
    for (Sequence* s : sequences) TRY(s->commit(n_tokens));
    return Ok{};
  }

  // A step of which `n_stay` tokens stay. `guesses`: its last tokens.
  Status draft_step(Sequence& sequence, int n_tokens, int n_stay, std::span<const int32_t> guesses = {}) {
    Batch batch;
    TRY_ASSIGN(const Slice slice, n_tokens > 1 ? sequence.begin_draft(n_tokens, true) : sequence.begin(n_tokens));
    add(batch, slice);
    std::copy(guesses.begin(), guesses.end(), batch.tokens.end() - static_cast<std::ptrdiff_t>(guesses.size()));
    batch.logit_rows.resize(batch.tokens.size());
    std::iota(batch.logit_rows.begin(), batch.logit_rows.end(), 0);
    TRY(run(batch));
    TRY(sequence.commit(n_tokens));
    return sequence.rollback(n_tokens - n_stay);
  }

  Status run(const Batch& batch) {
    Outputs outputs;
    std::vector<Draw> draws(draws_ ? batch.logit_rows.size() : 0, {&sampling_, &state_, {}, position_++});
    std::vector<Result<Sampled>> drawn(draws.size(), Sampled{});
    if (draws_) {
      outputs.draws = draws;
      outputs.drawn = drawn;
    } else {
      logits_.resize(batch.logit_rows.size() * model_.n_vocab());
      outputs.logits = logits_.empty() ? nullptr : logits_.data();
    }
    if (row_hidden_.size() == batch.tokens.size() * static_cast<size_t>(model_.d_model())) {
      outputs.row_hidden = row_hidden_.data();
    }
    TRY(model_.executable().run(batch, outputs));
    for (const Result<Sampled>& token : drawn) TRY(token);
    return Ok{};
  }

  models::Model& model_;
  const BenchmarkPlan& plan_;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> chance_{0, 1};
  std::vector<float> logits_;
  DraftPass pass_;
  BlockPass blocks_;
  std::vector<float> row_hidden_;  // of steps that the draft pass follows; empty: of none
  // Where the backend draws, a step ends with a token, drawn as a chat draws it; else with logits.
  bool draws_ = false;
  SamplingParams sampling_;
  SamplerState state_;
  uint64_t position_ = 0;
};

// What a step of the first number of streams took, less all launches of its profile together, which end that of each
// pass. Nothing where the step that was profiled, with experts of its own, took longer than those that were timed.
std::optional<double> between_steps(const BenchmarkReport& report) {
  if (report.decode_profile.empty() || report.decode.front().tok_s.median <= 0) return {};
  double launches_s = 0;
  for (const FamilyTime& family : report.decode_profile) {
    if (family.name == report.decode_profile.back().name) launches_s += family.seconds;
  }
  const double between_s = report.decode.front().streams / report.decode.front().tok_s.median - launches_s;
  return between_s >= 0 ? std::optional(between_s) : std::nullopt;
}

template <class Traffic>
BenchmarkReport::ExpertFigures expert_figures(const Traffic& before, const Traffic& after, double tokens) {
  const auto hits = static_cast<double>(after.hits - before.hits);
  const auto misses = static_cast<double>(after.misses - before.misses);
  return {hits + misses > 0 ? hits / (hits + misses) : 0,
          static_cast<double>(after.bytes_read - before.bytes_read) / tokens};
}

}  // namespace

double measure_bandwidth(int n_threads, uint64_t bytes) {
  ThreadPool pool(n_threads);
  std::vector<uint64_t> data(std::clamp<uint64_t>(bytes, uint64_t{64} << 20, uint64_t{256} << 20) / 8, 1);
  std::vector<uint64_t> sums(pool.size() * 8);
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    pool.run([&](Team& team) {
      team.parallel_for(static_cast<int64_t>(data.size()), 1 << 18, [&](int64_t begin, int64_t end) {
        uint64_t lanes[8] = {};
        for (int64_t i = begin; i + 8 <= end; i += 8) {
          for (int j = 0; j < 8; ++j) lanes[j] += data[i + j];
        }
        for (uint64_t l : lanes) sums[team.rank() * 8] += l;
      });
    });
    best = std::max(best, static_cast<double>(data.size() * 8) / seconds_since(start));
  }
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0}) > 0 ? best : 0;
}

Result<BenchmarkReport> run_benchmark(models::Model& model, const BenchmarkPlan& plan) {
  TRY(model.require_logits());
  const int max_rows = model.executable().max_rows();
  if (plan.n_prompt < 0 || plan.n_decode < 0 || plan.repeats < 1 || plan.depth < 0) {
    return Error{Code::invalid_argument, "-p, -n and --depth: expected 0 or more; -r: expected 1 or more"};
  }
  for (int streams : plan.streams) {
    if (streams < 1 || streams > max_rows) {
      return Error{Code::invalid_argument,
                   "--streams: expected 1 to " + std::to_string(max_rows) + ", found " + std::to_string(streams)};
    }
  }
  for (double acceptance : plan.acceptance) {
    if (!(acceptance >= 0 && acceptance <= 1)) {
      return Error{Code::invalid_argument, "--acceptance: expected 0 to 1, found " + std::to_string(acceptance)};
    }
  }
  using speculative::Mode;
  if (plan.speculate == Mode::engram) {
    return Error{Code::invalid_argument,
                 "--speculate engram: drafts of random tokens can be off, auto, mtp, draft, dflash or always"};
  }
  if (plan.speculate == Mode::draft && !plan.draft_model) {
    return Error{Code::invalid_argument, "--speculate draft needs --draft-model FILE"};
  }
  if (plan.draft_model && plan.draft_model->n_vocab() != model.n_vocab()) {
    return Error{Code::invalid_argument, "--draft-model: expected a vocabulary of " + std::to_string(model.n_vocab()) +
                                             " tokens, found " + std::to_string(plan.draft_model->n_vocab())};
  }
  Bench bench(model, plan);
  BenchmarkReport report;
  report.bytes_per_token = bytes_per_token(model.executable(), plan.depth + plan.n_decode / 2);
  // One round of everything first: pages are touched and clocks are up before anything counts.
  std::vector<double> samples;
  for (int r = -1; r < plan.repeats && plan.n_prompt > 0; ++r) {
    TRY_ASSIGN(const double speed, bench.time_prefill());
    if (r >= 0) samples.push_back(speed);
  }
  report.prefill_tok_s = summarize(samples);
  for (int streams : plan.streams) {
    samples.clear();
    std::optional<ExpertTraffic> before;
    std::optional<CardTraffic> card_before;
    for (int r = -1; r < plan.repeats && plan.n_decode > 0; ++r) {
      if (r == 0) {
        before = model.executable().expert_traffic();
        card_before = model.executable().card_traffic();
      }
      TRY_ASSIGN(const double speed, bench.time_decode(streams));
      if (r >= 0) samples.push_back(speed);
    }
    const double tokens = static_cast<double>(streams) * plan.n_decode * plan.repeats;
    if (before && report.decode.empty()) {
      report.experts = expert_figures(*before, *model.executable().expert_traffic(), tokens);
    }
    if (card_before && report.decode.empty()) {
      report.card_experts = expert_figures(*card_before, *model.executable().card_traffic(), tokens);
    }
    report.decode.push_back({streams, summarize(samples)});
  }
  if (plan.speculate != speculative::Mode::off && plan.n_decode > 0) {
    TRY_ASSIGN(const speculative::StepCosts costs, bench.step_costs());
    int most = std::min({plan.draft_max, kDecodeTokens - 1, max_rows - 1});
    const bool in_blocks = plan.speculate == Mode::dflash;
    double block_guess = 0;
    std::optional<speculative::StepCosts> pass_costs;
    std::optional<DraftModel> draft_model;
    if (plan.speculate == Mode::mtp) {
      if (!model.has_drafts()) return Error{Code::invalid_argument, "drafts of its own: the model has no MTP block"};
      const speculative::LikelyTokens likely(model.n_vocab(), kHeadBlock);
      TRY_ASSIGN(auto timed, time_draft_passes(model, likely.blocks(), nobody_waits));
      pass_costs.emplace(std::move(timed));
    } else if (plan.speculate == Mode::draft) {
      draft_model.emplace(*plan.draft_model);
      draft_model->prepare({});
      draft_model->time(nobody_waits);
      if (!draft_model->costs()) return Error{Code::internal, "--draft-model: its steps could not be timed"};
      pass_costs = *draft_model->costs();
    } else if (in_blocks) {
      if (!model.draft_blocks()) return Error{Code::invalid_argument, "drafts of a drafter: the model has none"};
      most = std::min(most, model.draft_blocks()->n_rows - 1);
      TRY_ASSIGN(auto timed, time_block_passes(model, nobody_waits));
      pass_costs.emplace(std::move(timed.passes));
      block_guess = timed.guess;
    }
    if (pass_costs) report.draft_pass_s = pass_costs->step(1) + (in_blocks ? (most - 1) * block_guess : 0);
    const auto time_once = [&](double acceptance, int depth, DraftedSteps& steps) {
      if (draft_model) return bench.time_draft_model(*draft_model, acceptance, depth, steps);
      if (in_blocks) return bench.time_blocks(acceptance, depth, steps);
      return pass_costs ? bench.time_passes(acceptance, depth, steps) : bench.time_drafts(acceptance, depth, steps);
    };
    for (int rows = 1; rows <= 1 + most; rows *= 2) report.draft_step_s.emplace_back(rows, costs.step(rows));
    const auto measure = [&](double acceptance, int depth) -> Status {
      DraftTiming timing{.acceptance = acceptance, .depth = depth, .tokens_per_step = 1, .accepted = {}, .tok_s = {}};
      samples.clear();
      DraftedSteps steps;
      for (int r = -1; r < plan.repeats; ++r) {
        TRY_ASSIGN(const double speed, time_once(acceptance, depth, steps));
        if (r >= 0) samples.push_back(speed);
      }
      const auto n_steps = static_cast<double>(steps.n_steps);
      timing.tokens_per_step = static_cast<double>(steps.n_tokens) / n_steps;
      for (const uint64_t n : steps.taken) timing.accepted.push_back(static_cast<double>(n) / n_steps);
      timing.tok_s = summarize(samples);
      report.drafts.push_back(timing);
      return Ok{};
    };
    for (const double acceptance : plan.acceptance) {
      for (const int depth : plan.draft_depths) TRY(measure(acceptance, std::clamp(depth, 0, most)));
      if (!plan.draft_depths.empty()) continue;
      int depth = most;
      if (plan.speculate != speculative::Mode::always) {
        const speculative::Chances chances(static_cast<size_t>(most), static_cast<float>(acceptance));
        const speculative::StepCosts* pass = pass_costs ? &*pass_costs : nullptr;
        const speculative::DraftPasses passes{{pass}, in_blocks ? pass : nullptr, block_guess};
        depth = speculative::plan_depths(costs, 1, 1 + most, std::span(&chances, 1), &passes)[0];
      }
      TRY(measure(acceptance, depth));
    }
  }
  if (plan.sleep) {
    TRY_ASSIGN(report.sleep, bench.time_sleep());
  }
  TRY_ASSIGN(report.device, model.executable().report());
  if (plan.profile && !plan.streams.empty() && plan.n_decode > 0) {
    TRY_ASSIGN(report.decode_profile, bench.profile(plan.streams.front(), 1));
    report.between_steps_s = between_steps(report);
  }
  if (plan.profile && plan.n_prompt > 0) {
    const int rows = std::min(plan.n_prompt, model.executable().prefill_rows());
    TRY_ASSIGN(report.prefill_profile, bench.profile(1, rows));
  }
  return Result<BenchmarkReport>{std::move(report)};
}

}  // namespace chimere::engine
