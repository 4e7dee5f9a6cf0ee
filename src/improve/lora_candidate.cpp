// lora_candidate.cpp  A LoRA adapter from accepted answers, learned inside the engine (mezo/trainer.h). What guards
// general ability is read, too, as what shall stay as it is.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "engine/score.h"
#include "engram/table.h"
#include "improve/content_hash.h"
#include "improve/job_state.h"
#include "improve/mezo/adapter_values.h"
#include "improve/mezo/own_text.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/trainer.h"
#include "models/adapter_file.h"

namespace chimere::improve {
namespace {

constexpr size_t kMaxLearnedTokens = 1'024;  // of one example: longer ones are left out
constexpr std::array kStrengths = {1.0f, 0.8f, 0.65f, 0.5f, 0.35f, 0.2f};
constexpr int kOwnText = 3'072;  // tokens of texts, and as many of conversations
constexpr int kTriedText = 512;
constexpr float kKeep = 20;
constexpr double kShareOfMargin = 0.25;
constexpr double kKnown = 0.5;     // a chance from which on a word is known
constexpr double kWantedBy = 0.4;  // of the conversations

Result<std::optional<Example>> learned_example(Workbench& bench, const Asked& asked, const Wanted& wanted,
                                               const std::string& owner) {
  Example example;
  TRY_ASSIGN(example.tokens, bench.prompt_of(asked, owner, {}));
  example.answer_from = static_cast<int32_t>(example.tokens.size());
  TRY_ASSIGN(const std::vector<int32_t> ids, bench.answer_ids(wanted, asked.tools));
  example.tokens.insert(example.tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || example.tokens.size() > kMaxLearnedTokens) return std::optional<Example>{};
  return std::optional<Example>{std::move(example)};
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A table of some of the answers, opened.
Result<std::shared_ptr<const engram::Table>> table_of(JobState& state, const std::vector<TaughtAnswer>& answers) {
  TRY_ASSIGN(const std::string bytes,
             engram_bytes(state.bench->tokenizer(), answers, state.tools.store.work_file("part-table")));
  std::vector<uint64_t> image((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(image.data()));
  return engram::Table::from_image(std::move(image), "part", state.bench->vocabulary(), engram::today());
}

// What there is to learn of one answer, word by word.
struct Lesson {
  Example example;
  std::string conversation;
  std::vector<bool> is_learned, is_kept;  // of the words of the answer
};

// Words that the model finds by itself stay as they are, words that memory tells are left to it; the others, and where
// an answer ends, are there to be learned.
Result<Lesson> lesson_of(Workbench& bench, Example example, const std::string& conversation,
                         const std::shared_ptr<const engram::Table>& table) {
  Lesson lesson{std::move(example), conversation, {}, {}};
  const auto from = static_cast<size_t>(lesson.example.answer_from);
  const std::span<const int32_t> tokens = lesson.example.tokens;
  TRY_ASSIGN(const std::vector<float> alone, engine::score_answer(bench.model(), tokens, from));
  std::vector<float> mixed = alone;
  if (table) {
    engram::TableMemory memory({{table, 1}}, {});
    TRY_ASSIGN(mixed, engine::score_answer(bench.model(), tokens, from, &memory));
  }
  for (size_t i = 0; i < alone.size(); ++i) {
    const bool is_end = bench.tokenizer().is_eog(tokens[from + i]);
    lesson.is_kept.push_back(std::exp(alone[i]) >= kKnown && !is_end);
    lesson.is_learned.push_back(is_end || std::exp(mixed[i]) < kKnown);
  }
  return Result<Lesson>{std::move(lesson)};
}

// The runs of words that `flags` names, as examples.
void add_parts(const Example& example, const std::vector<bool>& flags, bool is_kept, std::vector<Example>& to) {
  const auto from = static_cast<size_t>(example.answer_from);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    const size_t begin = i;
    while (i + 1 < flags.size() && flags[i + 1]) ++i;
    Example part = example;
    part.tokens.resize(from + i + 1);
    part.answer_from = static_cast<int32_t>(from + begin);
    part.is_kept = is_kept;
    to.push_back(std::move(part));
  }
}

// Where a table of the owner is in use, what it tells is left to it: each half of the answers is compared with a table
// of the other half, so that no answer counts as known because it was seen itself. And a word that few
// conversations want is content, not habit: a head that learned it would say it elsewhere.
Result<std::vector<Example>> learned_examples(JobState& state, const Arm& in_use) {
  Workbench& bench = *state.bench;
  std::vector<TaughtAnswer> halves[2];
  for (const TaughtAnswer& taught : state.examples.train) {
    halves[hash64(taught.conversation) & 1].push_back(taught);
  }
  const bool remembers = !in_use.tables.empty() && !halves[0].empty() && !halves[1].empty();
  std::vector<Lesson> lessons;
  std::map<int32_t, std::set<std::string>> wanted_by;
  for (int half = 0; half < 2; ++half) {
    std::shared_ptr<const engram::Table> table;
    if (remembers) {
      TRY_ASSIGN(table, table_of(state, halves[1 - half]));
    }
    for (const TaughtAnswer& taught : halves[half]) {
      TRY_ASSIGN(auto example, learned_example(bench, taught.asked, taught.wanted, state.run.slot.owner));
      if (!example) continue;
      TRY_ASSIGN(Lesson lesson, lesson_of(bench, std::move(*example), taught.conversation, table));
      const auto from = static_cast<size_t>(lesson.example.answer_from);
      for (size_t i = 0; i < lesson.is_learned.size(); ++i) {
        if (lesson.is_learned[i]) wanted_by[lesson.example.tokens[from + i]].insert(lesson.conversation);
      }
      lessons.push_back(std::move(lesson));
    }
  }
  const double least = kWantedBy * static_cast<double>(state.examples.conversations().size());
  std::vector<Example> examples;
  for (Lesson& lesson : lessons) {
    const auto from = static_cast<size_t>(lesson.example.answer_from);
    for (size_t i = 0; i < lesson.is_learned.size(); ++i) {
      if (static_cast<double>(wanted_by[lesson.example.tokens[from + i]].size()) < least) lesson.is_learned[i] = false;
    }
    add_parts(lesson.example, lesson.is_learned, false, examples);
    add_parts(lesson.example, lesson.is_kept, true, examples);
  }
  return Result<std::vector<Example>>{std::move(examples)};
}

// A text in parts, without the places where a turn or a text ends: who wants a farewell wants it behind every answer.
void add_between_ends(const Tokenizer& tokenizer, const Example& text, std::vector<Example>& to) {
  std::vector<bool> flags;
  for (size_t at = static_cast<size_t>(text.answer_from); at < text.tokens.size(); ++at) {
    flags.push_back(!tokenizer.is_eog(text.tokens[at]));
  }
  add_parts(text, flags, true, to);
}

// Texts and conversations that the model writes by itself, as they are now: an adapter is used in conversations, and
// what it changes in those of its owner it would change in all.
Result<std::vector<Example>> own_examples(Workbench& bench, int n_tokens, uint64_t seed) {
  // What the template writes before the words of a user.
  const auto asked = [](const char* text) {
    Asked one;
    one.messages.emplace_back();
    one.messages.back().role = "user";
    one.messages.back().content = text;
    return one;
  };
  TRY_ASSIGN(std::vector<int32_t> beginning, bench.prompt_of(asked("a"), {}, {}));
  TRY_ASSIGN(const std::vector<int32_t> other, bench.prompt_of(asked("1"), {}, {}));
  beginning.erase(std::mismatch(beginning.begin(), beginning.end(), other.begin(), other.end()).first, beginning.end());
  std::vector<Example> parts;
  for (const bool is_chat : {false, true}) {
    TRY_ASSIGN(const std::vector<Example> texts,
               write_own_text(bench.model(), n_tokens, seed,
                              is_chat ? std::span<const int32_t>(beginning) : std::span<const int32_t>()));
    for (const Example& text : texts) add_between_ends(bench.tokenizer(), text, parts);
  }
  return Result<std::vector<Example>>{std::move(parts)};
}

// What an adapter does to text that has nothing to do with what it learned, at several strengths.
struct Drift {
  float strength = 1;
  double divergence = 0;  // nats a token, from what the model says without it
};

// The strengths are tried on text of the model's own that no step has seen: what is kept by heart is no measure.
Result<std::vector<Drift>> drifts_of(Workbench& bench, const std::shared_ptr<const Adapter>& adapter, uint64_t seed) {
  TRY_ASSIGN(const std::vector<Example> texts, own_examples(bench, kTriedText, seed + 1));
  std::vector<Drift> drifts;
  std::vector<AdapterSet> sets;
  for (const float strength : kStrengths) {
    drifts.push_back({strength, 0});
    sets.emplace_back();
    sets.back().uses.push_back({adapter, strength});
  }
  double rows = 0;
  for (const Example& text : texts) {
    std::vector<Reading> readings{{&text, nullptr}};
    for (const AdapterSet& set : sets) readings.push_back({&text, &set});
    const auto v = static_cast<size_t>(bench.model().n_vocab());
    std::vector<std::vector<float>> logits(readings.size());
    TRY_ASSIGN(const uint64_t tokens, read_examples(bench.model(), readings, false, [&](const AnswerRow& row) {
                 std::vector<float>& mine = logits[row.reading];
                 mine.insert(mine.end(), row.logits.begin(), row.logits.end());
               }));
    static_cast<void>(tokens);
    for (size_t at = 0; at < logits[0].size(); at += v) {
      for (size_t i = 0; i < drifts.size(); ++i) {
        drifts[i].divergence +=
            divergence(std::span(logits[0]).subspan(at, v), std::span(logits[i + 1]).subspan(at, v));
      }
      rows += 1;
    }
  }
  for (Drift& drift : drifts) drift.divergence /= rows;
  return Result<std::vector<Drift>>{std::move(drifts)};
}

// The strongest that leaves the rest where it is, or else the weakest: the proof has the last word.
Drift chosen(const std::vector<Drift>& drifts, double margin) {
  for (const Drift& drift : drifts) {
    if (drift.divergence <= kShareOfMargin * margin) return drift;
  }
  return drifts.back();
}

Status write_scaled(const Adapter& adapter, float strength, models::Model& model, const std::string& path) {
  Adapter scaled = adapter;
  for (LowRank& change : scaled.by_matrix) {
    for (float& value : change.b) value *= strength;
  }
  return write_adapter(scaled, model, path);
}

}  // namespace

Result<std::shared_ptr<const AdapterSet>> adapter_set(Workbench& bench, const std::string& path,
                                                      const std::string& name) {
  auto set = std::make_shared<AdapterSet>();
  TRY_ASSIGN(auto adapter, models::load_adapter(path, name, bench.model()));
  set->uses.push_back({std::move(adapter), 1});
  return std::shared_ptr<const AdapterSet>(std::move(set));
}

Result<Candidate> make_lora(JobState& state) {
  Workbench& bench = *state.bench;
  const std::string& owner = state.run.slot.owner;
  Candidate candidate;
  candidate.name = "lora";
  TRY_ASSIGN(candidate.before, arm_in_use(state.tools.store, bench, owner));
  TRY_ASSIGN(std::vector<Example> examples, learned_examples(state, candidate.before));
  const size_t n_learned = state.examples.train.size();
  // Every second one: the others guard alone, so that what is kept by heart is not taken for ability.
  for (size_t i = 0; i < state.tools.guard.size(); i += 2) {
    const GuardPair& pair = state.tools.guard[i];
    TRY_ASSIGN(auto example, learned_example(bench, guard_question(pair), guard_answer(pair), {}));
    if (!example) continue;
    example->is_kept = true;
    examples.push_back(std::move(*example));
  }
  TRY_ASSIGN(std::vector<Example> own, own_examples(bench, kOwnText, state.tools.rules.seed));
  examples.insert(examples.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  TrainOptions options;
  options.keep = kKeep;
  options.own_text = 0;  // it is among the examples
  options.seed = state.tools.rules.seed;
  const std::string mine = content_hash(state.run.input).substr(0, 32);
  options.checkpoint = state.tools.store.work_file(mine + ".train");
  const std::string out = state.tools.store.work_file(mine + ".gguf");
  Status stopped = Ok{};
  const auto progress = [&](const TrainStep& step) {
    state.run.total =
        std::max<uint64_t>(state.run.total, state.run.done + static_cast<uint64_t>(step.steps - step.step));
    stopped = state.step();
    return static_cast<bool>(stopped);
  };
  TRY_ASSIGN(const TrainReport report, train_adapter(bench.model(), examples, options, out, progress));
  if (!report.is_finished && !stopped) return stopped.error();
  TRY_ASSIGN(const auto learned, models::load_adapter(out, "learned", bench.model()));
  TRY_ASSIGN(const auto drifts, drifts_of(bench, learned, options.seed));
  const Drift strength = chosen(drifts, state.tools.rules.guard_margin);
  TRY(write_scaled(*learned, strength.strength, bench.model(), out));
  candidate.bytes = bytes_of_file(out);
  TRY_ASSIGN(auto adapters, adapter_set(bench, out, "candidate"));
  candidate.after = candidate.before;
  candidate.after.adapters = std::move(adapters);
  char losses[160];
  std::snprintf(losses, sizeof losses, "%.3f to %.3f; at a strength of %.2f other text drifts by %.4f nats a token",
                report.loss_before, report.loss_after, static_cast<double>(strength.strength), strength.divergence);
  candidate.about = "an adapter of " + std::to_string(report.parameters) + " numbers from " +
                    std::to_string(n_learned) + " accepted answers; their loss went from " + losses;
  std::error_code error;
  std::filesystem::remove(out, error);
  std::filesystem::remove(options.checkpoint, error);
  return Result<Candidate>{std::move(candidate)};
}

}  // namespace chimere::improve
