#include "odo/routing/example_words.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "odo/routing/softmax.h"

namespace chimere::odo {
namespace {

constexpr size_t kPieceBytes = 4;
constexpr int kMaxPasses = 30;
constexpr double kWorkLimit = 4e8;  // multiplications; passes become fewer where there are very many examples
constexpr double kStep = 0.5;       // of the gradient; it shrinks by a tenth of itself with every pass
constexpr double kDecay = 1e-4;

enum class FeatureKind : uint64_t { word, pair, piece, any };

uint64_t feature(FeatureKind kind, std::string_view text) { return hash64(text, static_cast<uint64_t>(kind)); }

// A shuffle that is the same everywhere, which std::shuffle does not promise.
void shuffle(std::vector<size_t>& order, uint64_t seed) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[hash_mix(seed * 0x10001 + i) % i]);
}

}  // namespace

ExampleWords::Features ExampleWords::features_of(const FoldedText& text) {
  Features features{feature(FeatureKind::any, "")};
  std::string joined;
  std::string_view before;
  for (const std::string_view word : text.words()) {
    features.push_back(feature(FeatureKind::word, word));
    if (!before.empty()) {
      joined.assign(before).append(" ").append(word);
      features.push_back(feature(FeatureKind::pair, joined));
    }
    before = word;
    if (word.size() < kPieceBytes) continue;
    joined.assign("<").append(word).append(">");
    for (size_t at = 0; at + kPieceBytes <= joined.size(); ++at) {
      features.push_back(feature(FeatureKind::piece, std::string_view(joined).substr(at, kPieceBytes)));
    }
  }
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

ExampleWords::ExampleWords(const std::vector<NamedRules>& routes) : n_routes_(routes.size()), known_(routes.size()) {
  std::vector<std::pair<Features, size_t>> examples;
  for (size_t route = 0; route < routes.size(); ++route) {
    known_[route] = !routes[route].second.examples.empty();
    n_known_ += known_[route];
    for (const std::string& text : routes[route].second.examples) {
      examples.emplace_back(features_of(FoldedText(text)), route);
    }
  }
  if (!can_tell()) return;
  for (const auto& [features, route] : examples) {
    for (const uint64_t f : features) places_.emplace(f, static_cast<uint32_t>(places_.size()));
  }
  weights_.assign(places_.size() * n_routes_, 0.0f);
  learn(examples);
}

void ExampleWords::learn(const std::vector<std::pair<Features, size_t>>& examples) {
  double n_features = 0;
  std::vector<size_t> order(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    order[i] = i;
    n_features += static_cast<double>(examples[i].first.size());
  }
  const double in_pass = n_features * static_cast<double>(n_routes_) * 2;
  const int n_passes = static_cast<int>(std::clamp(kWorkLimit / in_pass, 2.0, double{kMaxPasses}));
  for (int pass = 0; pass < n_passes; ++pass) {
    shuffle(order, static_cast<uint64_t>(pass) + 1);
    const double step = kStep / (1 + 0.1 * pass);
    for (const size_t i : order) {
      const auto& [features, route] = examples[i];
      const double scale = 1 / std::sqrt(static_cast<double>(features.size()));
      std::vector<double> logits(n_routes_, 0.0);
      for (const uint64_t f : features) {
        const float* row = &weights_[places_.at(f) * n_routes_];
        for (size_t k = 0; k < n_routes_; ++k) logits[k] += scale * row[k];
      }
      const std::vector<double> chances = softmax(logits, known_);
      for (const uint64_t f : features) {
        float* row = &weights_[places_.at(f) * n_routes_];
        for (size_t k = 0; k < n_routes_; ++k) {
          if (!known_[k]) continue;
          const double gradient = ((k == route ? 1.0 : 0.0) - chances[k]) * scale;
          row[k] += static_cast<float>(step * (gradient - kDecay * row[k]));
        }
      }
    }
  }
}

std::vector<double> ExampleWords::logits(const FoldedText& text) const {
  std::vector<double> logits(n_routes_, 0.0);
  const Features features = features_of(text);
  const double scale = 1 / std::sqrt(static_cast<double>(features.size()));
  for (const uint64_t f : features) {
    const auto place = places_.find(f);
    if (place == places_.end()) continue;
    for (size_t k = 0; k < n_routes_; ++k) logits[k] += scale * weights_[place->second * n_routes_ + k];
  }
  return logits;
}

}  // namespace chimere::odo
