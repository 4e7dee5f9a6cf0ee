#include "improve/workbench.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/hash.h"
#include "cache/sequence.h"
#include "chat/output_parser.h"
#include "engine/score.h"
#include "improve/closing.h"
#include "improve/examples/example_file.h"
#include "orchestrator/model_info.h"
#include "text/json.h"
#include "tokenizer/fingerprint.h"

namespace chimere::improve {
namespace {

constexpr double kNever = -20;  // nats, of an end that can not be drawn

// As engine::AnswerState does.
void close(const engine::Closing& closing, std::vector<int32_t>& tokens, size_t n_prompt) {
  const std::span<const int32_t> answer = std::span(tokens).subspan(n_prompt);
  if (closing.ids.empty() || answer.empty() || closing.is_at_end(answer)) return;
  for (const int32_t id : closing.unless) {
    if (std::find(answer.begin(), answer.end(), id) != answer.end()) return;
  }
  tokens.insert(tokens.end(), closing.ids.begin(), closing.ids.end());
}

std::vector<float> row_copy(std::span<const float> row) { return {row.begin(), row.end()}; }

}  // namespace

Workbench::Workbench(orchestrator::ChatModel model, int context_length)
    : model_(std::move(model)),
      context_length_(context_length),
      memory_(model_.tokenizer, model_.memory),
      preparer_(model_, memory_, context_length_) {
  fingerprint_ = hash_mix(vocabulary_fingerprint(model_.tokenizer) ^ model_.model->file_bytes());
  name_ = orchestrator::describe_model(model_).name;
  embed_ = [this](std::vector<std::vector<int32_t>> texts) { return embed(texts); };
  preparer_.embed_with(embed_);
}

engram::Vocabulary Workbench::vocabulary() const {
  return {vocabulary_fingerprint(model_.tokenizer), static_cast<uint32_t>(model_.tokenizer.n_vocab())};
}

std::vector<chat::Message> with_system(std::vector<chat::Message> messages, const std::string& prompt) {
  if (prompt.empty()) return messages;
  if (!messages.empty() && messages.front().role == "system") {
    messages.front().content = prompt + "\n\n" + messages.front().content.value_or("");
    return messages;
  }
  chat::Message system;
  system.role = "system";
  system.content = prompt;
  messages.insert(messages.begin(), std::move(system));
  return messages;
}

orchestrator::ChatRequest Workbench::request_of(const Asked& asked, const std::string& owner, const Arm& arm) const {
  orchestrator::ChatRequest request;
  model_.defaults.apply_to(request);
  request.messages = with_system(asked.messages, arm.system_prompt);
  request.tools = asked.tools;
  tell_tool_words(arm.words, request.tools, request.messages);
  request.closing = arm.closing;
  request.examples = arm.examples;
  request.memory.owner = owner;
  request.enable_thinking = false;
  return request;
}

Result<std::vector<int32_t>> Workbench::prompt_of(const Asked& asked, const std::string& owner, const Arm& arm) {
  return preparer_.prompt_of(request_of(asked, owner, arm));
}

Result<std::vector<int32_t>> Workbench::answer_ids(const Wanted& wanted, const std::vector<chat::Tool>& tools) const {
  std::vector<int32_t> ids;
  const SpecialIds& special = model_.tokenizer.special_ids();
  if (wanted.calls.empty()) {
    ids = model_.tokenizer.encode(wanted.text, EncodeMode::plain, false);
    const int32_t end = special.eot >= 0 ? special.eot : special.eos;
    if (!ids.empty() && end >= 0 && wanted.with_end) ids.push_back(end);
    return ids;
  }
  // How the template writes calls does not depend on what was asked.
  ExampleLine line;
  line.conversation.tools = tools;
  for (const char* role : {"user", "assistant"}) {
    line.conversation.messages.emplace_back();
    line.conversation.messages.back().role = role;
    line.conversation.messages.back().content = "";
  }
  line.conversation.messages.back().tool_calls = wanted.calls;
  orchestrator::ChatRequest request;
  request.tools = tools;
  const chat::ChatTemplate* chat_template = model_.template_for(request);
  if (!chat_template) return Error{Code::unsupported, "this model has no chat template"};
  TRY_ASSIGN(const Example example, tokens_of(line, model_.tokenizer, *chat_template));
  ids.assign(example.tokens.begin() + example.answer_from, example.tokens.end());
  if (!wanted.with_end && model_.tokenizer.is_eog(ids.back())) ids.pop_back();
  return ids;
}

Result<std::optional<double>> Workbench::score(const Asked& asked, const Wanted& wanted, const std::string& owner,
                                               const Arm& arm) {
  TRY_ASSIGN(std::vector<int32_t> tokens, prompt_of(asked, owner, arm));
  return score_ids(std::move(tokens), wanted, asked.tools, arm);
}

Result<std::optional<double>> Workbench::score_behind(const Asked& asked, std::span<const int32_t> thought,
                                                      const Wanted& wanted, const std::string& owner, const Arm& arm) {
  TRY_ASSIGN(orchestrator::Prepared prepared, prepared_to_think(asked, owner, arm));
  std::vector<int32_t> tokens = std::move(prepared.request.prompt);
  tokens.insert(tokens.end(), thought.begin(), thought.end());
  const std::vector<int32_t>& close = prepared.request.thought.close;
  tokens.insert(tokens.end(), close.begin(), close.end());
  return score_ids(std::move(tokens), wanted, asked.tools, arm);
}

Result<std::optional<double>> Workbench::score_ids(std::vector<int32_t> tokens, const Wanted& wanted,
                                                   const std::vector<chat::Tool>& tools, const Arm& arm) {
  const size_t n_prompt = tokens.size();
  // What the engine writes by itself is certain, and whoever does not want it can not have it.
  Wanted drawn = wanted;
  size_t n_closing = 0;
  bool is_unwanted = false;
  if (!arm.closing.empty() && wanted.calls.empty() && wanted.with_end) {
    drawn.text = without_closing(wanted.text, arm.closing);
    is_unwanted = drawn.text == wanted.text;
    n_closing = model_.tokenizer.encode(arm.closing, EncodeMode::plain, false).size();
  }
  TRY_ASSIGN(const std::vector<int32_t> ids, answer_ids(drawn, tools));
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || static_cast<int>(tokens.size()) > context_length_) return std::optional<double>{};
  std::optional<engram::TableMemory> memory;
  if (!arm.tables.empty()) memory.emplace(arm.tables, engram::MixOptions{});
  TRY_ASSIGN(const std::vector<float> logprobs,
             engine::score_answer(*model_.model, tokens, n_prompt, memory ? &*memory : nullptr, arm.adapters.get()));
  double sum = 0;
  for (const float logprob : logprobs) sum += logprob;
  if (is_unwanted) sum += kNever - logprobs.back();
  return std::optional<double>{sum / static_cast<double>(logprobs.size() + n_closing)};
}

Result<std::optional<double>> Workbench::own_share(const Asked& asked, const Wanted& wanted, const std::string& owner,
                                                   const Arm& arm) {
  TRY_ASSIGN(std::vector<int32_t> tokens, prompt_of(asked, owner, arm));
  const size_t n_prompt = tokens.size();
  TRY_ASSIGN(const std::vector<int32_t> ids, answer_ids({wanted.text, wanted.calls, false}, asked.tools));
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || static_cast<int>(tokens.size()) > context_length_) return std::optional<double>{};
  size_t at = 0, n_first = 0;
  const auto look = [&](std::span<const float> row) {
    if (++at >= n_prompt && at < tokens.size()) {
      n_first += std::max_element(row.begin(), row.end()) - row.begin() == tokens[at];
    }
  };
  TRY(engine::all_logits(*model_.model, tokens, 0, look, arm.adapters.get()));
  return std::optional<double>{static_cast<double>(n_first) / static_cast<double>(ids.size())};
}

Result<std::vector<float>> Workbench::vector_of(const std::string& question) {
  return orchestrator::question_vector(model_.tokenizer, embed_, question);
}

// Of the last state of each, of length 1, as the engine's queue of embeddings gives it.
Result<std::vector<std::vector<float>>> Workbench::embed(const std::vector<std::vector<int32_t>>& texts) {
  std::vector<std::vector<float>> vectors;
  for (const std::vector<int32_t>& text : texts) {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model_.model->executable()));
    std::vector<float> state(static_cast<size_t>(model_.model->d_model()));
    const auto most = static_cast<size_t>(model_.model->executable().prefill_rows());
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::min(text.size() - at, most);
      Batch batch;
      TRY_ASSIGN(const Slice slice, sequence.begin(static_cast<int>(n)));
      batch.slices.push_back(slice);
      batch.tokens.assign(text.begin() + static_cast<std::ptrdiff_t>(at),
                          text.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      if (at == text.size()) batch.logit_rows.push_back(static_cast<int32_t>(n) - 1);
      TRY(model_.model->executable().run(batch, {.hidden = state.data()}));
      TRY(sequence.commit(static_cast<int>(n)));
    }
    double squares = 0;
    for (const float value : state) squares += double{value} * double{value};
    for (float& value : state) value = static_cast<float>(double{value} / std::sqrt(squares));
    vectors.push_back(std::move(state));
  }
  return Result<std::vector<std::vector<float>>>{std::move(vectors)};
}

Result<std::vector<float>> Workbench::score_text(const std::string& text, const Arm& arm) {
  std::vector<int32_t> tokens = model_.tokenizer.encode(text, EncodeMode::plain, true);
  if (static_cast<int>(tokens.size()) > context_length_) tokens.resize(static_cast<size_t>(context_length_));
  if (tokens.size() < 2) return std::vector<float>{};
  std::optional<engram::TableMemory> memory;
  if (!arm.tables.empty()) memory.emplace(arm.tables, engram::MixOptions{});
  return engine::score_answer(*model_.model, tokens, 1, memory ? &*memory : nullptr, arm.adapters.get());
}

Result<std::vector<double>> Workbench::choose(const std::vector<chat::Message>& messages,
                                              const std::vector<std::string>& texts) {
  TRY_ASSIGN(const std::vector<int32_t> prompt, prompt_of({messages, {}}, {}, Arm{}));
  if (static_cast<int>(prompt.size()) > context_length_) return Error{Code::exhausted, "the prompt is too long"};
  std::vector<float> last;
  TRY(engine::all_logits(*model_.model, prompt, 0, [&](std::span<const float> row) { last = row_copy(row); }));
  std::vector<double> chances;
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = model_.tokenizer.encode(text, EncodeMode::plain, false);
    if (ids.size() != 1) return Error{Code::unsupported, "'" + text + "' is not one token of this model"};
    chances.push_back(last[static_cast<size_t>(ids.front())]);
  }
  const double top = *std::max_element(chances.begin(), chances.end());
  double sum = 0;
  for (double& chance : chances) sum += chance = std::exp(chance - top);
  for (double& chance : chances) chance /= sum;
  return Result<std::vector<double>>{std::move(chances)};
}

// The token that the mixture of model and memory finds likeliest; the memory is told of it.
int32_t Workbench::likeliest(std::vector<float>& logits, std::span<const int32_t> tokens, MemorySource* memory) const {
  const auto best = [&] {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  if (!memory) return best();
  const double total = engine::log_sum_exp(logits);
  const auto entries = memory->expect(tokens, false);
  Sampled taken;
  taken.id = best();
  double top = mixed_logprob(logits[static_cast<size_t>(taken.id)] - total, taken.id, entries);
  for (const MemoryEntry& entry : entries) {
    const double mixed = mixed_logprob(logits[static_cast<size_t>(entry.id)] - total, entry.id, entries);
    if (mixed > top && std::isfinite(logits[static_cast<size_t>(entry.id)])) {
      top = mixed;
      taken.id = entry.id;
    }
  }
  taken.logprob = static_cast<float>(logits[static_cast<size_t>(taken.id)] - total);
  taken.entropy = static_cast<float>(engine::entropy_of(logits, total));
  memory->accept(taken);
  return taken.id;
}

// The request of score_behind() and of think(): a thought is open behind its prompt.
Result<orchestrator::Prepared> Workbench::prepared_to_think(const Asked& asked, const std::string& owner,
                                                            const Arm& arm) {
  orchestrator::ChatRequest request = request_of(asked, owner, arm);
  request.enable_thinking = true;
  request.thinking.close_above = 1.0f;  // so that it is known where sentences end
  TRY_ASSIGN(orchestrator::Prepared prepared, preparer_.prepare(request));
  engine::Thought& thought = prepared.request.thought;
  if (thought.end_ids.empty()) return Error{Code::unsupported, "this model has no thoughts that can be closed"};
  // Where the template leaves it to the model whether it thinks, it does.
  if (!thought.open && thought.opener >= 0) prepared.request.prompt.push_back(thought.opener);
  thought.open = true;
  return Result<orchestrator::Prepared>{std::move(prepared)};
}

std::vector<int32_t> Workbench::never_drawn(const engine::Request& request) const {
  std::vector<int32_t> never = model_.suppressed_ids();
  for (const TokenBias& bias : request.sampling.logit_bias) {
    if (bias.delta == -INFINITY) never.push_back(bias.id);
  }
  return never;
}

// Runs a sequence to the end of its tokens, with logits of the last one.
struct Workbench::Reading {
  Workbench& bench;
  Sequence sequence;
  std::vector<float> logits;
  size_t at = 0;

  static Result<Reading> begin(Workbench& bench) {
    TRY_ASSIGN(Sequence sequence, Sequence::create(bench.model_.model->executable()));
    Reading reading{bench, std::move(sequence), {}};
    reading.logits.resize(static_cast<size_t>(bench.model_.model->n_vocab()));
    return Result<Reading>{std::move(reading)};
  }
  Status read(std::span<const int32_t> tokens, const AdapterSet* adapters) {
    Executable& executable = bench.model_.model->executable();
    while (at < tokens.size()) {
      const size_t n = std::min(tokens.size() - at, static_cast<size_t>(executable.prefill_rows()));
      Batch batch;
      TRY_ASSIGN(Slice slice, sequence.begin(static_cast<int>(n)));
      slice.adapters = adapters;
      batch.slices.push_back(slice);
      batch.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                          tokens.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      if (at == tokens.size()) batch.logit_rows.push_back(static_cast<int32_t>(n) - 1);
      TRY(executable.run(batch, {.logits = logits.data()}));
      TRY(sequence.commit(static_cast<int>(n)));
    }
    return Ok{};
  }
};

Result<std::optional<WrittenThought>> Workbench::think(const Asked& asked, const std::string& owner, const Arm& arm,
                                                       int most) {
  auto prepared = prepared_to_think(asked, owner, arm);
  if (!prepared && prepared.error().code == Code::unsupported) return std::optional<WrittenThought>{};
  if (!prepared) return prepared.error();
  const engine::Request& request = prepared->request;
  std::vector<int32_t> tokens = request.prompt;
  int room = std::min(most, (context_length_ - static_cast<int>(tokens.size())) / 2);
  if (request.thought.budget >= 0) room = std::min(room, request.thought.budget);
  if (room <= 0) return std::optional<WrittenThought>{};
  const std::vector<int32_t> never = never_drawn(request);
  WrittenThought thought;
  thought.max_entropy = request.thinking.max_entropy;
  TRY_ASSIGN(Reading reading, Reading::begin(*this));
  while (static_cast<int>(thought.ids.size()) < room) {
    TRY(reading.read(tokens, arm.adapters.get()));
    for (const int32_t id : never) reading.logits[static_cast<size_t>(id)] = -INFINITY;
    const int32_t id = likeliest(reading.logits, tokens, nullptr);
    const auto& ends = request.thought.end_ids;
    if (model_.tokenizer.is_eog(id) || std::find(ends.begin(), ends.end(), id) != ends.end()) break;
    tokens.push_back(id);
    thought.ids.push_back(id);
    const double total = engine::log_sum_exp(reading.logits);
    thought.max_prob.push_back(static_cast<float>(std::exp(reading.logits[static_cast<size_t>(id)] - total)));
    thought.entropy.push_back(static_cast<float>(engine::entropy_of(reading.logits, total)));
    thought.is_break.push_back(request.thinking.is_break(id));
  }
  return std::optional<WrittenThought>{std::move(thought)};
}

Result<Answered> Workbench::answer(const Asked& asked, const std::string& owner, const Arm& arm, int max_tokens) {
  TRY_ASSIGN(const auto prepared, preparer_.prepare(request_of(asked, owner, arm)));
  return write(prepared, prepared.request.prompt, asked.tools, arm, max_tokens);
}

Result<Answered> Workbench::answer_behind(const Asked& asked, std::span<const int32_t> thought,
                                          const std::string& owner, const Arm& arm, int max_tokens) {
  TRY_ASSIGN(const auto prepared, prepared_to_think(asked, owner, arm));
  std::vector<int32_t> tokens = prepared.request.prompt;
  tokens.insert(tokens.end(), thought.begin(), thought.end());
  const std::vector<int32_t>& close = prepared.request.thought.close;
  tokens.insert(tokens.end(), close.begin(), close.end());
  return write(prepared, std::move(tokens), asked.tools, arm, max_tokens);
}

Result<Answered> Workbench::write(const orchestrator::Prepared& prepared, std::vector<int32_t> tokens,
                                  const std::vector<chat::Tool>& tools, const Arm& arm, int max_tokens) {
  const size_t n_prompt = tokens.size();
  const int room = std::min(max_tokens, context_length_ - static_cast<int>(n_prompt));
  if (room <= 0) return Error{Code::exhausted, "the prompt is too long"};
  std::optional<engram::TableMemory> memory;
  if (!arm.tables.empty()) memory.emplace(arm.tables, engram::MixOptions{});
  const std::vector<int32_t> never = never_drawn(prepared.request);
  TRY_ASSIGN(Reading reading, Reading::begin(*this));
  Answered answered;
  while (static_cast<int>(tokens.size() - n_prompt) < room && !answered.has_ended) {
    TRY(reading.read(tokens, arm.adapters.get()));
    for (const int32_t id : never) reading.logits[static_cast<size_t>(id)] = -INFINITY;
    tokens.push_back(likeliest(reading.logits, tokens, memory ? &*memory : nullptr));
    answered.has_ended = model_.tokenizer.is_eog(tokens.back());
  }
  if (answered.has_ended) tokens.pop_back();
  if (answered.has_ended) close(prepared.request.closing, tokens, n_prompt);
  const std::span<const int32_t> written = std::span(tokens).subspan(n_prompt);
  orchestrator::ChatRequest request;
  request.tools = tools;
  const chat::ChatTemplate* chat_template = model_.template_for(request);
  chat::OutputOptions output;
  output.tools = tools;
  if (chat_template) output.dialect = &chat_template->dialect();
  // Marks of calls are special tokens, which a text does not show.
  chat::ParsedOutput parsed = chat::parse_output(model_.tokenizer.decode(written, !tools.empty()), output);
  answered.text = std::move(parsed.content);
  answered.calls = std::move(parsed.tool_calls);
  return Result<Answered>{std::move(answered)};
}

Result<std::vector<GuardPair>> read_guard(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  std::vector<GuardPair> pairs;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const auto json = parse_json(line);
    const bool fits = json && json->is_object() && json->contains("question") && json->contains("answer") &&
                      (*json)["question"].is_string() && (*json)["answer"].is_string();
    if (!fits) {
      return Error{Code::invalid_argument,
                   path + ":" + std::to_string(number) + ": expected {\"question\": text, \"answer\": text}"};
    }
    pairs.push_back({(*json)["question"].get<std::string>(), (*json)["answer"].get<std::string>()});
  }
  if (pairs.size() < 2) return Error{Code::invalid_argument, path + ": expected at least two questions"};
  return Result<std::vector<GuardPair>>{std::move(pairs)};
}

Result<std::vector<std::string>> read_passages(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  std::vector<std::string> passages(1);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty()) {
      passages.back() += (passages.back().empty() ? "" : "\n") + line;
    } else if (!passages.back().empty()) {
      passages.emplace_back();
    }
  }
  if (passages.back().empty()) passages.pop_back();
  if (passages.size() < 2) return Error{Code::invalid_argument, path + ": expected at least two passages"};
  return Result<std::vector<std::string>>{std::move(passages)};
}

}  // namespace chimere::improve
