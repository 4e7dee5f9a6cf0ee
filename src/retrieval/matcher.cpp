#include "retrieval/matcher.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/dequantize.h"

namespace chimere::retrieval {
namespace {

// training/embed/matching.py has the same.
constexpr size_t kWidth = 32;
constexpr size_t kBlock = 8, kBlocks = 32;  // words of a text that vectors see
constexpr size_t kScaleBlocks[] = {2, 4, 8, 32};
constexpr float kStepFrom[] = {0.2f, 0.35f, 0.5f, 0.65f, 0.8f};
constexpr float kUnlike = 0.95f;  // the cosine of words that are not the same is at most this
constexpr double kRarityUnit = 5, kLeastWeight = 0.02;

constexpr int64_t kMatcherVersion = 1;
constexpr size_t kMaxStems = 1 << 16, kMaxStemBytes = 80;
constexpr uint64_t kMaxHidden = 256;
constexpr double kMostPower = 4, kMostCosineWeight = 1000;

// As floats; `rows` 0: as many as there are, one to kMaxHidden.
Result<std::vector<float>> read_numbers(const gguf::File& file, const char* name, uint64_t width, uint64_t rows) {
  const TensorView* tensor = file.find(name);
  if (!tensor) return Error{Code::not_found, file.path() + ": tensor '" + name + "': expected, found none"};
  const uint64_t found = tensor->rows();
  const bool fits = tensor->ne[0] == width && (rows > 0 ? found == rows : found >= 1 && found <= kMaxHidden);
  if (!fits) {
    return Error{Code::invalid_argument, file.path() + ": tensor '" + name + "': expected " +
                                             (rows > 0 ? std::to_string(rows) : "1 to " + std::to_string(kMaxHidden)) +
                                             " rows of " + std::to_string(width) + ", found " + std::to_string(found) +
                                             " of " + std::to_string(tensor->ne[0])};
  }
  std::vector<float> numbers(width * found);
  for (uint64_t row = 0; row < found; ++row) {
    dequantize_row(tensor->type, tensor->row(row), numbers.data() + row * width, static_cast<int64_t>(width));
  }
  if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); })) {
    return Error{Code::invalid_argument, file.path() + ": tensor '" + name + "': expected finite numbers"};
  }
  return Result<std::vector<float>>{std::move(numbers)};
}

Result<double> read_within(const gguf::File& file, const std::string& key, double most) {
  TRY_ASSIGN(const double value, file.metadata().get_float(key));
  if (!(value >= 0 && value <= most)) {
    return Error{Code::invalid_argument, file.path() + ": " + key + ": expected 0 to " + std::to_string(most) +
                                             ", found " + std::to_string(value)};
  }
  return value;
}

float dot(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;
  std::array<float, kLanes> sums{};
  for (size_t i = 0; i < kWidth; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) sums[j] += a[i + j] * b[i + j];
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Values, and what each is above the mean and above the best of all texts.
template <size_t N>
void add_against_others(const std::vector<std::array<float, N>>& rows, size_t n_all, size_t at, bool has_mean,
                        std::vector<float>& inputs) {
  for (size_t j = 0; j < N; ++j) {
    double sum = 0;
    float most = rows[0][j];
    for (const auto& row : rows) {
      sum += row[j];
      most = std::max(most, row[j]);
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      float* out = inputs.data() + i * n_all + at + j;
      out[0] = rows[i][j];
      if (has_mean) out[N] = rows[i][j] - mean;
      out[has_mean ? 2 * N : N] = rows[i][j] - most;
    }
  }
}

}  // namespace

Result<Matcher> Matcher::open(const std::string& path) {
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  return of(file);
}

Result<Matcher> Matcher::of(const gguf::File& file) {
  const gguf::Metadata& metadata = file.metadata();
  const std::string kind = "chimere-matcher";
  TRY_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  if (architecture != kind) {
    return Error{Code::invalid_argument,
                 file.path() + ": expected a matcher ('" + kind + "'), found '" + std::string(architecture) + "'"};
  }
  TRY(metadata.get_int(kind + ".version", kMatcherVersion, kMatcherVersion));
  Matcher made;
  TRY_ASSIGN(made.power_, read_within(file, kind + ".power", kMostPower));
  TRY_ASSIGN(made.cosine_weight_, read_within(file, kind + ".cosine_weight", kMostCosineWeight));
  TRY_ASSIGN(const auto stems, metadata.get_strings(kind + ".stems"));
  if (stems.empty() || stems.size() > kMaxStems) {
    return Error{Code::invalid_argument, file.path() + ": expected 1 to " + std::to_string(kMaxStems) +
                                             " stems, found " + std::to_string(stems.size())};
  }
  for (const std::string& stem : stems) {
    const auto row = static_cast<int32_t>(made.rows_.size());
    if (stem.empty() || stem.size() > kMaxStemBytes || !made.rows_.emplace(stem, row).second) {
      return Error{Code::invalid_argument, file.path() + ": stem " + std::to_string(row) + ": expected one of 1 to " +
                                               std::to_string(kMaxStemBytes) + " bytes that is not there twice"};
    }
  }
  TRY_ASSIGN(made.vectors_, read_numbers(file, "vectors", kWidth, stems.size()));
  TRY_ASSIGN(made.steps_, read_numbers(file, "steps", kSteps, kScales));
  TRY_ASSIGN(made.answers_, read_numbers(file, "answers", kWidth, kQuestionKinds));
  TRY_ASSIGN(made.direct_, read_numbers(file, "direct", kInputs, 1));
  TRY_ASSIGN(made.hidden_, read_numbers(file, "hidden", kInputs, 0));
  const size_t n_hidden = made.hidden_.size() / kInputs;
  TRY_ASSIGN(made.by_kind_, read_numbers(file, "by_kind", n_hidden, kQuestionKinds));
  TRY_ASSIGN(made.output_, read_numbers(file, "output", n_hidden, 1));
  return Result<Matcher>{std::move(made)};
}

int32_t Matcher::vector_of(std::string_view stem) const {
  const auto row = rows_.find(std::string(stem));
  return row == rows_.end() ? -1 : row->second;
}

std::span<const float> Matcher::vector(int32_t row) const {
  return std::span(vectors_).subspan(static_cast<size_t>(row) * kWidth, kWidth);
}

std::array<float, Matcher::kVectorFeatures> Matcher::vector_features(const MatchQuestion& question,
                                                                     std::span<const MatchedWord> text) const {
  text = text.first(std::min(text.size(), kBlock * kBlocks));
  const size_t n_terms = question.terms.size();
  // Of each term, and then of the answer, the nearest word of each block.
  std::vector<std::array<float, kBlocks>> blocks(n_terms + 1);
  const auto answer = std::span(answers_).subspan(question.kind * kWidth, kWidth);
  std::vector<std::span<const float>> asked(n_terms);
  for (const auto& [stem, number] : question.numbers) {
    const auto term = std::find(question.terms.begin(), question.terms.end(), number);
    const int32_t row = vector_of(stem);
    if (term != question.terms.end() && row >= 0) {
      asked[static_cast<size_t>(term - question.terms.begin())] = vector(row);
    }
  }
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t block = at / kBlock;
    const auto word = text[at].vector >= 0 ? vector(text[at].vector) : std::span<const float>();
    for (size_t t = 0; t < n_terms; ++t) {
      float& most = blocks[t][block];
      if (text[at].asked == question.terms[t]) {
        most = 1;
      } else if (!word.empty() && !asked[t].empty()) {
        most = std::max(most, std::min(dot(asked[t], word) * kUnlike, 1.0f));
      }
    }
    if (!word.empty()) blocks[n_terms][block] = std::max(blocks[n_terms][block], dot(answer, word));
  }
  std::vector<double> weights;
  double all = 0;
  for (const double rarity : question.rarity) {
    weights.push_back(std::pow(std::max(rarity / kRarityUnit, kLeastWeight), power_));
    all += weights.back();
  }
  std::array<float, kVectorFeatures> row{};
  for (size_t s = 0; s < kScales; ++s) {
    const size_t scale = kScaleBlocks[s], n_windows = kBlocks - scale + 1;
    double best = 0, sum = 0, best_with_answer = 0;
    for (size_t w = 0; w < n_windows; ++w) {
      const auto most_in = [&](const std::array<float, kBlocks>& some) {
        return *std::max_element(some.begin() + static_cast<std::ptrdiff_t>(w),
                                 some.begin() + static_cast<std::ptrdiff_t>(w + scale));
      };
      double value = 0;
      for (size_t t = 0; t < n_terms; ++t) {
        const float most = most_in(blocks[t]);
        float over = 0;
        for (size_t i = 0; i < kSteps; ++i) over += std::max(most - kStepFrom[i], 0.0f) * steps_[s * kSteps + i];
        value += weights[t] / all * over;
      }
      const double with_answer = value + most_in(blocks[n_terms]);
      best = w == 0 ? value : std::max(best, value);
      best_with_answer = w == 0 ? with_answer : std::max(best_with_answer, with_answer);
      sum += value;
    }
    row[3 * s] = static_cast<float>(best);
    row[3 * s + 1] = static_cast<float>(sum / static_cast<double>(n_windows));
    row[3 * s + 2] = static_cast<float>(best_with_answer);
  }
  return row;
}

std::vector<float> Matcher::scores(const MatchQuestion& question, std::span<const Text> texts) const {
  std::vector<std::array<float, kWordFeatures>> by_words;
  std::vector<std::array<float, kVectorFeatures>> by_vectors;
  for (const Text& text : texts) {
    by_words.push_back(word_features(question, text.words, text.points));
    by_vectors.push_back(vector_features(question, text.words));
  }
  std::vector<float> scores;
  if (texts.empty()) return scores;
  std::vector<float> inputs(texts.size() * kInputs);
  add_against_others(by_words, kInputs, 0, true, inputs);
  add_against_others(by_vectors, kInputs, 3 * kWordFeatures, false, inputs);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto input = std::span(inputs).subspan(i * kInputs, kInputs);
    float score = 0;
    for (size_t j = 0; j < kInputs; ++j) score += input[j] * direct_[j];
    for (size_t h = 0; h < output_.size(); ++h) {
      float sum = by_kind_[question.kind * output_.size() + h];
      for (size_t j = 0; j < kInputs; ++j) sum += input[j] * hidden_[h * kInputs + j];
      score += std::max(sum, 0.0f) * output_[h];
    }
    scores.push_back(score);
  }
  return scores;
}

}  // namespace chimere::retrieval
