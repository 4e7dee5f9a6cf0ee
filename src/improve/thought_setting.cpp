#include "improve/thought_setting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "improve/example_set.h"
#include "improve/proof.h"
#include "sampling/certainty.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr std::array<int32_t, 6> kLeasts = {8, 16, 32, 48, 64, 96};
constexpr std::array<double, 4> kThresholds = {0.99, 0.95, 0.9, 0.8};
constexpr double kOneSided = 1.645;     // standard errors of 95 %
constexpr double kMayBeLess = 0.0099;   // nats a token: 1 % of perplexity, as of the proof's guards
constexpr size_t kFewestThoughts = 8;   // conversations that tell of a setting
constexpr int64_t kThoughtBeyond = 16;  // tokens that are not shown, and neither marks nor a call's form
constexpr size_t kMaxReadCuts = 200;

size_t window_at(int32_t window) {
  const auto found = std::find(kThoughtWindows.begin(), kThoughtWindows.end(), window);
  return static_cast<size_t>(found - kThoughtWindows.begin());
}

// What a setting does to all of these.
struct Cost {
  double tokens = 0;
  double low = 0;  // bound of the mean change of the answers' log-probability
};

Cost cost_of(const ThoughtSetting& setting, const std::vector<ThoughtEntry>& entries) {
  Cost cost;
  std::vector<Difference> changes;
  for (const ThoughtEntry& entry : entries) {
    const ThoughtCut* cut = cut_by(setting, entry.cuts);
    cost.tokens += cut ? cut->at : entry.tokens;
    changes.push_back({entry.conversation, cut ? cut->score - entry.score : 0});
  }
  const std::vector<double> values = grouped(changes);
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  cost.low = mean - kOneSided * std::sqrt(squares / (n - 1) / n);
  return cost;
}

size_t n_conversations_of(const std::vector<ThoughtEntry>& entries) {
  std::vector<std::string> names;
  for (const ThoughtEntry& entry : entries) names.push_back(entry.conversation);
  std::sort(names.begin(), names.end());
  return static_cast<size_t>(std::unique(names.begin(), names.end()) - names.begin());
}

}  // namespace

const std::vector<ThoughtSetting>& thought_settings() {
  static const std::vector<ThoughtSetting> kSettings = [] {
    std::vector<ThoughtSetting> all;
    for (const double threshold : kThresholds) {
      for (auto least = kLeasts.rbegin(); least != kLeasts.rend(); ++least) {
        for (auto window = kThoughtWindows.rbegin(); window != kThoughtWindows.rend(); ++window) {
          all.push_back({-1, *window, *least, threshold});
        }
      }
    }
    all.push_back({.most = 0});
    return all;
  }();
  return kSettings;
}

// As engine::AnswerState watches a thought.
std::vector<ThoughtCut> sentence_ends(const WrittenThought& thought) {
  std::vector<ThoughtCut> ends(1);
  ends.front().certainty.fill(-1);
  if (!(thought.max_entropy > 0)) return ends;
  std::vector<CertaintyWindow> windows;
  for (const int32_t size : kThoughtWindows) windows.emplace_back(size, thought.max_entropy);
  for (size_t i = 0; i < thought.ids.size(); ++i) {
    for (CertaintyWindow& window : windows) window.push(thought.max_prob[i], thought.entropy[i]);
    if (!thought.is_break[i]) continue;
    ThoughtCut cut;
    cut.at = static_cast<int32_t>(i + 1);
    for (size_t w = 0; w < windows.size(); ++w) {
      cut.certainty[w] = windows[w].is_full() ? double{windows[w].certainty()} : -1;
    }
    ends.push_back(cut);
  }
  return ends;
}

const ThoughtCut* cut_by(const ThoughtSetting& setting, const std::vector<ThoughtCut>& cuts) {
  for (const ThoughtCut& cut : cuts) {
    if (setting.most == 0 && cut.at == 0) return &cut;
    const bool is_long = cut.at > 0 && cut.at >= setting.min_tokens;
    if (setting.most < 0 && is_long && cut.certainty[window_at(setting.window)] >= setting.close_above) return &cut;
  }
  return nullptr;
}

std::vector<ThoughtCut> possible_cuts(const std::vector<ThoughtCut>& ends) {
  std::map<int32_t, ThoughtCut> chosen;
  for (const ThoughtSetting& setting : thought_settings()) {
    if (const ThoughtCut* cut = cut_by(setting, ends)) chosen.emplace(cut->at, *cut);
  }
  std::vector<ThoughtCut> cuts;
  for (const auto& [at, cut] : chosen) cuts.push_back(cut);
  return cuts;
}

FittedThoughts fitted_thoughts(std::vector<ThoughtEntry> entries) {
  std::sort(entries.begin(), entries.end(), [](const ThoughtEntry& a, const ThoughtEntry& b) {
    return std::tie(a.conversation, a.key) < std::tie(b.conversation, b.key);
  });
  FittedThoughts fitted{{}, std::move(entries)};
  if (n_conversations_of(fitted.entries) < kFewestThoughts) return fitted;
  double fewest = cost_of({}, fitted.entries).tokens;
  for (const ThoughtSetting& setting : thought_settings()) {
    const Cost cost = cost_of(setting, fitted.entries);
    if (cost.tokens >= fewest || cost.low <= -kMayBeLess) continue;
    fewest = cost.tokens;
    fitted.setting = setting;
  }
  return fitted;
}

std::string thought_bytes(const FittedThoughts& fitted, uint64_t vocabulary) {
  const ThoughtSetting& setting = fitted.setting;
  Json json{{"most", setting.most},
            {"window", setting.window},
            {"min_tokens", setting.min_tokens},
            {"close_above", setting.close_above},
            {"vocabulary", vocabulary},
            {"entries", Json::array()}};
  for (const ThoughtEntry& entry : fitted.entries) {
    Json one{{"conversation", entry.conversation},
             {"key", entry.key},
             {"tokens", entry.tokens},
             {"score", entry.score},
             {"cuts", Json::array()}};
    for (const ThoughtCut& cut : entry.cuts) {
      one["cuts"].push_back({{"at", cut.at}, {"score", cut.score}, {"certainty", cut.certainty}});
    }
    json["entries"].push_back(std::move(one));
  }
  return to_text(json) + "\n";
}

namespace {

bool read_whole(const Json& json, const char* name, int32_t low, int32_t high, int32_t& out) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_number_integer()) return false;
  const auto value = json[name].get<int64_t>();
  out = static_cast<int32_t>(std::clamp<int64_t>(value, low, high));
  return out == value;
}

bool read_real(const Json& json, const char* name, double& out) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_number()) return false;
  out = json[name].get<double>();
  return std::isfinite(out);
}

bool read_text(const Json& json, const char* name, std::string& out) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return false;
  out = json[name].get<std::string>();
  return true;
}

bool read_cut(const Json& json, ThoughtCut& cut) {
  if (!read_whole(json, "at", 0, 1 << 20, cut.at) || !read_real(json, "score", cut.score)) return false;
  if (!json.contains("certainty") || !json["certainty"].is_array()) return false;
  if (json["certainty"].size() != cut.certainty.size()) return false;
  for (size_t i = 0; i < cut.certainty.size(); ++i) {
    if (!json["certainty"][i].is_number()) return false;
    cut.certainty[i] = json["certainty"][i].get<double>();
  }
  return true;
}

bool read_entry(const Json& json, ThoughtEntry& entry) {
  if (!read_text(json, "conversation", entry.conversation) || !read_text(json, "key", entry.key)) return false;
  if (!read_whole(json, "tokens", 0, 1 << 20, entry.tokens) || !read_real(json, "score", entry.score)) return false;
  if (!json.contains("cuts") || !json["cuts"].is_array() || json["cuts"].size() > kMaxReadCuts) return false;
  for (const Json& one : json["cuts"]) {
    entry.cuts.emplace_back();
    if (!read_cut(one, entry.cuts.back())) return false;
  }
  return true;
}

}  // namespace

Result<FittedThoughts> read_thoughts(std::string_view bytes, uint64_t vocabulary) {
  TRY_ASSIGN(const Json json, parse_json(bytes));
  const Error broken{Code::corrupt,
                     "a setting of thoughts: expected {\"most\", \"window\", \"min_tokens\", \"close_above\", "
                     "\"vocabulary\", \"entries\"}"};
  FittedThoughts fitted;
  ThoughtSetting& setting = fitted.setting;
  const bool fits = read_whole(json, "most", -1, 0, setting.most) &&
                    read_whole(json, "window", 8, 32, setting.window) &&
                    read_whole(json, "min_tokens", 0, 1 << 20, setting.min_tokens) &&
                    read_real(json, "close_above", setting.close_above);
  if (!fits || window_at(setting.window) == kThoughtWindows.size()) return broken;
  if (!json.contains("vocabulary") || !json["vocabulary"].is_number_unsigned()) return broken;
  if (json["vocabulary"].get<uint64_t>() != vocabulary) {
    return Error{Code::unsupported, "a setting of thoughts: expected one of this model's vocabulary, found another's"};
  }
  if (!json.contains("entries") || !json["entries"].is_array()) return broken;
  if (json["entries"].size() > kMaxThoughtEntries) return broken;
  for (const Json& one : json["entries"]) {
    fitted.entries.emplace_back();
    if (!read_entry(one, fitted.entries.back())) return broken;
  }
  return Result<FittedThoughts>{std::move(fitted)};
}

std::vector<TaughtAnswer> thought_answers(const Tokenizer& tokenizer, const std::vector<TaughtAnswer>& examples) {
  std::vector<TaughtAnswer> thought;
  for (const TaughtAnswer& example : examples) {
    const auto shown = static_cast<int64_t>(tokenizer.encode(example.given, EncodeMode::plain, false).size());
    // A call that was given is no part of `given`, and what its form takes is not known.
    if (example.given.empty() || example.given_tokens < shown + kThoughtBeyond) continue;
    thought.push_back(example);
  }
  if (thought.size() > kMaxThoughtEntries) thought.erase(thought.begin(), thought.end() - kMaxThoughtEntries);
  return thought;
}

Result<std::optional<std::string>> thoughts_without(std::string_view bytes, uint64_t vocabulary,
                                                    const Tokenizer& tokenizer,
                                                    const std::vector<TaughtAnswer>& train) {
  TRY_ASSIGN(FittedThoughts old, read_thoughts(bytes, vocabulary));
  std::map<std::pair<std::string, std::string>, const ThoughtEntry*> known;
  for (const ThoughtEntry& entry : old.entries) known[{entry.conversation, entry.key}] = &entry;
  std::vector<ThoughtEntry> entries;
  for (const TaughtAnswer& example : thought_answers(tokenizer, train)) {
    const auto found = known.find({example.conversation, entry_key(example)});
    if (found == known.end()) return std::optional<std::string>{};
    entries.push_back(*found->second);
  }
  const FittedThoughts fitted = fitted_thoughts(std::move(entries));
  return std::optional<std::string>(fitted.setting.closes() ? thought_bytes(fitted, vocabulary) : std::string());
}

bool use_thought_setting(const ThoughtSetting& setting, orchestrator::ChatRequest& request) {
  const orchestrator::ThinkingOptions& said = request.thinking;
  const bool is_said = said.mode || said.window || said.min_tokens || said.close_above || said.extend_below ||
                       said.suppress_above || said.close_at_reflection || request.thinking_budget >= 0 ||
                       request.thinking_limit >= 0 || request.goes_on || request.enable_thinking == false;
  if (is_said || !setting.closes()) return false;
  if (setting.most == 0) {
    request.thinking_budget = 0;
    return true;
  }
  request.thinking.window = setting.window;
  request.thinking.min_tokens = setting.min_tokens;
  request.thinking.close_above = static_cast<float>(setting.close_above);
  return true;
}

}  // namespace chimere::improve
