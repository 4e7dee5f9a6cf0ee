#include "quantizer/losses.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "base/platform/atomic_file.h"
#include "base/platform/mapped_file.h"
#include "gguf/value.h"
#include "text/json.h"

namespace chimere::quantizer {
namespace {

constexpr const char* kFormat = "chimere quantize losses 1";
constexpr uint64_t kMaxLossesBytes = uint64_t{64} << 20;
// Probes are made where the divergence is neither lost in rounding nor beyond what grows in proportion.
constexpr double kProbeError = 0.01;
// A wrong guess of a draft block costs time and never an answer, so its errors count for a quarter.
constexpr double kDraftWeight = 0.25;

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

Error bad_losses(const std::string& label, const std::string& what) {
  return Error{Code::corrupt, label + ": " + what};
}

// A number that is finite and not negative.
Result<double> number_of(const Json& json, const std::string& where) {
  if (json.is_number()) {
    const double value = json.get<double>();
    if (std::isfinite(value) && value >= 0) return value;
  }
  return Error{Code::corrupt, where + ": expected a number of 0 or more"};
}

Result<TensorLosses> tensor_from(const Json& json, const std::string& where) {
  TensorLosses t;
  if (!json.is_object() || !json.contains("slope") || !json.contains("errors") || !json["errors"].is_object()) {
    return Error{Code::corrupt, where + ": expected an object with slope and errors"};
  }
  TRY_ASSIGN(t.slope, number_of(json["slope"], where + ".slope"));
  if (json.contains("class") && json["class"].is_string()) t.class_name = json["class"].get<std::string>();
  for (const auto& [type, pair] : json["errors"].items()) {
    const auto known = dtype_from_name(type);
    if (known && pair.is_null()) {  // it cannot hold the values
      t.errors.push_back({*known, INFINITY, 0});
      continue;
    }
    if (!known || !pair.is_array() || pair.size() != 2) {
      return Error{Code::corrupt, where + ": expected \"TYPE\": [error, half-width], found " + gguf::quoted(type)};
    }
    TypeError e{*known, 0, 0};
    TRY_ASSIGN(e.relative, number_of(pair[0], where + "." + type));
    TRY_ASSIGN(e.half_width, number_of(pair[1], where + "." + type));
    t.errors.push_back(e);
  }
  return Result<TensorLosses>{std::move(t)};
}

const TypeError* find_error(const TensorLosses& t, DType type) {
  const auto found = std::find_if(t.errors.begin(), t.errors.end(), [&](const TypeError& e) { return e.type == type; });
  return found == t.errors.end() ? nullptr : &*found;
}

DType probe_type(const PlanItem& item, const TensorLosses& t) {
  DType best = item.choices.front().type;
  double distance = INFINITY;
  for (const Choice& c : item.choices) {
    const TypeError* e = find_error(t, c.type);
    if (!e || !(e->relative > 0) || std::isinf(e->relative)) continue;
    const double d = std::fabs(std::log(e->relative / kProbeError));
    if (d < distance) {
      distance = d;
      best = c.type;
    }
  }
  return best;
}

// The middle one; 0 of none.
double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<Losses> parse_losses(std::string_view text, const std::string& label) {
  auto json = parse_json(text);
  if (!json) return bad_losses(label, json.error().message);
  if (!json->is_object() || !json->contains("format") || (*json)["format"] != kFormat) {
    return bad_losses(label, std::string("expected \"format\": \"") + kFormat + "\"");
  }
  Losses losses;
  for (const auto& [key, to] : {std::pair{"model", &losses.model}, std::pair{"statistics", &losses.statistics}}) {
    if (!json->contains(key) || !(*json)[key].is_string()) return bad_losses(label, std::string("has no ") + key);
    const std::string digits = (*json)[key].get<std::string>();
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return bad_losses(label, std::string(key) + ": expected 16 hexadecimal digits");
    }
    *to = std::strtoull(digits.c_str(), nullptr, 16);
  }
  losses.probed = json->contains("probed") && (*json)["probed"] == true;
  if (json->contains("text") && (*json)["text"].is_string()) losses.text = (*json)["text"].get<std::string>();
  if (!json->contains("tensors") || !(*json)["tensors"].is_object()) return bad_losses(label, "has no tensors");
  for (const auto& [name, tensor] : (*json)["tensors"].items()) {
    TRY_ASSIGN(losses.tensors[name], tensor_from(tensor, label + ": " + gguf::quoted(name)));
  }
  return Result<Losses>{std::move(losses)};
}

Result<Losses> read_losses(const std::string& path) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kMaxLossesBytes) return bad_losses(path, "expected at most 64 MiB");
  return parse_losses({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

std::string losses_text(const Losses& losses) {
  Json json = {{"format", kFormat},       {"model", hex(losses.model)}, {"statistics", hex(losses.statistics)},
               {"probed", losses.probed}, {"text", losses.text},        {"tensors", Json::object()}};
  for (const auto& [name, t] : losses.tensors) {
    Json errors = Json::object();
    for (const TypeError& e : t.errors) {
      Json& error = errors[std::string(chimere::name(e.type))];
      if (std::isfinite(e.relative)) error = {e.relative, e.half_width};
    }
    json["tensors"][name] = {{"class", t.class_name}, {"slope", t.slope}, {"errors", std::move(errors)}};
  }
  return to_text(json) + "\n";
}

Status write_losses(const Losses& losses, const std::string& path) {
  const std::string text = losses_text(losses);
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit();
}

Result<Losses> measure_losses(const gguf::File& file, const Plan& plan, const Statistics* statistics,
                              const ErrorSampling& sampling, int n_threads,
                              const std::function<void(size_t done, size_t total)>& progress) {
  Losses losses;
  losses.model = models::fingerprint(file);
  losses.statistics = hash_of(statistics);
  ThreadPool pool(n_threads);
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const PlanItem& item = plan.items[i];
    if (progress) progress(i, plan.items.size());
    if (item.choices.size() < 2) continue;
    std::vector<DType> types;
    for (const Choice& c : item.choices) types.push_back(c.type);
    TensorLosses t;
    t.class_name = item.part.part;
    TRY_ASSIGN(t.errors, measure_errors(*item.tensor, types, statistics, sampling, pool));
    losses.tensors[std::string(item.tensor->name)] = std::move(t);
    file.drop_pages(*item.tensor);
  }
  if (progress) progress(plan.items.size(), plan.items.size());
  return Result<Losses>{std::move(losses)};
}

Status measure_slopes(const gguf::File& file, const Plan& plan, const Statistics* statistics, const Windows& windows,
                      size_t max_probes, const LoadOptions& options,
                      const std::function<void(size_t done, size_t total)>& progress, Losses& losses) {
  const std::vector<TensorClass> classes = classes_of(plan, max_probes);
  TRY_ASSIGN(const auto whole, load_quantised(file, {}, nullptr, options));
  TRY_ASSIGN(const Base base, measure_base(*whole, windows));
  // What the codes of the base cost by themselves.
  TRY_ASSIGN(const Divergence noise, measure_divergence(*whole, base, {}));
  const auto losses_of = [&](const PlanItem& item) -> TensorLosses& {
    return losses.tensors[std::string(item.tensor->name)];
  };
  const auto type_of = [&](const PlanItem& item) { return probe_type(item, losses_of(item)); };
  TRY_ASSIGN(const std::vector<double> found,
             probe_classes(file, plan, classes, type_of, statistics, base, options, [&](size_t done) {
               if (progress) progress(done, classes.size());
             }));
  std::vector<double> slopes(classes.size(), 0.0), moved;
  std::map<std::string, std::vector<double>> by_part;
  for (size_t c = 0; c < classes.size(); ++c) {
    double error = 0;
    for (const size_t i : classes[c].items) {
      const TypeError* e = find_error(losses_of(plan.items[i]), type_of(plan.items[i]));
      error += e && std::isfinite(e->relative) ? e->relative : 0;
    }
    // Nothing moved: tensors of a draft block, which the trunk does not run.
    if (found[c] < 4 * noise.mean || error <= 0) continue;
    slopes[c] = (found[c] - noise.mean) / error;
    moved.push_back(slopes[c]);
    by_part[plan.items[classes[c].items.front()].part.part].push_back(slopes[c]);
  }
  if (moved.empty())
    return Error{Code::invalid_argument, "no probe changed the model's answers: is the text read at all?"};
  for (size_t c = 0; c < classes.size(); ++c) {
    double slope = slopes[c];
    if (slope == 0) {
      const auto alike = by_part.find(plan.items[classes[c].items.front()].part.part);
      slope = kDraftWeight * median_of(alike == by_part.end() ? moved : alike->second);
    }
    for (const size_t i : classes[c].items) {
      losses_of(plan.items[i]).slope = slope;
      losses_of(plan.items[i]).class_name = classes[c].name;
    }
  }
  losses.probed = true;
  return Ok{};
}

bool covers(const Losses& losses, const Plan& plan) {
  for (const PlanItem& item : plan.items) {
    if (item.choices.size() < 2) continue;
    const auto found = losses.tensors.find(item.tensor->name);
    if (found == losses.tensors.end()) return false;
    for (const Choice& c : item.choices) {
      if (!find_error(found->second, c.type)) return false;
    }
  }
  return true;
}

Status apply_losses(const Losses& losses, Plan& plan) {
  for (PlanItem& item : plan.items) {
    if (item.choices.size() < 2) continue;
    const auto found = losses.tensors.find(item.tensor->name);
    if (found == losses.tensors.end()) {
      return Error{Code::invalid_argument,
                   "nothing was measured of " + gguf::quoted(item.tensor->name) + ": measure again"};
    }
    std::vector<Choice> choices;
    for (Choice c : item.choices) {
      const TypeError* e = find_error(found->second, c.type);
      if (c.type == item.tensor->type) {
        c.loss = 0;
      } else if (e && std::isfinite(e->relative)) {
        c.loss = found->second.slope * e->relative;
        c.half_width = found->second.slope * e->half_width;
      } else {
        continue;
      }
      choices.push_back(c);
    }
    item.choices = std::move(choices);
    item.chosen = item.choices.size() - 1;
  }
  return Ok{};
}

}  // namespace chimere::quantizer
