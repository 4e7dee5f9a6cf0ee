#include "improve/run_record.h"

#include <cmath>
#include <utility>

#include "text/json.h"

namespace chimere::improve {
namespace {

Json gain_json(const Gain& gain) {
  return {{"n", gain.n}, {"mean", gain.mean}, {"low", gain.low}, {"high", gain.high}};
}

Json verdict_json(const Verdict& verdict) {
  Json json{{"proven", verdict.is_proven}, {"reason", verdict.reason},        {"attempt", verdict.attempt},
            {"alpha", verdict.alpha},      {"gain", gain_json(verdict.gain)}, {"guards", Json::array()}};
  for (const Guard& guard : verdict.guards) {
    Json one = gain_json(guard.gain);
    one.update({{"name", guard.name}, {"margin", guard.margin}, {"holds", guard.holds}});
    json["guards"].push_back(std::move(one));
  }
  return json;
}

// What we wrote ourselves; a field of another type is as if it were not there.
template <class T>
void take(const Json& json, const char* name, T& out) {
  const auto found = json.find(name);
  if (found == json.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) out = found->get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) out = found->get<bool>();
  } else {
    if (found->is_number()) out = found->get<T>();
  }
}

Gain gain_of(const Json& json) {
  Gain gain;
  take(json, "n", gain.n);
  take(json, "mean", gain.mean);
  take(json, "low", gain.low);
  take(json, "high", gain.high);
  return gain;
}

Verdict verdict_of(const Json& json) {
  Verdict verdict;
  if (!json.is_object()) return verdict;
  take(json, "proven", verdict.is_proven);
  take(json, "reason", verdict.reason);
  take(json, "attempt", verdict.attempt);
  take(json, "alpha", verdict.alpha);
  if (json.contains("gain") && json["gain"].is_object()) verdict.gain = gain_of(json["gain"]);
  for (const Json& guard : json.value("guards", Json::array())) {
    if (!guard.is_object()) continue;
    Guard one;
    one.gain = gain_of(guard);
    take(guard, "name", one.name);
    take(guard, "margin", one.margin);
    take(guard, "holds", one.holds);
    verdict.guards.push_back(std::move(one));
  }
  return verdict;
}

}  // namespace

std::string run_text(const RunRecord& run) {
  Json json{{"object", "improve.run"},
            {"id", run.id},
            {"owner", run.slot.owner},
            {"kind", run.slot.kind},
            {"route", run.slot.route},
            {"state", run.state},
            {"problem", run.problem},
            {"created", run.created},
            {"ended", run.ended},
            {"model", run.model},
            {"input", run.input},
            {"artefact", run.artefact},
            {"about", run.about},
            {"learned_from", run.learned_from},
            {"last_answer", run.last_answer},
            {"examples", run.examples},
            {"held_out", run.held_out},
            {"duplicates", run.duplicates},
            {"foreign", run.foreign},
            {"verdict", verdict_json(run.verdict)},
            {"cost", {{"seconds", run.seconds}, {"cpu_seconds", run.cpu_seconds}, {"joules", nullptr}}},
            {"progress", {{"done", run.done}, {"total", run.total}}}};
  if (run.joules >= 0) json["cost"]["joules"] = run.joules;
  return to_text(json);
}

Result<RunRecord> parse_run(std::string_view text) {
  TRY_ASSIGN(const Json json, parse_json(text));
  if (!json.is_object()) return Error{Code::corrupt, "run: expected an object"};
  RunRecord run;
  take(json, "id", run.id);
  take(json, "owner", run.slot.owner);
  take(json, "kind", run.slot.kind);
  take(json, "route", run.slot.route);
  take(json, "state", run.state);
  take(json, "problem", run.problem);
  take(json, "created", run.created);
  take(json, "ended", run.ended);
  take(json, "model", run.model);
  take(json, "input", run.input);
  take(json, "artefact", run.artefact);
  take(json, "about", run.about);
  for (const Json& name : json.value("learned_from", Json::array())) {
    if (name.is_string()) run.learned_from.push_back(name.get<std::string>());
  }
  take(json, "last_answer", run.last_answer);
  take(json, "examples", run.examples);
  take(json, "held_out", run.held_out);
  take(json, "duplicates", run.duplicates);
  take(json, "foreign", run.foreign);
  run.verdict = verdict_of(json.value("verdict", Json::object()));
  const Json cost = json.value("cost", Json::object());
  take(cost, "seconds", run.seconds);
  take(cost, "cpu_seconds", run.cpu_seconds);
  take(cost, "joules", run.joules);
  const Json progress = json.value("progress", Json::object());
  take(progress, "done", run.done);
  take(progress, "total", run.total);
  return Result<RunRecord>{std::move(run)};
}

}  // namespace chimere::improve
