// histogram.h  Counts of values by size, as Prometheus reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chimere::server {

class Histogram {
 public:
  // Upper bounds of the buckets, ascending; a last one without a bound is added.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  // Of counts made elsewhere, one for each bucket and the last one.
  Histogram(std::vector<double> bounds, std::vector<uint64_t> counts, double sum);

  void add(double value, uint64_t times = 1);
  uint64_t count() const { return count_; }

  // "# HELP", "# TYPE" and one line for each bucket, the sum and the count.
  std::string text(const std::string& name, const std::string& help) const;
  static std::string head(const std::string& name, const std::string& help);
  // What follows the head, once for each of several histograms of one name; `label`: name="value", or nothing.
  std::string lines(const std::string& name, const std::string& label) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // not cumulative
  double sum_ = 0;
  uint64_t count_ = 0;
};

// The shortest text of a number that Prometheus and JSON both read.
std::string number_text(double value);

}  // namespace chimere::server
