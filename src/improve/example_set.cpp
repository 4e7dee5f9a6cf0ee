#include "improve/example_set.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "improve/content_hash.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr float kFull = 32767;
constexpr double kFalseShows = 0.05;  // of those that only vote
constexpr double kFewestShows = 0.5;  // of those that are shown
constexpr size_t kMaxValues = 1 << 16;
constexpr size_t kMaxShownBytes = 600;                              // of a question, and of an answer
constexpr std::ptrdiff_t kMaxTaughtEntries = kMaxSetEntries - 100;  // the others are the guard's

std::string hex_of(const std::vector<int16_t>& values) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const int16_t value : values) {
    const auto bits = static_cast<uint16_t>(value);
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[(bits >> shift) & 15];
  }
  return text;
}

std::optional<std::vector<int16_t>> values_of(const std::string& hex) {
  if (hex.empty() || hex.size() % 4 != 0 || hex.size() > 4 * kMaxValues) return std::nullopt;
  std::vector<int16_t> values;
  for (size_t i = 0; i < hex.size(); i += 4) {
    unsigned bits = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const char c = hex[j];
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
      bits = bits * 16 + static_cast<unsigned>(is_digit ? c - '0' : c - 'a' + 10);
    }
    values.push_back(static_cast<int16_t>(static_cast<uint16_t>(bits)));
  }
  return values;
}

std::vector<orchestrator::ShownExamples::Entry> shown_entries(const std::vector<SetEntry>& entries) {
  std::vector<orchestrator::ShownExamples::Entry> all;
  for (const SetEntry& entry : entries) {
    all.push_back({entry.question, entry.answer, {}});
    for (const int16_t value : entry.vector) all.back().vector.push_back(static_cast<float>(value) / kFull);
  }
  return all;
}

// Of the numbers of votes the one that shows as many of those that are shown as it can, hardly any other, and none of the
// guard's.
size_t fitted_least(const std::vector<SetEntry>& entries) {
  const std::vector<size_t> votes = orchestrator::ShownExamples(shown_entries(entries), 1).votes();
  size_t best = 0;
  double most = 0;
  for (size_t least = orchestrator::ShownExamples::kVoters; least >= 1; --least) {
    double shown = 0, n_shown = 0, others = 0, n_others = 0;
    bool shows_general = false;
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool is_shown = !entries[i].answer.empty();
      (is_shown ? n_shown : n_others) += 1;
      if (votes[i] < least) continue;
      (is_shown ? shown : others) += 1;
      shows_general = shows_general || entries[i].conversation.empty();
    }
    if (n_shown == 0 || n_others == 0) return 0;
    const double share = shown / n_shown;
    if (shows_general || others / n_others > kFalseShows || share < kFewestShows || share <= most) continue;
    best = least;
    most = share;
  }
  return best;
}

}  // namespace

std::vector<TaughtAnswer> shown_candidates(const std::vector<TaughtAnswer>& train) {
  std::vector<TaughtAnswer> all;
  for (const TaughtAnswer& example : train) {
    const auto& messages = example.asked.messages;
    const bool is_alone = messages.size() == 1 && messages.front().role == "user";
    const size_t n_question = question_in(messages).size(), n_answer = example.wanted.text.size();
    const bool is_short = n_question > 0 && n_question <= kMaxShownBytes && n_answer > 0 && n_answer <= kMaxShownBytes;
    if (is_alone && is_short && example.wanted.calls.empty() && example.asked.tools.empty()) all.push_back(example);
  }
  if (all.size() > kMaxTaughtEntries) all.erase(all.begin(), all.end() - kMaxTaughtEntries);
  return all;
}

std::string entry_key(const TaughtAnswer& example) {
  return content_hash(question_in(example.asked.messages) + "\n" + example.wanted.shown()).substr(0, 16);
}

std::vector<int16_t> packed_vector(const std::vector<float>& vector) {
  std::vector<int16_t> values;
  for (const float value : vector) {
    values.push_back(static_cast<int16_t>(std::lround(std::clamp(value, -1.0f, 1.0f) * kFull)));
  }
  return values;
}

ExampleSet example_set(std::vector<SetEntry> entries) {
  std::sort(entries.begin(), entries.end(), [](const SetEntry& a, const SetEntry& b) {
    return std::tie(a.conversation, a.key, a.question) < std::tie(b.conversation, b.key, b.question);
  });
  ExampleSet set{std::move(entries), 0};
  if (!set.entries.empty()) set.least = fitted_least(set.entries);
  return set;
}

std::string example_set_bytes(const ExampleSet& set, uint64_t vocabulary) {
  Json json{{"least", set.least}, {"vocabulary", vocabulary}, {"entries", Json::array()}};
  for (const SetEntry& entry : set.entries) {
    json["entries"].push_back({{"conversation", entry.conversation},
                               {"key", entry.key},
                               {"question", entry.question},
                               {"answer", entry.answer},
                               {"vector", hex_of(entry.vector)}});
  }
  return to_text(json) + "\n";
}

Result<ExampleSet> read_example_set(std::string_view bytes, uint64_t vocabulary) {
  TRY_ASSIGN(const Json json, parse_json(bytes));
  const auto broken = [](const std::string& what) {
    return Error{Code::corrupt, "a set of examples: expected " + what};
  };
  if (!json.is_object() || !json.contains("entries") || !json["entries"].is_array()) return broken("entries");
  if (!json.contains("least") || !json["least"].is_number_unsigned()) return broken("a number `least`");
  if (json.value("vocabulary", uint64_t{0}) != vocabulary) {
    return Error{Code::unsupported, "a set of examples: expected one of this model's vocabulary, found another's"};
  }
  ExampleSet set;
  set.least = json["least"].get<size_t>();
  if (set.least > orchestrator::ShownExamples::kVoters) return broken("a `least` of at most five");
  if (json["entries"].size() > kMaxSetEntries) return broken("at most " + std::to_string(kMaxSetEntries) + " entries");
  for (const Json& one : json["entries"]) {
    SetEntry entry;
    std::string hex;
    for (const auto& [name, to] :
         {std::pair("conversation", &entry.conversation), std::pair("key", &entry.key),
          std::pair("question", &entry.question), std::pair("answer", &entry.answer), std::pair("vector", &hex)}) {
      if (!one.is_object() || !one.contains(name) || !one[name].is_string())
        return broken(std::string("a text `") + name + "`");
      *to = one[name].get<std::string>();
    }
    auto values = values_of(hex);
    if (!values || (!set.entries.empty() && values->size() != set.entries.front().vector.size())) {
      return broken("vectors of one size");
    }
    entry.vector = std::move(*values);
    set.entries.push_back(std::move(entry));
  }
  return Result<ExampleSet>{std::move(set)};
}

std::shared_ptr<const orchestrator::ShownExamples> shown_of(const ExampleSet& set) {
  if (set.least == 0) return nullptr;
  return std::make_shared<const orchestrator::ShownExamples>(shown_entries(set.entries), set.least);
}

Result<std::optional<std::string>> set_without(std::string_view bytes, uint64_t vocabulary,
                                               const std::vector<TaughtAnswer>& train) {
  TRY_ASSIGN(ExampleSet old, read_example_set(bytes, vocabulary));
  std::map<std::pair<std::string, std::string>, const SetEntry*> known;
  std::vector<SetEntry> entries;
  for (const SetEntry& entry : old.entries) {
    known[{entry.conversation, entry.key}] = &entry;
    if (entry.conversation.empty()) entries.push_back(entry);
  }
  for (const TaughtAnswer& example : shown_candidates(train)) {
    const auto found = known.find({example.conversation, entry_key(example)});
    if (found == known.end()) return std::optional<std::string>{};
    entries.push_back(*found->second);
  }
  return std::optional<std::string>(example_set_bytes(example_set(std::move(entries)), vocabulary));
}

}  // namespace chimere::improve
