#include "orchestrator/shown_examples.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace chimere::orchestrator {
namespace {

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

std::string as_example(const ShownExamples::Entry& entry) {
  return "Question: " + entry.question + "\nAnswer: " + entry.answer + "\n\n";
}

}  // namespace

std::vector<std::string> ShownExamples::probes(const std::string& question) {
  return {"The word " + question + " means", "Question: " + question + "\nAnswer:"};
}

ShownExamples::ShownExamples(std::vector<Entry> entries, size_t least) : entries_(std::move(entries)), least_(least) {
  if (entries_.empty()) return;
  const size_t n_values = entries_.front().vector.size();
  std::vector<double> sums(n_values, 0), squares(n_values, 0);
  for (const Entry& entry : entries_) {
    for (size_t i = 0; i < n_values; ++i) sums[i] += double{entry.vector[i]};
  }
  const auto n = static_cast<double>(entries_.size());
  for (const double sum : sums) mean_.push_back(static_cast<float>(sum / n));
  for (const Entry& entry : entries_) {
    for (size_t i = 0; i < n_values; ++i) {
      const double away = double{entry.vector[i]} - double{mean_[i]};
      squares[i] += away * away;
    }
  }
  constexpr double kLeastVariance = 1e-12;
  for (const double square : squares) scale_.push_back(static_cast<float>(1 / std::sqrt(square / n + kLeastVariance)));
  for (Entry& entry : entries_) entry.vector = scaled(entry.vector);
}

// The part of each probe is of length 1.
std::vector<float> ShownExamples::scaled(std::span<const float> vector) const {
  std::vector<float> made(vector.size());
  for (size_t i = 0; i < vector.size(); ++i) made[i] = (vector[i] - mean_[i]) * scale_[i];
  const size_t width = made.size() / kProbes;
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const std::span<float> part(made.data() + probe * width, width);
    const double length = std::sqrt(product(part, part));
    if (!(length > 0)) continue;
    for (float& value : part) value = static_cast<float>(double{value} / length);
  }
  return made;
}

// By the first `n_values` of the vectors; of equally near ones the first entries.
std::vector<ShownExamples::Near> ShownExamples::nearest(std::span<const float> scaled, size_t n_values,
                                                        std::optional<size_t> but) const {
  std::vector<Near> near;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (but == i) continue;
    near.push_back({product(scaled.first(n_values), std::span(entries_[i].vector).first(n_values)), i});
  }
  std::stable_sort(near.begin(), near.end(), [](const Near& a, const Near& b) { return a.likeness > b.likeness; });
  return near;
}

size_t ShownExamples::vote(const std::vector<Near>& near) const {
  const auto n = static_cast<std::ptrdiff_t>(std::min(near.size(), kVoters));
  return static_cast<size_t>(std::count_if(near.begin(), near.begin() + n,
                                           [&](const Near& one) { return !entries_[one.entry].answer.empty(); }));
}

std::vector<size_t> ShownExamples::votes() const {
  std::vector<size_t> all;
  for (size_t i = 0; i < entries_.size(); ++i) {
    all.push_back(vote(nearest(entries_[i].vector, entries_[i].vector.size(), i)));
  }
  return all;
}

std::optional<std::string> ShownExamples::with_examples(const std::string& question, std::span<const float> vector,
                                                        size_t room) const {
  if (entries_.empty() || vector.size() != mean_.size()) return std::nullopt;
  const std::vector<float> own = scaled(vector);
  if (vote(nearest(own, own.size(), std::nullopt)) < least_) return std::nullopt;
  std::vector<size_t> chosen;
  for (const Near& near : nearest(own, own.size() / kProbes, std::nullopt)) {
    const Entry& entry = entries_[near.entry];
    if (entry.answer.empty()) continue;
    const size_t bytes = as_example(entry).size();
    if (bytes > room) continue;
    room -= bytes;
    chosen.push_back(near.entry);
    if (chosen.size() == kShown) break;
  }
  if (chosen.empty()) return std::nullopt;
  std::string text;
  for (auto entry = chosen.rbegin(); entry != chosen.rend(); ++entry) text += as_example(entries_[*entry]);
  return text + "Question: " + question + "\nAnswer:";
}

Result<std::vector<float>> question_vector(const Tokenizer& tokenizer, const EmbedTexts& embed,
                                           const std::string& question) {
  std::vector<std::vector<int32_t>> texts;
  for (const std::string& probe : ShownExamples::probes(question)) {
    texts.push_back(tokenizer.encode(probe, EncodeMode::plain, true));
  }
  TRY_ASSIGN(const auto vectors, embed(std::move(texts)));
  std::vector<float> vector;
  for (const std::vector<float>& part : vectors) vector.insert(vector.end(), part.begin(), part.end());
  return Result<std::vector<float>>{std::move(vector)};
}

Status show_examples(const ShownExamples& examples, const Tokenizer& tokenizer, const EmbedTexts& embed, size_t room,
                     std::vector<chat::Message>& messages) {
  if (messages.empty() || messages.back().role != "user" || !messages.back().content) return Ok{};
  const std::string question = *messages.back().content;
  if (question.empty() || question.size() > ShownExamples::kMaxQuestionBytes) return Ok{};
  TRY_ASSIGN(const std::vector<float> vector, question_vector(tokenizer, embed, question));
  if (auto text = examples.with_examples(question, vector, room)) messages.back().content = std::move(*text);
  return Ok{};
}

}  // namespace chimere::orchestrator
