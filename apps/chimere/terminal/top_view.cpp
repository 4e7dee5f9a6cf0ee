#include "terminal/top_view.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "terminal/word_wrap.h"
#include "text/json.h"

namespace chimere::apps {
namespace {

constexpr size_t kLabelColumns = 10;
constexpr size_t kMaxPurposes = 4;

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  const int n = std::snprintf(text, sizeof text, format, values...);
  return {text, static_cast<size_t>(std::clamp(n, 0, static_cast<int>(sizeof text) - 1))};
}

// What is not there, or something else, is 0 or "".
const Json& part(const Json& json, const char* name) {
  static const Json kNothing;
  return json.is_object() && json.contains(name) ? json[name] : kNothing;
}
double number(const Json& json, const char* name) {
  const Json& value = part(json, name);
  return value.is_number() ? value.get<double>() : 0;
}
std::string words(const Json& json, const char* name) {
  const Json& value = part(json, name);
  return value.is_string() ? value.get<std::string>() : "";
}

// 12,345
std::string count_text(double n) {
  std::string digits = formatted("%.0f", n);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return formatted("%.2f GB", bytes / 1e9);
  if (bytes >= 1e6) return formatted("%.1f MB", bytes / 1e6);
  return count_text(bytes) + " B";
}

std::string share_text(double some, double all) { return all > 0 ? formatted("%.0f %%", 100 * some / all) : "-"; }

std::string time_text(double seconds) {
  const auto s = static_cast<long long>(seconds);
  if (s >= 86400) return formatted("%lld d %02lld h", s / 86400, s / 3600 % 24);
  if (s >= 3600) return formatted("%lld h %02lld min", s / 3600, s / 60 % 60);
  if (s >= 60) return formatted("%lld min %02lld s", s / 60, s % 60);
  return formatted("%.1f s", seconds);
}

using Metrics = std::vector<std::pair<std::string, double>>;  // name with its labels, in order

Metrics read_metrics(std::string_view text) {
  Metrics metrics;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.rfind(' ');
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    metrics.emplace_back(line.substr(0, space), std::strtod(line.c_str() + space + 1, nullptr));
  }
  return metrics;
}

// The sum over all labels that have `label` in them.
double sum_of(const Metrics& metrics, std::string_view name, std::string_view label = "") {
  double sum = 0;
  for (const auto& [key, value] : metrics) {
    const bool is_it = key.starts_with(name) && (key.size() == name.size() || key[name.size()] == '{');
    if (is_it && key.find(label) != std::string::npos) sum += value;
  }
  return sum;
}

// The upper end of the part of a histogram in which the share lies; "" where it is empty.
std::string within(const Metrics& metrics, const std::string& name, double share) {
  const double all = sum_of(metrics, name + "_count");
  if (all <= 0) return "";
  const std::string bucket = name + "_bucket{le=\"";
  for (const auto& [key, value] : metrics) {
    if (!key.starts_with(bucket) || value < share * all) continue;
    const std::string bound = key.substr(bucket.size(), key.find('"', bucket.size()) - bucket.size());
    return bound == "+Inf" ? "" : bound + " s";
  }
  return "";
}

std::string labelled(std::string label, const std::string& text) {
  label.resize(std::max(label.size() + 1, kLabelColumns), ' ');
  return label + text;
}

std::string cut(const std::string& line, int columns) {
  if (columns <= 0) return line;
  size_t at = 0;
  for (int n = 0; at < line.size(); ++n) {
    if (n == columns) return line.substr(0, at);
    do ++at;
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80);
  }
  return line;
}

std::string request_line(const Json& request) {
  const std::string state = part(request, "thinking") == true ? "think" : words(request, "state");
  return formatted(
             "%-8s %10s %8s %8s %8s  ", state.substr(0, 8).c_str(), time_text(number(request, "age_seconds")).c_str(),
             count_text(number(request, "prompt_tokens")).c_str(), count_text(number(request, "cached_tokens")).c_str(),
             count_text(number(request, "completion_tokens")).c_str()) +
         words(request, "id") + " " + words(request, "client") + " " + words(request, "user");
}

class TopPage {
 public:
  TopPage(const Json& status, const Json& requests, const Metrics& metrics)
      : status_(status), requests_(requests), metrics_(metrics) {}

  std::vector<std::string> lines(int rows) {
    add_head();
    add_load();
    add_cache();
    add_memory();
    lines_.emplace_back();
    add_requests(rows);
    return std::move(lines_);
  }

 private:
  void add_head() {
    const Json& model = part(status_, "model");
    const std::string name = words(model, "name");
    lines_.push_back((name.empty() ? "no model is loaded"
                                   : name + " on " + words(model, "backend") + ", context of " +
                                         count_text(number(model, "context_length")) + " tokens") +
                     "; chimere " + words(status_, "version") + ", up " + time_text(number(status_, "uptime_seconds")) +
                     (part(status_, "is_sleeping") == true ? ", asleep" : ""));
  }

  void add_load() {
    const Json& load = part(status_, "load");
    const Json& tokens = part(status_, "tokens");
    lines_.push_back(labelled("Answers", count_text(number(load, "running")) + " of " +
                                             count_text(number(load, "max_running")) + " running, " +
                                             count_text(number(load, "queued")) + " of " +
                                             count_text(number(load, "max_queued")) + " waiting"));
    lines_.push_back(
        labelled("Speed", formatted("%.1f tok/s generated, %.1f tok/s of prompts",
                                    number(tokens, "generated_per_second"), number(tokens, "prompt_per_second"))));
    lines_.push_back(labelled("Tokens", count_text(number(tokens, "generated_total")) + " generated, " +
                                            count_text(number(tokens, "prompt_total")) + " of prompts computed"));
    const std::string name = "chimere_http_requests_total", key = "status=\"";
    lines_.push_back(labelled("Requests", count_text(sum_of(metrics_, name, key + "2")) + " answered, " +
                                              count_text(sum_of(metrics_, name, key + "4")) + " refused, " +
                                              count_text(sum_of(metrics_, name, key + "5")) + " failed, " +
                                              count_text(sum_of(metrics_, name, key + "client_left")) + " left"));
    const std::string first = "chimere_time_to_first_token_seconds";
    const std::string half = within(metrics_, first, 0.5), most = within(metrics_, first, 0.95);
    if (!half.empty()) {
      lines_.push_back(labelled("First", "token within " + half + " for half of the requests" +
                                             (most.empty() ? "" : ", " + most + " for 95 %")));
    }
  }

  void add_cache() {
    const Json& cache = part(status_, "cache");
    const double reused = number(cache, "tokens_reused"), computed = number(cache, "tokens_computed");
    lines_.push_back(labelled(
        "Cache", share_text(reused, reused + computed) + " of prompt tokens, " + count_text(number(cache, "hits")) +
                     " of " + count_text(number(cache, "lookups")) + " prompts; " +
                     bytes_text(number(cache, "ram_bytes")) + " of " + bytes_text(number(cache, "budget_bytes")) +
                     " in RAM, " + bytes_text(number(cache, "disk_bytes")) + " on disk"));
    const Json& drafts = part(status_, "speculation");
    if (number(drafts, "draft_tokens") > 0) {
      std::string text = share_text(number(drafts, "accepted_tokens"), number(drafts, "draft_tokens")) + " of " +
                         count_text(number(drafts, "draft_tokens")) + " were right";
      if (part(drafts, "mean_accepted_length").is_number()) {
        text += formatted(", %.2f a draft", number(drafts, "mean_accepted_length"));
      }
      if (part(drafts, "draft_gain").is_number()) {
        text += formatted("; %.1f %% of the time, about %.2f times as fast", 100 * number(drafts, "draft_time_share"),
                          number(drafts, "draft_gain"));
      }
      lines_.push_back(labelled("Guesses", text));
    }
    const Json& experts = part(status_, "experts_on_disk");
    if (!experts.is_object()) return;
    const double hits = number(experts, "hits"), misses = number(experts, "misses");
    lines_.push_back(labelled("Experts", share_text(hits, hits + misses) + " found in RAM (" +
                                             bytes_text(number(experts, "ram_bytes")) + " of " +
                                             bytes_text(number(experts, "bytes")) + "), " +
                                             bytes_text(number(experts, "bytes_read")) + " read from disk"));
  }

  void add_memory() {
    std::vector<std::pair<double, std::string>> parts;
    const Json& memory = part(status_, "memory");
    if (memory.is_array()) {
      for (const Json& one : memory) parts.emplace_back(number(one, "bytes"), words(one, "purpose"));
    }
    std::sort(parts.rbegin(), parts.rend());
    std::string text = bytes_text(sum_of(metrics_, "process_resident_memory_bytes")) + " of the process";
    for (size_t i = 0; i < std::min(parts.size(), kMaxPurposes) && parts[i].first > 0; ++i) {
      text += (i == 0 ? "; " : ", ") + parts[i].second + " " + bytes_text(parts[i].first);
    }
    lines_.push_back(labelled("Memory", text));
  }

  void add_requests(int rows) {
    const Json& data = part(requests_, "data");
    const size_t n = data.is_array() ? data.size() : 0;
    if (n == 0) {
      lines_.emplace_back("No request is under way.");
      return;
    }
    lines_.push_back(
        formatted("%-8s %10s %8s %8s %8s  %s", "STATE", "AGE", "PROMPT", "CACHED", "ANSWER", "REQUEST, KEY, USER"));
    const size_t room = rows > 0 ? static_cast<size_t>(std::max<int>(rows - static_cast<int>(lines_.size()), 1)) : n;
    const size_t shown = n <= room ? n : room - 1;
    for (size_t i = 0; i < shown; ++i) lines_.push_back(request_line(data[i]));
    if (shown < n) lines_.push_back("and " + count_text(static_cast<double>(n - shown)) + " more");
  }

  const Json& status_;
  const Json& requests_;
  const Metrics& metrics_;
  std::vector<std::string> lines_;
};

}  // namespace

Result<std::vector<std::string>> top_lines(const TopFacts& facts, int columns, int rows) {
  TRY_ASSIGN(const Json status, parse_json(facts.status));
  TRY_ASSIGN(const Json requests, parse_json(facts.requests));
  const Metrics metrics = read_metrics(facts.metrics);
  std::vector<std::string> lines = TopPage(status, requests, metrics).lines(rows);
  for (std::string& line : lines) {
    line = cut(harmless(line), columns);
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::replace(line.begin(), line.end(), '\t', ' ');
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return Result<std::vector<std::string>>{std::move(lines)};
}

}  // namespace chimere::apps
