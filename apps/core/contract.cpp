#include "contract.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cache/sequence.h"
#include "sampling/sampler.h"

namespace chimere {
namespace {

using Tokens = std::span<const int32_t>;
using Rows = std::vector<float>;

struct Part {
  Sequence* sequence;
  Tokens tokens;
  const AdapterSet* adapters = nullptr;
  bool is_draft = false;  // may be taken back
};

class Contract {
 public:
  Contract(models::Model& model, const AdapterSet* adapters)
      : executable_(model.executable()), v_(model.n_vocab()), adapters_(adapters) {}

  Status decode_rows_stand_alone(Tokens all) {
    TRY_ASSIGN(const Rows first, alone(all.first(8), {3, 1}, adapters_));
    TRY_ASSIGN(const Rows second, alone(all.subspan(8, 14), {7, 5, 2}));
    TRY_ASSIGN(const Rows prompt, alone(all.subspan(22, 20), {20}, adapters_));
    TRY_ASSIGN(Sequence a, Sequence::create(executable_));
    TRY_ASSIGN(Sequence b, Sequence::create(executable_));
    TRY_ASSIGN(Sequence c, Sequence::create(executable_));
    TRY_ASSIGN(Rows rows_a, feed(a, all.first(3), {3}, adapters_));
    // The prompt stands between the two, and the decode slices are cut otherwise than alone.
    TRY_ASSIGN(
        const Rows together,
        step({{&a, all.subspan(3, 5), adapters_}, {&c, all.subspan(22, 20), adapters_}, {&b, all.subspan(8, 14)}}));
    const auto rows = [&](size_t from, size_t n) { return Rows(&together[from * v_], &together[from * v_] + n * v_); };
    const Rows rest = rows(0, 5);
    rows_a.insert(rows_a.end(), rest.begin(), rest.end());
    TRY(equal("decode rows beside a prompt", rows_a, first));
    TRY(equal("decode rows cut otherwise", rows(25, 14), second));
    return equal("a prompt beside decode rows", rows(5, 20), prompt);
  }

  // As many single tokens at once as the engine would run, each against its own run; every other one with adapters.
  Status streams_stand_alone(Tokens all, int n) {
    const auto of = [&](int i) { return i % 2 == 0 ? adapters_ : nullptr; };
    std::vector<Sequence> sequences;
    for (int i = 0; i < n; ++i) {
      TRY_ASSIGN(Sequence s, Sequence::create(executable_));
      sequences.push_back(std::move(s));
    }
    Rows together(static_cast<size_t>(n) * 3 * v_), apart = together;
    for (int t = 0; t < 3; ++t) {
      std::vector<Part> parts;
      for (int i = 0; i < n; ++i) parts.push_back({&sequences[i], all.subspan((i + t) % all.size(), 1), of(i)});
      TRY_ASSIGN(const Rows rows, step(parts));
      for (int i = 0; i < n; ++i) std::copy_n(&rows[i * v_], v_, &together[(i * 3 + t) * v_]);
    }
    for (int i = 0; i < n; ++i) {
      TRY_ASSIGN(Sequence s, Sequence::create(executable_));
      for (int t = 0; t < 3; ++t) {
        TRY_ASSIGN(const Rows row, step({{&s, all.subspan((i + t) % all.size(), 1), of(i)}}));
        std::copy_n(row.begin(), v_, &apart[(i * 3 + t) * v_]);
      }
    }
    return equal(std::to_string(n) + " streams", together, apart);
  }

  Status rollback_leaves_no_trace(Tokens all) {
    TRY_ASSIGN(Sequence straight, Sequence::create(executable_));
    TRY_ASSIGN(Sequence back, Sequence::create(executable_));
    TRY(feed(straight, all.first(20), {20}, adapters_));
    TRY_ASSIGN(const Rows expected, feed(straight, all.subspan(20, 6), {2}, adapters_));
    TRY(feed(back, all.first(20), {20}, adapters_));
    TRY_ASSIGN(Rows found, feed(back, all.subspan(20, 2), {2}, adapters_));
    TRY_ASSIGN(const Snapshot snapshot, back.snapshot());
    TRY(step({{&back, all.subspan(21, 9), adapters_, true}}));
    TRY(back.rollback(9));
    std::vector<int32_t> draft(all.begin() + 22, all.begin() + 24);
    draft.insert(draft.end(), all.begin() + 30, all.begin() + 35);
    TRY_ASSIGN(Rows drafted, step({{&back, draft, adapters_, true}}));
    TRY(back.rollback(5));
    TRY_ASSIGN(Rows rest, feed(back, all.subspan(24, 2), {1}, adapters_));
    Rows rolled = found;
    rolled.insert(rolled.end(), drafted.begin(), drafted.begin() + static_cast<std::ptrdiff_t>(2 * v_));
    rolled.insert(rolled.end(), rest.begin(), rest.end());
    TRY(equal("rollback", rolled, expected));
    TRY(back.restore(snapshot));
    TRY_ASSIGN(rest, feed(back, all.subspan(22, 4), {1}, adapters_));
    found.insert(found.end(), rest.begin(), rest.end());
    return equal("snapshot and restore", found, expected);
  }

  Status draws_like_the_host(Tokens all) {
    TRY_ASSIGN(const bool ready, executable_.prepare_draws({}));
    if (!ready) return Ok{};
    constexpr int kRows = 32;
    SamplerState state(all.first(40));
    std::vector<SamplingParams> params(kRows);
    for (int i = 0; i < kRows; ++i) {
      params[i].temperature = 0.3f * static_cast<float>(i % 5);
      params[i].top_k = i % 3 == 0 ? 20 : 0;
      params[i].top_p = i % 2 == 0 ? 0.9f : 1.0f;
      params[i].min_p = i % 7 == 0 ? 0.05f : 0.0f;
      params[i].repetition_penalty = i % 4 == 0 ? 1.1f : 1.0f;
      params[i].dry_multiplier = i % 8 == 0 ? 0.8f : 0.0f;
      params[i].seed = 100 + i;
    }
    std::vector<Draw> draws;
    for (int i = 0; i < kRows; ++i) draws.push_back({&params[i], &state, {}, static_cast<uint64_t>(i)});
    std::vector<Result<Sampled>> drawn(kRows, Error{Code::internal, "nothing was drawn"});
    TRY_ASSIGN(Sequence one, Sequence::create(executable_));
    TRY_ASSIGN(Sequence two, Sequence::create(executable_));
    TRY_ASSIGN(const Rows logits, step({{&one, all.first(kRows)}}));
    Batch batch;
    TRY_ASSIGN(batch, make_batch({{&two, all.first(kRows)}}));
    TRY(executable_.run(batch, {.draws = draws, .drawn = drawn}));
    Sampler host(static_cast<int32_t>(v_));
    int different = 0;
    for (int i = 0; i < kRows; ++i) {
      TRY(drawn[i]);
      TRY_ASSIGN(const Sampled expected, host.sample(row_of(logits, i), params[i], state, {}, draws[i].position));
      different += drawn[i]->id != expected.id;
    }
    std::printf("%-32s %s\n", "drawing", different == 0 ? "same tokens" : "DIFFERENT");
    if (different == 0) return Ok{};
    return Error{Code::internal, "drawing: " + std::to_string(different) + " of " + std::to_string(kRows) +
                                     " tokens are not those of the host's sampler"};
  }

 private:
  std::span<const float> row_of(const Rows& rows, int i) const { return std::span(rows).subspan(i * v_, v_); }

  static Result<Batch> make_batch(const std::vector<Part>& parts) {
    Batch batch;
    for (const Part& part : parts) {
      const int n = static_cast<int>(part.tokens.size());
      TRY_ASSIGN(Slice slice, part.is_draft ? part.sequence->begin_draft(n) : part.sequence->begin(n));
      slice.first_row = batch.n_rows();
      slice.adapters = part.adapters;
      batch.slices.push_back(slice);
      for (const int32_t token : part.tokens) {
        batch.logit_rows.push_back(batch.n_rows());
        batch.tokens.push_back(token);
      }
    }
    return Result<Batch>{std::move(batch)};
  }

  // One batch of all parts; the logits of every row, part after part.
  Result<Rows> step(const std::vector<Part>& parts) {
    TRY_ASSIGN(const Batch batch, make_batch(parts));
    Rows logits(batch.logit_rows.size() * v_);
    TRY(executable_.run(batch, {.logits = logits.data()}));
    for (const Part& part : parts) TRY(part.sequence->commit(static_cast<int>(part.tokens.size())));
    return Result<Rows>{std::move(logits)};
  }

  // In slices of the lengths given, the last of which repeats.
  Result<Rows> feed(Sequence& sequence, Tokens tokens, const std::vector<int>& lengths,
                    const AdapterSet* adapters = nullptr) {
    Rows logits;
    for (size_t at = 0, i = 0; at < tokens.size(); ++i) {
      const size_t n = std::min<size_t>(lengths[std::min(i, lengths.size() - 1)], tokens.size() - at);
      TRY_ASSIGN(const Rows rows, step({{&sequence, tokens.subspan(at, n), adapters}}));
      logits.insert(logits.end(), rows.begin(), rows.end());
      at += n;
    }
    return Result<Rows>{std::move(logits)};
  }

  Result<Rows> alone(Tokens tokens, const std::vector<int>& lengths, const AdapterSet* adapters = nullptr) {
    TRY_ASSIGN(Sequence sequence, Sequence::create(executable_));
    return feed(sequence, tokens, lengths, adapters);
  }

  static Status equal(const std::string& what, const Rows& found, const Rows& expected) {
    const bool same = found == expected;
    std::printf("%-32s %s\n", what.c_str(), same ? "same bits" : "DIFFERENT");
    if (same) return Ok{};
    return Error{Code::internal, what + ": the bits of some logits are not those expected"};
  }

  Executable& executable_;
  size_t v_;
  const AdapterSet* adapters_;
};

}  // namespace

Status check_contract(models::Model& model, std::span<const int32_t> tokens, const AdapterSet* adapters) {
  if (tokens.size() < 60) {
    return Error{Code::invalid_argument,
                 "--ids-file: expected at least 60 tokens, found " + std::to_string(tokens.size())};
  }
  Contract contract(model, adapters);
  TRY(contract.decode_rows_stand_alone(tokens));
  for (const int n : {2, 3, 5, 8, 16, 32, 33}) TRY(contract.streams_stand_alone(tokens, n));
  TRY(contract.rollback_leaves_no_trace(tokens));
  return contract.draws_like_the_host(tokens);
}

}  // namespace chimere
