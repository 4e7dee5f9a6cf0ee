#include "improve/workbench.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/hash.h"
#include "cache/sequence.h"
#include "engine/score.h"
#include "orchestrator/model_info.h"
#include "text/json.h"
#include "tokenizer/fingerprint.h"

namespace chimere::improve {
namespace {

std::vector<float> row_copy(std::span<const float> row) { return {row.begin(), row.end()}; }

}  // namespace

Workbench::Workbench(orchestrator::ChatModel model, int context_length)
    : model_(std::move(model)),
      context_length_(context_length),
      memory_(model_.tokenizer, model_.memory),
      preparer_(model_, memory_, context_length_) {
  fingerprint_ = hash_mix(vocabulary_fingerprint(model_.tokenizer) ^ model_.model->file_bytes());
  name_ = orchestrator::describe_model(model_).name;
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

Result<std::vector<int32_t>> Workbench::prompt_of(std::vector<chat::Message> messages, const std::string& owner,
                                                  const std::string& system_prompt) {
  orchestrator::ChatRequest request;
  model_.defaults.apply_to(request);
  request.messages = with_system(std::move(messages), system_prompt);
  request.memory.owner = owner;
  request.enable_thinking = false;
  return preparer_.prompt_of(request);
}

std::vector<int32_t> Workbench::answer_ids(const std::string& answer) const {
  std::vector<int32_t> ids = model_.tokenizer.encode(answer, EncodeMode::plain, false);
  const SpecialIds& special = model_.tokenizer.special_ids();
  const int32_t end = special.eot >= 0 ? special.eot : special.eos;
  if (!ids.empty() && end >= 0) ids.push_back(end);
  return ids;
}

Result<std::optional<double>> Workbench::score(const std::vector<chat::Message>& messages, const std::string& answer,
                                               const std::string& owner, const Arm& arm) {
  TRY_ASSIGN(std::vector<int32_t> tokens, prompt_of(messages, owner, arm.system_prompt));
  const size_t n_prompt = tokens.size();
  const std::vector<int32_t> ids = answer_ids(answer);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || static_cast<int>(tokens.size()) > context_length_) return std::optional<double>{};
  std::optional<engram::TableMemory> memory;
  if (!arm.tables.empty()) memory.emplace(arm.tables, engram::MixOptions{});
  TRY_ASSIGN(const std::vector<float> logprobs,
             engine::score_answer(*model_.model, tokens, n_prompt, memory ? &*memory : nullptr, arm.adapters.get()));
  double sum = 0;
  for (const float logprob : logprobs) sum += logprob;
  return std::optional<double>{sum / static_cast<double>(logprobs.size())};
}

Result<std::vector<double>> Workbench::choose(const std::vector<chat::Message>& messages,
                                              const std::vector<std::string>& texts) {
  TRY_ASSIGN(const std::vector<int32_t> prompt, prompt_of(messages, {}, {}));
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

Result<std::string> Workbench::answer(const std::vector<chat::Message>& messages, int max_tokens) {
  TRY_ASSIGN(const std::vector<int32_t> prompt, prompt_of(messages, {}, {}));
  const int room = std::min(max_tokens, context_length_ - static_cast<int>(prompt.size()));
  if (room <= 0) return Error{Code::exhausted, "the prompt is too long"};
  TRY_ASSIGN(Sequence sequence, Sequence::create(model_.model->executable()));
  const auto v = static_cast<size_t>(model_.model->n_vocab());
  std::vector<float> logits(v);
  std::vector<int32_t> ids, next = prompt;
  const std::vector<int32_t> never = model_.suppressed_ids();
  while (static_cast<int>(ids.size()) < room) {
    for (size_t at = 0; at < next.size();) {
      const size_t n = std::min(next.size() - at, static_cast<size_t>(model_.model->executable().prefill_rows()));
      Batch batch;
      TRY_ASSIGN(Slice slice, sequence.begin(static_cast<int>(n)));
      batch.slices.push_back(slice);
      batch.tokens.assign(next.begin() + static_cast<std::ptrdiff_t>(at),
                          next.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      if (at == next.size()) batch.logit_rows.push_back(static_cast<int32_t>(n) - 1);
      TRY(model_.model->executable().run(batch, {.logits = logits.data()}));
      TRY(sequence.commit(static_cast<int>(n)));
    }
    for (const int32_t id : never) logits[static_cast<size_t>(id)] = -INFINITY;
    const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (model_.tokenizer.is_eog(best)) break;
    ids.push_back(best);
    next = {best};
  }
  return model_.tokenizer.decode(ids, false);
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

}  // namespace chimere::improve
