#include "quantizer/report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <set>

#include "quantizer/encode.h"

namespace chimere::quantizer {
namespace {

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

// A loss with its interval, which is left out where every row was seen.
std::string with_interval(const std::string& loss, double half_width) {
  return half_width > 0 ? loss + " +/- " + printed("%.1e", half_width) : loss;
}

std::string type_name(DType type) { return std::string(name(type)); }

uint64_t weights_of(const Plan& plan) {
  uint64_t elems = 0;
  for (const PlanItem& item : plan.items) elems += item.tensor->elems();
  return elems;
}

Plan with_choices(const Plan& plan, const std::vector<size_t>& chosen) {
  Plan other = plan;
  for (size_t i = 0; i < chosen.size(); ++i) other.items[i].chosen = chosen[i];
  return other;
}

constexpr const char* kColours[] = {"#1f6feb", "#d9822b", "#8957e5", "#57606a"};

}  // namespace

std::vector<Curve> compare_methods(const Plan& plan) {
  const auto items = by_bytes(plan, 0);
  const auto elems = static_cast<double>(weights_of(plan));
  std::vector<Curve> curves = {{"exact", {}}, {"greedy", {}}, {"evolution, 128 x 200", {}}, {"one type", {}}};
  for (const double bits : {2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0}) {
    const double limit = std::floor(bits * elems / 8);
    const Result<Allocation> found[] = {allocate(items, limit), allocate_greedy(items, limit),
                                        allocate_by_evolution(items, limit, 1)};
    for (size_t m = 0; m < 3; ++m) {
      if (!found[m]) continue;  // the smallest plan is larger
      const Plan other = with_choices(plan, found[m]->chosen);
      curves[m].points.push_back({other.bits_per_weight(), other.loss(), ""});
    }
  }
  for (const DType type : encodable_types()) {
    Plan other = plan;
    choose_everywhere(other, type);
    if (other.loss() > 0) curves[3].points.push_back({other.bits_per_weight(), other.loss(), type_name(type)});
  }
  std::sort(curves[3].points.begin(), curves[3].points.end(),
            [](const auto& a, const auto& b) { return a.bits < b.bits; });
  return curves;
}

std::string curves_svg(const std::vector<Curve>& curves, const std::string& loss_name) {
  double low = INFINITY, high = 0, least_bits = INFINITY, most_bits = 0;
  for (const Curve& c : curves) {
    for (const Curve::Point& p : c.points) {
      if (!(p.loss > 0)) continue;
      low = std::min(low, p.loss), high = std::max(high, p.loss);
      least_bits = std::min(least_bits, p.bits), most_bits = std::max(most_bits, p.bits);
    }
  }
  if (!(high > 0) || !(most_bits > least_bits)) return "";
  const double bottom = std::floor(std::log10(low)), top = std::ceil(std::log10(high));
  const auto x = [&](double bits) { return 70 + 520 * (bits - least_bits) / (most_bits - least_bits); };
  const auto y = [&](double loss) { return 340 - 300 * (std::log10(loss) - bottom) / std::max(1.0, top - bottom); };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 390\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"640\" height=\"390\" fill=\"white\"/>\n";
  for (double power = bottom; power <= top; ++power) {
    const double at = y(std::pow(10, power));
    svg += printed(
        "<path d=\"M70 %.1fH590\" stroke=\"#ddd\"/><text x=\"64\" y=\"%.1f\" text-anchor=\"end\">1e%.0f</text>\n", at,
        at + 4, power);
  }
  for (double bits = std::ceil(least_bits); bits <= most_bits; ++bits) {
    svg += printed(
        "<path d=\"M%.1f 40V340\" stroke=\"#eee\"/><text x=\"%.1f\" y=\"356\" text-anchor=\"middle\">%.0f</text>\n",
        x(bits), x(bits), bits);
  }
  svg += "<text x=\"330\" y=\"378\" text-anchor=\"middle\">bits per weight</text>\n<text x=\"70\" y=\"24\">" +
         loss_name + "</text>\n";
  for (size_t c = 0; c < curves.size(); ++c) {
    const char* colour = kColours[c % std::size(kColours)];
    std::string path;
    for (const Curve::Point& p : curves[c].points) {
      if (!(p.loss > 0)) continue;
      path += printed("%s%.1f %.1f", path.empty() ? "M" : "L", x(p.bits), y(p.loss));
      svg += printed("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", x(p.bits), y(p.loss), colour);
      if (!p.label.empty()) {
        svg += printed("<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" font-size=\"9\">%s</text>\n", x(p.bits) + 4,
                       y(p.loss) - 4, colour, p.label.c_str());
      }
    }
    if (curves[c].points.empty()) continue;
    if (curves[c].points.front().label.empty()) {
      svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\"/>\n";
    }
    svg += printed("<text x=\"440\" y=\"%zu\" fill=\"%s\">%s</text>\n", 56 + 16 * c, colour, curves[c].name.c_str());
  }
  return svg + "</svg>\n";
}

std::string bits_svg(const Plan& plan) {
  std::map<std::string, std::map<int, const PlanItem*>> cells;
  std::set<int> layers;
  for (const PlanItem& item : plan.items) {
    if (item.choices.size() < 2 && item.why.rfind("asked for", 0) != 0) continue;
    cells[item.part.part][item.part.layer] = &item;
    layers.insert(item.part.layer);
  }
  if (cells.empty()) return "";
  constexpr int kLeft = 150, kCell = 26, kRow = 18, kTop = 34;
  const int width = kLeft + kCell * static_cast<int>(layers.size()) + 20;
  const int height = kTop + kRow * static_cast<int>(cells.size()) + 10;
  std::string svg = printed(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"10\">\n"
      "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<text x=\"4\" y=\"14\">bits per weight, by part and "
      "layer</text>\n",
      width, height, width, height);
  int column = 0;
  std::map<int, int> place;
  for (const int layer : layers) {
    place[layer] = column++;
    if (layer >= 0) {
      svg += printed("<text x=\"%d\" y=\"28\" text-anchor=\"middle\">%d</text>\n",
                     kLeft + kCell * place[layer] + kCell / 2, layer);
    }
  }
  int row = 0;
  for (const auto& [part, by_layer] : cells) {
    const int at = kTop + kRow * row++;
    svg += printed("<text x=\"4\" y=\"%d\">%s</text>\n", at + 13, part.substr(0, 24).c_str());
    for (const auto& [layer, item] : by_layer) {
      const double bits = info(item->choice().type).bits_per_weight();
      const int shade = static_cast<int>(235 - std::clamp((bits - 1.5) / 7, 0.0, 1.0) * 190);
      const int left = kLeft + kCell * place[layer];
      svg += printed(
          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,245)\"/>"
          "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%.1f</text>\n",
          left, at, kCell - 1, kRow - 1, shade, shade, left + kCell / 2, at + 13, shade < 130 ? "white" : "black",
          bits);
    }
  }
  return svg + "</svg>\n";
}

std::string plan_table(const Plan& plan, bool with_losses) {
  std::string text =
      printed("%-36s %-8s %-8s %14s%s\n", "tensor", "from", "to", "bytes", with_losses ? "  predicted loss" : "");
  for (const PlanItem& item : plan.items) {
    text += printed("%-36.80s %-8s %-8s %14llu", std::string(item.tensor->name).c_str(),
                    type_name(item.tensor->type).c_str(), type_name(item.choice().type).c_str(),
                    static_cast<unsigned long long>(item.choice().bytes));
    if (with_losses && item.choices.size() > 1) {
      text += "  " + with_interval(printed("%.3e", item.choice().loss), item.choice().half_width);
    }
    if (!item.why.empty()) text += "  " + item.why;
    text += "\n";
  }
  return text +
         printed(
             "%zu tensors, %.3f bits a weight, %.3f MB, %.3f MB read for a token%s\n", plan.items.size(),
             plan.bits_per_weight(), static_cast<double>(plan.tensor_bytes()) / 1e6, plan.read_bytes() / 1e6,
             with_losses
                 ? (", predicted loss " + with_interval(printed("%.4g", plan.loss()), plan.loss_half_width())).c_str()
                 : "");
}

std::string report_markdown(const Plan& plan, const std::vector<Curve>& curves, const ReportFacts& facts) {
  std::string text = "# Quantising " + facts.in + "\n\n";
  const bool probed = facts.losses && facts.losses->probed;
  text += printed("Asked for: `%s`. %s: %.3f MB, %.3f bits a weight, %.3f MB read for a token.\n\n",
                  facts.asked.c_str(), facts.out.c_str(), static_cast<double>(facts.file_bytes) / 1e6,
                  plan.bits_per_weight(), plan.read_bytes() / 1e6);
  if (facts.losses) {
    text += probed ? printed("Predicted mean KL divergence: %.5f, from errors of all tensors and probes on %s.\n",
                             plan.loss(), facts.losses->text.c_str())
                   : printed("Sum of relative errors: %.5f. No text was given, so it is no divergence.\n", plan.loss());
  }
  if (facts.allocation && facts.allocation->value > 0) {
    text += facts.allocation->proven
                ? std::string("No other choice of types has a smaller prediction within the limit.\n")
                : printed("The best possible prediction is at most %.4f %% smaller.\n",
                          100 * (1 - facts.allocation->bound / facts.allocation->value));
  }
  if (facts.measured) {
    const Divergence& d = *facts.measured;
    text += printed(
        "\nMeasured over %zu tokens: mean KL %.5f +/- %.5f, median %.5f, 99 %% %.4f, 99.9 %% %.4f, largest %.3f; "
        "same best token %.2f %%; perplexity ratio %.4f +/- %.4f.\n",
        d.n_tokens, d.mean, d.mean_error, d.median, d.p99, d.p999, d.largest, 100 * d.same_top, d.ratio, d.ratio_error);
  }
  if (!facts.curves_file.empty()) text += "\n![size against loss](" + facts.curves_file + ")\n";
  if (!facts.bits_file.empty()) text += "\n![bits by part and layer](" + facts.bits_file + ")\n";
  if (!curves.empty()) {
    text += std::string("\n## Methods\n\nPredicted ") + (probed ? "mean KL divergence" : "sum of relative errors") +
            " at each size.\n\n| method | bits a weight | loss |\n|---|---:|---:|\n";
    for (const Curve& c : curves) {
      for (const Curve::Point& p : c.points) {
        text += printed("| %s%s%s | %.3f | %.5g |\n", c.name.c_str(), p.label.empty() ? "" : " ", p.label.c_str(),
                        p.bits, p.loss);
      }
    }
  }
  text += "\n## Tensors\n\n| tensor | from | to | bytes | loss | |\n|---|---|---|---:|---:|---|\n";
  for (const PlanItem& item : plan.items) {
    text +=
        printed("| %.80s | %s | %s | %llu | %s | %.200s |\n", std::string(item.tensor->name).c_str(),
                type_name(item.tensor->type).c_str(), type_name(item.choice().type).c_str(),
                static_cast<unsigned long long>(item.choice().bytes),
                with_interval(printed("%.3g", item.choice().loss), item.choice().half_width).c_str(), item.why.c_str());
  }
  return text;
}

}  // namespace chimere::quantizer
