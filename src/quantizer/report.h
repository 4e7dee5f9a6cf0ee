// report.h  A plan in words and pictures: what was asked, what every tensor got, what other choices would cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quantizer/divergence.h"
#include "quantizer/goal.h"
#include "quantizer/losses.h"
#include "quantizer/plan.h"

namespace chimere::quantizer {

// One way of choosing types, over sizes.
struct Curve {
  std::string name;
  struct Point {
    double bits;  // a weight
    double loss;
    std::string label;
  };
  std::vector<Point> points;
};

// Exact, greedy and evolved allocations from 2 to 8 bits, and one type everywhere. Predicted losses.
std::vector<Curve> compare_methods(const Plan& plan);

// Size against loss, logarithmic, as SVG.
std::string curves_svg(const std::vector<Curve>& curves, const std::string& loss_name);
// Bits a weight of every part and layer, as SVG.
std::string bits_svg(const Plan& plan);

struct ReportFacts {
  std::string in, out, asked;
  uint64_t file_bytes = 0;
  const Losses* losses = nullptr;          // may be null
  const Allocation* allocation = nullptr;  // may be null
  std::optional<Divergence> measured = {};
  std::string curves_file = {}, bits_file = {};  // of the pictures, as links; empty: none
};

// "tensor  type  bytes  predicted loss" and totals, for a terminal.
std::string plan_table(const Plan& plan, bool with_losses);
std::string report_markdown(const Plan& plan, const std::vector<Curve>& curves, const ReportFacts& facts);

}  // namespace chimere::quantizer
