// histogram.cpp  Buckets.
#include "server/http/histogram.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"

namespace chimere::server {

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

Histogram::Histogram(std::vector<double> bounds, std::vector<uint64_t> counts, double sum)
    : bounds_(std::move(bounds)), counts_(std::move(counts)), sum_(sum) {
  CHECK(counts_.size() == bounds_.size() + 1);
  for (const uint64_t n : counts_) count_ += n;
}

void Histogram::add(double value, uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<size_t>(bucket)] += times;
  sum_ += value * static_cast<double>(times);
  count_ += times;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  return head(name, help) + lines(name, {});
}

std::string Histogram::head(const std::string& name, const std::string& help) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " histogram\n";
}

std::string Histogram::lines(const std::string& name, const std::string& label) const {
  const std::string labels = label.empty() ? "" : "{" + label + "}";
  std::string out;
  uint64_t below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? number_text(bounds_[i]) : "+Inf";
    const std::string before = label.empty() ? "" : label + ",";
    out += name + "_bucket{" + before + "le=\"" + bound + "\"} " + std::to_string(below) + "\n";
  }
  out += name + "_sum" + labels + " " + number_text(sum_) + "\n";
  out += name + "_count" + labels + " " + std::to_string(count_) + "\n";
  return out;
}

}  // namespace chimere::server
