// week_summary.cpp  Results of several simulated weeks as a table and a plot: medians over the seeds, with bounds that hold
// for any distribution.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "improve/simulated_week.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

struct Spread {
  double median = 0, low = 0, high = 0;
  size_t n = 0;
};

// The interval between the k-th and the k-th last value holds the median with at least 95 %, for the largest such k: of n
// values as many lie below the median as heads come of n coins. Of fewer than six there is no such interval: all of them.
Spread spread_of(std::vector<double> values) {
  Spread spread;
  spread.n = values.size();
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  spread.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  double chance = std::pow(0.5, static_cast<double>(n)), below = 0;  // of i heads
  size_t k = 0;
  for (size_t i = 0; i < n / 2; ++i) {
    below += chance;
    if (2 * below > 0.05) break;
    k = i;
    chance *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  spread.low = values[k];
  spread.high = values[n - 1 - k];
  return spread;
}

std::string spread_text(const Spread& spread, const char* form = "%.0f") {
  if (spread.n == 0) return "-";
  std::string text;
  char part[48];
  std::snprintf(part, sizeof part, form, spread.median);
  text += part;
  std::snprintf(part, sizeof part, form, spread.low);
  text += std::string(" (") + part;
  std::snprintf(part, sizeof part, form, spread.high);
  return text + " to " + part + ")";
}

constexpr std::array kColumns = {"style", "tool", "open", "mean", "fact"};

// Figures of one arm, one from each week that has it.
template <class Pick>
std::string row(const std::string& name, const std::vector<Json>& weeks, const Pick& pick) {
  std::string text = "| " + name + " |";
  for (const char* column : kColumns) {
    std::vector<double> values;
    for (const Json& week : weeks) {
      if (const Json* exam = pick(week)) values.push_back((*exam)[column].template get<double>());
    }
    text += " " + spread_text(spread_of(std::move(values))) + " |";
  }
  return text + "\n";
}

const Json* member(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

struct Promotions {
  int tried = 0, proven = 0, refused = 0;
  std::vector<double> gains, lows;
};

Promotions promotions_of(const std::vector<Json>& weeks, const std::string& kind) {
  Promotions all;
  for (const Json& week : weeks) {
    for (const Json& night : week["nights"]) {
      for (const Json& run : night["runs"]) {
        if (run["kind"] != kind || run["state"] == "skipped") continue;
        ++all.tried;
        all.proven += run["state"] == "proven";
        all.refused += run["state"] == "refused";
        if (run["state"] != "proven") continue;
        all.gains.push_back(run["gain"]["mean"].get<double>());
        all.lows.push_back(run["gain"]["low"].get<double>());
      }
    }
  }
  return all;
}

std::string checks_text(const std::vector<Json>& weeks) {
  int planted = 0, refused = 0, rolled_back = 0, same_again = 0, forgotten = 0, equal = 0;
  std::vector<double> perplexity, seconds;
  for (const Json& week : weeks) {
    for (const Json& night : week["nights"]) {
      for (const Json& run : night.value("planted", Json::array())) {
        ++planted;
        refused += run["state"] == "refused";
      }
      if (const Json* one = member(night, "rollback"); one && one->value("done", false)) {
        ++rolled_back;
        same_again += one->value("same_again", false);
      }
      if (const Json* one = member(night, "forget"); one && one->value("done", false)) {
        ++forgotten;
        equal += one->value("equal", false);
      }
    }
    perplexity.push_back(
        100 * (week["nights"].back()["perplexity"].get<double>() / week["perplexity_before"].get<double>() - 1));
    seconds.push_back(week["seconds"].get<double>());
  }
  return "- Perplexity of general text, after the last night: " + spread_text(spread_of(perplexity), "%+.2f") +
         " %.\n- Planted bad candidates: " + std::to_string(planted) + ", refused: " + std::to_string(refused) +
         ".\n- Rolled back: " + std::to_string(rolled_back) + ", and the same again: " + std::to_string(same_again) +
         ".\n- Forgotten conversations: " + std::to_string(forgotten) +
         ", and the table equal to one that never saw it: " + std::to_string(equal) +
         ".\n- Seconds of a week: " + spread_text(spread_of(seconds)) + ".\n";
}

// The plot: nights from left to right, per cent upwards.
constexpr double kLeft = 50, kTop = 20, kWidth = 560, kHeight = 300;
double x_of(size_t night, size_t n) { return kLeft + kWidth * static_cast<double>(night) / static_cast<double>(n); }
double y_of(double percent) { return kTop + kHeight * (1 - percent / 100); }

std::string point(double x, double y) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f,%.1f ", x, y);
  return text;
}

struct Line {
  const char *name, *column, *colour;
  bool is_baseline;
};
constexpr std::array kLines = {Line{"style", "style", "#1b6ca8", false}, Line{"tool use", "tool", "#c0561a", false},
                               Line{"open questions", "open", "#2e7d32", false},
                               Line{"facts", "fact", "#777777", false},
                               Line{"style, tools and open questions, memory alone", "mean", "#000000", true}};

std::string plot_of(const std::vector<Json>& weeks, size_t n_nights) {
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 440\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"640\" height=\"440\" fill=\"#ffffff\"/>\n";
  for (int percent = 0; percent <= 100; percent += 25) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "<path d=\"M%.0f %.1fh%.0f\" stroke=\"#dddddd\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%d "
                  "%%</text>\n",
                  kLeft, y_of(percent), kWidth, kLeft - 6, y_of(percent) + 4, percent);
    svg += text;
  }
  for (size_t night = 0; night <= n_nights; ++night) {
    char text[120];
    std::snprintf(text, sizeof text, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%zu</text>\n",
                  x_of(night, n_nights), kTop + kHeight + 18, night);
    svg += text;
  }
  svg += "<text x=\"330\" y=\"354\" text-anchor=\"middle\">nights</text>\n";
  double legend = 376;
  for (const Line& line : kLines) {
    std::string middle, upper, lower;
    for (size_t night = 0; night <= n_nights; ++night) {
      std::vector<double> values;
      for (const Json& week : weeks) {
        const Json& exam =
            night == 0 ? week["before"] : week["nights"][night - 1][line.is_baseline ? "baseline" : "exam"];
        values.push_back(exam[line.column].get<double>());
      }
      const Spread spread = spread_of(std::move(values));
      const double x = x_of(night, n_nights);
      middle += point(x, y_of(spread.median));
      upper += point(x, y_of(spread.high));
      lower = point(x, y_of(spread.low)) + lower;
    }
    const std::string colour = line.colour;
    svg += "<polygon points=\"" + upper + lower + "\" fill=\"" + colour + "\" opacity=\"0.12\"/>\n<polyline points=\"" +
           middle + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"" +
           (line.is_baseline ? " stroke-dasharray=\"5 4\"" : "") + "/>\n";
    char text[200];
    std::snprintf(text, sizeof text,
                  "<path d=\"M60 %.0fh24\" stroke=\"%s\" stroke-width=\"2\"%s/><text x=\"92\" y=\"%.0f\">", legend - 4,
                  line.colour, line.is_baseline ? " stroke-dasharray=\"5 4\"" : "", legend);
    svg += text + std::string(line.name) + "</text>\n";
    legend += 14;
  }
  return svg + "</svg>\n";
}

Status check_week(const Json& week) {
  const bool fits = week.is_object() && week.contains("before") && week.contains("arms") && week.contains("nights") &&
                    week["nights"].is_array() && !week["nights"].empty();
  if (!fits)
    return Error{Code::invalid_argument, "expected the result of a whole week, as `improve simulate` writes it"};
  return Ok{};
}

}  // namespace

Result<WeekSummary> summarise_weeks(const std::vector<std::string>& results) {
  std::vector<Json> weeks;
  for (const std::string& text : results) {
    TRY_ASSIGN(Json week, parse_json(text));
    TRY(check_week(week));
    weeks.push_back(std::move(week));
  }
  if (weeks.empty()) return Error{Code::invalid_argument, "expected results, found none"};
  WeekSummary summary;
  std::string& text = summary.markdown;
  text = "| " + std::to_string(weeks.size()) +
         " seeds, per cent right | style | tool use | open questions | mean of the three | facts "
         "|\n|---|---|---|---|---|---|\n";
  for (const auto& [kind, name] :
       {std::pair("plain", "the model alone"), std::pair("notes", "notes alone"), std::pair("engram", "table alone"),
        std::pair("prompts", "prompt alone"), std::pair("lora", "adapter alone"), std::pair("closing", "closing alone"),
        std::pair("words", "words for tools alone"), std::pair("examples", "examples alone")}) {
    text += row(name, weeks, [kind = kind](const Json& week) { return member(week["arms"], kind); });
  }
  text += row("memory: notes and table (baseline)", weeks,
              [](const Json& week) { return member(week["nights"].back(), "baseline"); });
  text +=
      row("in use after the last night", weeks, [](const Json& week) { return member(week["nights"].back(), "exam"); });
  text += "| **gain over the baseline, points** |";
  for (const char* column : kColumns) {
    std::vector<double> gains;
    for (const Json& week : weeks) {
      const Json& last = week["nights"].back();
      gains.push_back(last["exam"][column].get<double>() - last["baseline"][column].get<double>());
    }
    text += " " + spread_text(spread_of(std::move(gains)), "%+.0f") + " |";
  }
  text +=
      "\n\n| kind | tries | proven and used | refused | gain of those used, nats a token | its lower bound "
      "|\n|---|---|---|---|---|---|\n";
  for (const char* kind : {"closing", "words", "examples", "lora", "engram", "prompts"}) {
    const Promotions all = promotions_of(weeks, kind);
    text += "| `" + std::string(kind) + "` | " + std::to_string(all.tried) + " | " + std::to_string(all.proven) +
            " | " + std::to_string(all.refused) + " | " + spread_text(spread_of(all.gains), "%+.3f") + " | " +
            spread_text(spread_of(all.lows), "%+.3f") + " |\n";
  }
  text += "\n" + checks_text(weeks);
  size_t nights = weeks[0]["nights"].size();
  for (const Json& week : weeks) nights = std::min(nights, week["nights"].size());
  summary.svg = plot_of(weeks, nights);
  return Result<WeekSummary>{std::move(summary)};
}

}  // namespace chimere::improve
