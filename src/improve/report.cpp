#include "improve/report.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "text/json.h"

namespace chimere::improve {
namespace {

Json versions_json(const SlotVersions& entry) {
  Json json{{"kind", entry.slot.kind}, {"route", entry.slot.route}, {"versions", Json::array()}};
  for (const Version& version : entry.versions) {
    json["versions"].push_back({{"artefact", version.artefact}, {"since", version.since}, {"run", version.run}});
  }
  return json;
}

std::string cell(std::string text) {
  for (char& c : text) {
    if (c == '|' || c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

std::string shown_time(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

const char* gain_unit(const std::string& kind) {
  return kind == "thinking" ? "of the tokens of a thought" : "nats a token";
}

std::string shown_gain(const Gain& gain) {
  if (gain.n == 0) return "-";
  char text[96];
  std::snprintf(text, sizeof text, "%+.4f [%+.4f, %+.4f]", gain.mean, gain.low, gain.high);
  return text;
}

Report report_of(const Manifest& manifest, std::vector<RunRecord> runs, const std::string& owner) {
  Report report{owner, {}, {}, std::move(runs)};
  for (const SlotVersions& entry : manifest.slots) {
    if (entry.slot.owner == owner) report.in_use.push_back(entry);
  }
  for (const Change& change : manifest.history) {
    if (change.slot.owner == owner) report.history.push_back(change);
  }
  return report;
}

std::string report_markdown(const Report& report) {
  std::string text =
      "# What was learned" + (report.owner.empty() ? std::string() : " for " + report.owner) + "\n\n## In use\n\n";
  if (report.in_use.empty()) text += "Nothing yet.\n";
  if (!report.in_use.empty()) text += "| kind | route | since | artefact | run |\n|---|---|---|---|---|\n";
  for (const SlotVersions& entry : report.in_use) {
    const Version& now = entry.versions.back();
    text += "| " + entry.slot.kind + " | " + entry.slot.route + " | " + shown_time(now.since) + " | " +
            now.artefact.substr(0, 12) + " | " + now.run + " |\n";
  }
  text += "\n## What was tried\n\n";
  if (report.runs.empty()) text += "Nothing yet.\n";
  if (!report.runs.empty()) {
    text +=
        "Gain: nats a token of answers that were held out (of thinking: the part of a thought's tokens that it saves "
        "there), mean and interval after the count of tries.\n\n"
        "| when | kind | route | outcome | gain | try | made from | proven with | cpu s | J | why |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n";
  }
  for (const RunRecord& run : report.runs) {
    char cost[64];
    std::snprintf(cost, sizeof cost, "%.1f | %s", run.cpu_seconds,
                  run.joules < 0 ? "-" : std::to_string(static_cast<int64_t>(run.joules)).c_str());
    text += "| " + shown_time(run.created) + " | " + run.slot.kind + " | " + run.slot.route + " | " + run.state +
            " | " + shown_gain(run.verdict.gain) + " | " + std::to_string(run.verdict.attempt) + " | " +
            std::to_string(run.examples) + " | " + std::to_string(run.held_out) + " | " + cost + " | " +
            cell(run.problem.empty() ? (run.verdict.reason.empty() ? run.about : run.verdict.reason) : run.problem) +
            " |\n";
  }
  text += "\n## Changes\n\n";
  if (report.history.empty()) text += "None.\n";
  for (const Change& change : report.history) {
    text += "- " + shown_time(change.at) + " " + change.action + " " + change.slot.kind +
            (change.slot.route.empty() ? "" : " of " + change.slot.route) + ": " +
            (change.artefact.empty() ? "none is in use" : change.artefact.substr(0, 12)) + "\n";
  }
  return text;
}

std::string report_json(const Report& report) {
  Json json{
      {"object", "improve.report"}, {"in_use", Json::array()}, {"runs", Json::array()}, {"history", Json::array()}};
  for (const SlotVersions& entry : report.in_use) json["in_use"].push_back(versions_json(entry));
  for (const RunRecord& run : report.runs) {
    auto parsed = parse_json(run_text(run));
    if (parsed) json["runs"].push_back(std::move(*parsed));
  }
  for (const Change& change : report.history) {
    json["history"].push_back({{"at", change.at},
                               {"action", change.action},
                               {"kind", change.slot.kind},
                               {"route", change.slot.route},
                               {"artefact", change.artefact},
                               {"run", change.run}});
  }
  return to_text(json);
}

}  // namespace chimere::improve
