// eval_routing.cpp  `chimere eval odo --stage routing`: single stages of the cascade and all of it, on the same questions.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "eval_stages.h"
#include "odo/routing/router.h"
#include "odo/routing/scoreboard.h"
#include "odo/routing/service_hooks.h"

namespace chimere::apps {
namespace {

using odo::JudgedChoice;
using odo::Router;
using orchestrator::ChatService;

constexpr size_t kMaxQuestions = 1'000'000;

struct AskedRoute {
  size_t route = 0;
  std::string source;
  std::string question;
};

// What each way to choose made of the questions, and the figures of one question for the dump.
struct RoutingRun {
  const Router& router;
  odo::RouteHooks hooks;
  std::vector<AskedRoute> asked;
  size_t fallback = 0;
  std::vector<std::pair<std::string, std::vector<JudgedChoice>>> ways;
  std::vector<nlohmann::ordered_json> dumped;
};

Result<size_t> route_index(const Router& router, const std::string& name, const std::string& where) {
  std::string known;
  for (size_t i = 0; i < router.routes().size(); ++i) {
    if (router.routes()[i].first == name) return i;
    known += (known.empty() ? "" : ", ") + router.routes()[i].first;
  }
  return Error{Code::invalid_argument, where + ": expected one of " + known + ", found '" + name + "'"};
}

Result<std::vector<AskedRoute>> read_questions(const std::string& path, const Router& router) {
  std::ifstream in(path);
  if (!in) return Error{Code::not_found, path + ": can not be read"};
  std::vector<AskedRoute> asked;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    const std::string where = path + ":" + std::to_string(asked.size() + 1);
    const size_t first = line.find('\t'), second = first == line.npos ? line.npos : line.find('\t', first + 1);
    if (second == line.npos) return Error{Code::invalid_argument, where + ": expected route, source and question"};
    if (asked.size() == kMaxQuestions) return Error{Code::invalid_argument, path + ": expected fewer questions"};
    TRY_ASSIGN(const size_t route, route_index(router, line.substr(0, first), where));
    asked.push_back({route, line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  if (asked.empty()) return Error{Code::invalid_argument, path + ": expected questions, found none"};
  return Result<std::vector<AskedRoute>>{std::move(asked)};
}

// Runs one way to choose over all questions. `choose` gives the chances of all routes; empty: none of them.
using Chances = std::function<Result<std::vector<double>>(const std::string& question)>;

Status run_way(RoutingRun& run, const std::string& name, const Chances& choose) {
  std::vector<JudgedChoice> judged;
  for (size_t i = 0; i < run.asked.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    TRY_ASSIGN(const std::vector<double> chances, choose(run.asked[i].question));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    const auto best = std::max_element(chances.begin(), chances.end());
    JudgedChoice choice{run.asked[i].route, run.fallback, 0.5, took.count()};
    if (best != chances.end()) {
      choice.chosen = static_cast<size_t>(best - chances.begin());
      choice.confidence = *best;
    }
    judged.push_back(choice);
    run.dumped[i][name] = chances;
  }
  run.ways.emplace_back(name, std::move(judged));
  return Ok{};
}

// The share of found rules that speak for each route; none where two have the same number.
std::vector<double> by_rules(const Router& router, const std::string& question) {
  const std::vector<odo::RuleHits> hits = router.rule_hits(odo::FoldedText(question));
  std::vector<double> shares;
  double sum = 0, most = 0;
  for (const odo::RuleHits& h : hits) {
    shares.push_back(static_cast<double>(h.found.size()));
    sum += shares.back();
    most = std::max(most, shares.back());
  }
  if (most == 0 || std::count(shares.begin(), shares.end(), most) > 1) return {};
  for (double& share : shares) share /= sum;
  return shares;
}

Status run_cascade(RoutingRun& run, const std::string& name, const odo::RouteHooks& hooks) {
  std::vector<JudgedChoice> judged;
  for (size_t i = 0; i < run.asked.size(); ++i) {
    const odo::RouteChoice choice = run.router.choose(run.asked[i].question, {}, hooks);
    TRY_ASSIGN(const size_t route, route_index(run.router, choice.route, "the router"));
    judged.push_back({run.asked[i].route, route, choice.confidence, choice.ms});
    run.dumped[i][name] = {
        {"route", choice.route}, {"confidence", choice.confidence}, {"stage", choice.stage}, {"why", choice.why}};
  }
  run.ways.emplace_back(name, std::move(judged));
  return Ok{};
}

Status run_all(RoutingRun& run) {
  const Router& router = run.router;
  for (const AskedRoute& q : run.asked) {
    run.dumped.push_back({{"route", router.routes()[q.route].first}, {"source", q.source}, {"question", q.question}});
  }
  TRY(run_way(run, "rules", [&](const std::string& q) { return by_rules(router, q); }));
  TRY(run_way(run, "words of the examples", [&](const std::string& q) { return router.by_words(odo::FoldedText(q)); }));
  if (run.hooks.embed) {
    TRY(run_way(run, "vectors of the examples", [&](const std::string& q) { return router.by_vectors(q, run.hooks); }));
    TRY(run_way(run, "words and vectors",
                [&](const std::string& q) { return router.by_words_and_vectors(q, run.hooks); }));
  }
  if (run.hooks.ask_model) {
    TRY(run_way(run, "model", [&](const std::string& q) { return router.by_model(q, run.hooks); }));
  }
  if (run.hooks.ask_model) TRY(run_cascade(run, "cascade with the model", run.hooks));
  TRY(run_cascade(run, "cascade without vectors", {}));
  if (run.hooks.embed) {
    odo::RouteHooks vectors = run.hooks;
    vectors.ask_model = nullptr;
    TRY(run_cascade(run, "cascade", vectors));
  }
  return Ok{};
}

Status write_dump(const RoutingRun& run, const std::string& path) {
  std::ofstream out(path);
  for (const auto& row : run.dumped) out << row.dump() << '\n';
  out.close();
  if (!out) return Error{Code::io, path + ": writing failed"};
  return Ok{};
}

void print_figures(const RoutingRun& run) {
  const auto& routes = run.router.routes();
  std::printf("%zu questions\n\n%-24s %-22s %-22s %6s %9s %9s\n", run.asked.size(), "", "accuracy", "macro-F1",
              "calib.", "median ms", "99 % ms");
  for (const auto& [name, judged] : run.ways) {
    const odo::Scoreboard b = odo::score_choices(judged, routes.size());
    std::printf("%-24s %.3f (%.3f to %.3f) %.3f (%.3f to %.3f) %6.3f %9.3f %9.3f\n", name.c_str(), b.accuracy.value,
                b.accuracy.low, b.accuracy.high, b.macro_f1.value, b.macro_f1.low, b.macro_f1.high, b.calibration_error,
                b.median_ms, b.p99_ms);
  }
  const auto& [name, judged] = run.ways.back();
  const odo::Scoreboard b = odo::score_choices(judged, routes.size());
  std::printf("\n%s: rows are what is right, columns what was chosen\n%-10s", name.c_str(), "");
  for (const auto& [route, rules] : routes) std::printf(" %9s", route.c_str());
  std::printf(" %9s\n", "F1");
  for (size_t i = 0; i < routes.size(); ++i) {
    std::printf("%-10s", routes[i].first.c_str());
    for (const int n : b.confusion[i]) std::printf(" %9d", n);
    std::printf(" %9.3f\n", b.f1[i]);
  }
  std::map<std::string, std::pair<int, int>> sources;
  for (size_t i = 0; i < judged.size(); ++i) {
    auto& [right, all] = sources[run.asked[i].source + ", " + routes[run.asked[i].route].first];
    right += judged[i].expected == judged[i].chosen;
    ++all;
  }
  std::printf("\nright by source\n");
  for (const auto& [source, n] : sources) std::printf("%-24s %4d of %4d\n", source.c_str(), n.first, n.second);
}

void print_json(const RoutingRun& run) {
  nlohmann::ordered_json result = {{"questions", run.asked.size()}};
  for (const auto& [name, judged] : run.ways) {
    const odo::Scoreboard b = odo::score_choices(judged, run.router.routes().size());
    result["ways"][name] = {{"accuracy", b.accuracy.value},
                            {"accuracy_95", {b.accuracy.low, b.accuracy.high}},
                            {"macro_f1", b.macro_f1.value},
                            {"macro_f1_95", {b.macro_f1.low, b.macro_f1.high}},
                            {"f1", b.f1},
                            {"confusion", b.confusion},
                            {"calibration_error", b.calibration_error},
                            {"median_ms", b.median_ms},
                            {"p99_ms", b.p99_ms}};
  }
  std::printf("%s\n", result.dump().c_str());
}

}  // namespace

Status eval_routing(const EvalOptions& o) {
  if (o.questions.empty())
    return Error{Code::invalid_argument, "--questions: expected a file of questions for routing"};
  TRY_ASSIGN(std::vector<odo::NamedRules> rules, odo::read_route_rules(o.routes.empty() ? shipped_routes() : o.routes));
  TRY_ASSIGN(const auto router, Router::create(std::move(rules)));
  RoutingRun run{*router, {}, {}, 0, {}, {}};
  TRY_ASSIGN(run.asked, read_questions(o.questions, *router));
  TRY_ASSIGN(run.fallback, route_index(*router, "default", "the routes"));
  std::optional<ChatService> service;
  std::unique_ptr<orchestrator::EmbeddingModel> embedder;
  if (const std::string file = embedder_path(o.embedding_model); !file.empty()) {
    ModelOptions options;
    options.path = file;
    options.threads = o.model.threads;
    TRY_ASSIGN(auto model, load_model(options));
    TRY_ASSIGN(embedder, orchestrator::EmbeddingModel::open(std::move(model), {}));
    odo::lend_vectors(embedder->embedder(), {}, run.hooks);
  }
  if (!o.no_model) {
    TRY_ASSIGN(auto model, load_model(o.model));
    TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
    service.emplace(std::move(chat_model), engine::EngineConfig{});
    if (!embedder) odo::lend_vectors(service->embedder(), {}, run.hooks);
    odo::lend_model(*service, {}, run.hooks);
  }
  TRY(run_all(run));
  if (!o.dump.empty()) TRY(write_dump(run, o.dump));
  o.json ? print_json(run) : print_figures(run);
  return Ok{};
}

}  // namespace chimere::apps
