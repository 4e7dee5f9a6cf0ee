// example_centroids.h  Routes told apart by the nearest centroid of their examples' vectors.
//
// Vectors are asked for once for each embedder, by learn() or by the first question that needs them, and kept. The mean
// of all centroids is taken off first: vectors of a language model all point one way, and what differs is the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "odo/routing/route_rules.h"

namespace chimere::odo {

using RouteVectors = std::vector<std::vector<float>>;
using EmbedTexts = std::function<Result<RouteVectors>(const std::vector<std::string>&)>;

class ExampleCentroids {
 public:
  explicit ExampleCentroids(const std::vector<NamedRules>& routes);

  // Cosine of the question with the centroid of each route; 0 for those without examples. One thread computes the
  // vectors of the examples, the others wait for it. Errors are not kept: the next question tries again.
  Result<std::vector<double>> cosines(const std::string& question, uint64_t embedder, const EmbedTexts& embed);

  // Whether the vectors of the examples are there. Never waits.
  bool knows(uint64_t embedder) const;
  // Asks for them where they are not.
  Status learn(uint64_t embedder, const EmbedTexts& embed);

 private:
  struct Centroids {
    std::vector<float> middle;
    RouteVectors of_route;  // of length 1, less `middle`; empty: no examples
  };
  Result<std::shared_ptr<const Centroids>> centroids(uint64_t embedder, const EmbedTexts& embed);

  std::vector<std::vector<std::string>> examples_;                    // [routes]
  std::shared_ptr<const Centroids> made_by(uint64_t embedder) const;  // null: not yet

  std::mutex making_;                                          // held while vectors are made
  mutable std::mutex mutex_;                                   // of made_
  std::map<uint64_t, std::shared_ptr<const Centroids>> made_;  // by embedder
};

}  // namespace chimere::odo
