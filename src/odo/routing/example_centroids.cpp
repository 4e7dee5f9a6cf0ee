#include "odo/routing/example_centroids.h"

#include <cmath>

namespace chimere::odo {
namespace {

constexpr size_t kMaxEmbedders = 4;  // more than a server has; the oldest are made anew

void make_unit(std::vector<float>& vector) {
  double sum = 0;
  for (const float x : vector) sum += double{x} * x;
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (float& x : vector) x = static_cast<float>(x * scale);
}

void subtract(std::vector<float>& vector, const std::vector<float>& other) {
  for (size_t i = 0; i < vector.size(); ++i) vector[i] -= other[i];
}

std::vector<float> mean_of(const RouteVectors& vectors) {
  std::vector<float> mean(vectors.front().size(), 0.0f);
  for (const auto& v : vectors) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += v[i] / static_cast<float>(vectors.size());
  }
  return mean;
}

Status check_vectors(const RouteVectors& vectors, size_t n, size_t dimensions) {
  bool fits = vectors.size() == n;
  for (const auto& v : vectors) fits = fits && !v.empty() && (dimensions == 0 || v.size() == dimensions);
  if (!fits) return Error{Code::internal, "the embedder gave other vectors than it was asked for"};
  return Ok{};
}

}  // namespace

ExampleCentroids::ExampleCentroids(const std::vector<NamedRules>& routes) {
  for (const auto& [name, rules] : routes) examples_.push_back(rules.examples);
}

std::shared_ptr<const ExampleCentroids::Centroids> ExampleCentroids::made_by(uint64_t embedder) const {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(embedder);
  return found == made_.end() ? nullptr : found->second;
}

bool ExampleCentroids::knows(uint64_t embedder) const { return made_by(embedder) != nullptr; }

Status ExampleCentroids::learn(uint64_t embedder, const EmbedTexts& embed) {
  TRY(centroids(embedder, embed));
  return Ok{};
}

Result<std::shared_ptr<const ExampleCentroids::Centroids>> ExampleCentroids::centroids(uint64_t embedder,
                                                                                       const EmbedTexts& embed) {
  const std::lock_guard making(making_);
  if (auto found = made_by(embedder)) return found;
  auto made = std::make_shared<Centroids>();
  RouteVectors means;
  for (const auto& examples : examples_) {
    made->of_route.emplace_back();
    if (examples.empty()) continue;
    TRY_ASSIGN(const RouteVectors vectors, embed(examples));
    TRY(check_vectors(vectors, examples.size(), means.empty() ? 0 : means.front().size()));
    made->of_route.back() = mean_of(vectors);
    means.push_back(made->of_route.back());
  }
  if (means.empty()) return Error{Code::invalid_argument, "no route has examples"};
  made->middle = mean_of(means);
  for (auto& centroid : made->of_route) {
    if (centroid.empty()) continue;
    subtract(centroid, made->middle);
    make_unit(centroid);
  }
  const std::lock_guard lock(mutex_);
  if (made_.size() == kMaxEmbedders) made_.erase(made_.begin());
  made_.emplace(embedder, made);
  return std::shared_ptr<const Centroids>(made);
}

Result<std::vector<double>> ExampleCentroids::cosines(const std::string& question, uint64_t embedder,
                                                      const EmbedTexts& embed) {
  TRY_ASSIGN(const std::shared_ptr<const Centroids> made, centroids(embedder, embed));
  TRY_ASSIGN(RouteVectors asked, embed({question}));
  TRY(check_vectors(asked, 1, made->middle.size()));
  subtract(asked[0], made->middle);
  make_unit(asked[0]);
  std::vector<double> cosines(examples_.size(), 0.0);
  for (size_t route = 0; route < cosines.size(); ++route) {
    const auto& centroid = made->of_route[route];
    for (size_t i = 0; i < centroid.size(); ++i) cosines[route] += double{centroid[i]} * asked[0][i];
  }
  return cosines;
}

}  // namespace chimere::odo
