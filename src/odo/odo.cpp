#include "odo/odo.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <utility>

#include "odo/calculate.h"
#include "odo/pipeline.h"
#include "odo/tool_cues.h"
#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using State = StepReport::State;

constexpr std::string_view kName = "odo", kPrefix = "odo/";
constexpr size_t kMaxWhyBytes = 80;

// What the name of the model says: "odo/x" is a mode or a route.
std::string_view part_of(std::string_view model) {
  return model.starts_with(kPrefix) ? model.substr(kPrefix.size()) : std::string_view();
}

std::string new_run_id() {
  static const std::string kRun = std::to_string(std::random_device()());
  static std::atomic<uint64_t> count{0};
  return "odo-" + kRun + "-" + std::to_string(++count);
}

// The words of a route come before those of the caller.
void add_system(ChatRequest& request, const std::string& text) {
  std::vector<chat::Message>& messages = request.messages;
  const bool has_system = !messages.empty() && messages.front().role == "system";
  const std::string own = has_system ? chat::text_of(messages.front()) : std::string();
  if (text.empty()) return;
  if (has_system) messages.erase(messages.begin());
  append_system(request, text);
  append_system(request, own);
}

// {"stage", "confidence"}; nothing for a route that was asked for.
std::string choice_detail(const RouteChoice& choice) {
  if (choice.stage.empty()) return {};
  return to_text(Json{{"stage", choice.stage}, {"confidence", std::round(choice.confidence * 100) / 100}});
}

std::vector<std::string> tools_for(const Route& route, const ChatRequest& request) {
  std::vector<std::string> names = cued_tools(orchestrator::question_of(request.messages), route.cued_tools);
  names.insert(names.end(), route.tools.begin(), route.tools.end());
  return names;
}

// Rules of the default route are of what it certainly is for.
bool is_small_talk(const RouteChoice& choice) { return choice.route == "default" && choice.stage == "rules"; }

// Who names the tools that may be used, and not the calculator, wants nothing calculated.
bool calculates(const Ask& ask, const Route& route) {
  const bool may_calculate = !ask.tools || is_named(kCalculator, *ask.tools);
  return ask.calculates.value_or(route.calculates && may_calculate);
}

}  // namespace

struct Odo::Job {
  Ask ask;
  ChatRequest request;
  std::shared_ptr<RunLink> link;
  std::string id = new_run_id();
};

Odo::Odo(orchestrator::ChatService* chat, tools::Toolbox& toolbox, Shelves shelves, OdoConfig config)
    : chat_(chat),
      toolbox_(toolbox),
      shelves_(shelves),
      config_(std::move(config)),
      folder_(config_.route_folders),
      threads_(config_.max_runs) {}

bool Odo::is_odo(std::string_view model) { return model == kName || model.starts_with(kPrefix); }

std::vector<std::string> Odo::model_names() {
  std::vector<std::string> names = {std::string(kName)};
  for (const std::string& mode : list_of_modes()) names.push_back(std::string(kPrefix) + mode);
  for (const auto& [name, route] : folder_.routes()->routes) names.push_back(std::string(kPrefix) + name);
  return names;
}

std::map<std::string, std::string> Odo::problems() {
  std::map<std::string, std::string> all = folder_.routes()->problems;
  if (config_.tool_problems) all.merge(config_.tool_problems());
  return all;
}

Status Odo::check(const Ask& ask) {
  const std::shared_ptr<const RouteSet> set = folder_.routes();
  const std::string part(part_of(ask.model));
  if (!part.empty() && !mode_named(part) && set->routes.count(part) == 0) {
    std::string names;
    for (const std::string& name : model_names()) names += (names.empty() ? "" : ", ") + name;
    return Error{Code::not_found, "expected one of " + names + ", found '" + ask.model.substr(0, 128) + "'"};
  }
  if (!ask.mode.empty() && !mode_named(ask.mode)) {
    return Error{Code::invalid_argument, "odo.mode: expected " + mode_names() + ", found '" + ask.mode + "'"};
  }
  if (!ask.route.empty() && set->routes.count(ask.route) == 0) {
    return Error{Code::invalid_argument, "odo.route: expected " + set->names() + ", found '" + ask.route + "'"};
  }
  for (const std::string& name : ask.tools.value_or(std::vector<std::string>())) {
    if (toolbox_.find(name)) continue;
    return Error{Code::invalid_argument, "odo.tools: expected names of /v1/odo/tools, found '" + name + "'"};
  }
  return Ok{};
}

std::unique_ptr<orchestrator::AnswerStream> Odo::start(Ask ask, ChatRequest request, std::function<void()> notify) {
  auto link = std::make_shared<RunLink>(std::move(notify));
  auto stream = std::make_unique<RunStream>(link);
  const auto refuse = [&](Error error) { RunTeller(link, {}).fail(std::move(error)); };
  if (const Status known = check(ask); !known) {
    refuse(known.error());
  } else if (!ask.chat && !chat_) {
    refuse({Code::internal, "no model was given to the run"});
  } else if (n_open_.fetch_add(1) >= config_.max_runs + config_.max_waiting) {
    --n_open_;
    refuse({Code::exhausted, "too many runs wait already"});
  } else {
    auto job = std::make_shared<Job>(Job{std::move(ask), std::move(request), link});
    threads_.post([this, job] {
      try {
        run(*job);
      } catch (const std::exception& e) {
        // Memory that is not there, most likely. The last word of a run is its end, so none has been said.
        RunTeller(job->link, {}).fail({Code::internal, e.what()});
      }
      --n_open_;
    });
  }
  return stream;
}

std::unique_ptr<orchestrator::ServiceJob<std::string>> Odo::work(std::function<Result<std::string>()> work,
                                                                 std::function<void()> notify) {
  auto channel = std::make_shared<Channel<Result<std::string>>>(std::move(notify));
  if (n_open_.fetch_add(1) >= config_.max_runs + config_.max_waiting) {
    --n_open_;
    channel->put(Error{Code::exhausted, "too many runs wait already"});
  } else {
    threads_.post([this, channel, work = std::move(work)] {
      channel->put(orchestrator::guarded(work));
      --n_open_;
    });
  }
  return std::make_unique<orchestrator::ServiceJob<std::string>>(std::move(channel));
}

RouteChoice Odo::choose(const Router& router, const Job& job) const {
  std::vector<RouteAttachment> attachments;
  for (const std::string& file : job.ask.attachments) {
    const bool is_type = file.find('/') != std::string::npos && file.find('.') == std::string::npos;
    attachments.push_back(is_type ? RouteAttachment{"", file} : RouteAttachment{file, ""});
  }
  return router.choose(orchestrator::question_of(job.request.messages), attachments, {});
}

tools::ToolContext Odo::context_of(const Job& job, const RunTeller& teller) {
  tools::ToolContext context;
  context.owner = job.request.memory.owner;
  context.key = job.ask.client;
  context.deadline = job.request.deadline;
  context.is_cancelled = [&teller] { return teller.is_cancelled(); };
  return context;
}

std::vector<FoundText> Odo::look_up(Job& job, const Route& route, const Mode* mode, RunTeller& teller) const {
  std::vector<FoundText> found;
  const std::string question = orchestrator::question_of(job.request.messages);
  const tools::ToolContext context = context_of(job, teller);
  const std::vector<std::string> collections =
      job.ask.collections ? *job.ask.collections : collections_there(shelves_, context.key, route.collections);
  if (!collections.empty()) retrieve(shelves_, collections, question, context, teller, found);
  const bool by_route = route.searches && shelves_.web && (!mode || mode->may_search);
  if (job.ask.web.value_or(by_route)) {
    const bool is_deep = mode && mode->runs_pipeline;
    search_web(shelves_, is_deep ? web::kDeepSearch : web::kQuickSearch, question, context, teller, found);
  }
  tell(found, 0, job.request);
  return found;
}

void Odo::run(Job& job) {
  orchestrator::ChatService& chat = job.ask.chat ? *job.ask.chat : *chat_;
  const auto began = std::chrono::steady_clock::now();
  const auto date = static_cast<int64_t>(std::time(nullptr));
  const std::shared_ptr<const RouteSet> set = folder_.routes();
  const std::string part(part_of(job.ask.model));
  const Mode* mode = mode_named(job.ask.mode.empty() ? part : job.ask.mode);
  RunTeller teller(job.link, {job.id, "", mode ? std::string(mode->name) : "", {}});

  const int routing = teller.begin("route", "", false);
  RouteChoice choice;
  choice.route = !job.ask.route.empty() ? job.ask.route : (mode_named(part) ? "" : part);
  choice.why = "asked for";
  if (choice.route.empty()) choice = choose(*set->router, job);
  const Route& route = set->at_or_default(choice.route);
  teller.set_route(route.name);
  if (choice.why.size() > kMaxWhyBytes) choice.why = "a pattern of its file";
  teller.end(routing, State::done, route.name + ": " + choice.why, choice_detail(choice));

  const Wishes own = wishes_of(job.request);
  own.over(route.wishes).over(mode ? mode->wishes : Wishes()).apply_to(job.request);
  add_system(job.request, route.system_prompt);
  const std::vector<FoundText> found = look_up(job, route, mode, teller);
  const bool is_calculated =
      calculates(job.ask, route) && calculate(toolbox_, context_of(job, teller), teller, job.request);

  LoopTools tools;
  tools.box = &toolbox_;
  tools.names = job.ask.tools.value_or(tools_for(route, job.request));
  // It reads calls of it, so it is told of it.
  if (is_calculated) tools.names.emplace_back(kCalculator);
  tools.approvals = job.ask.can_approve ? &approvals_ : nullptr;
  tools.owner = job.request.memory.owner;
  tools.client = job.ask.client;
  const bool runs_steps = job.ask.pipeline.value_or((route.is_automatic && (!mode || mode->may_run_pipeline)) ||
                                                    (mode && mode->runs_pipeline));
  const bool is_pipeline = runs_steps && !route.steps.empty();
  const bool weighs_doubt = job.ask.entropy.value_or(route.weighs_doubt && (!mode || mode->may_skip_thought));
  // A limit is the caller's word about thoughts as well.
  if (weighs_doubt && !is_pipeline && !job.request.enable_thinking && !own.thinking_limit) {
    // A sum that is computed needs no thought. The rule was fitted to plain answers, not to calls of tools; and small talk,
    // which rules know, is the bare model's to the letter.
    const bool is_plain = tools.names.empty() && job.request.tools.empty() && !is_small_talk(choice);
    if (is_calculated) job.request.enable_thinking = false;
    if (is_plain || job.ask.entropy) tools.doubt.emplace();
  }
  ModelTurn turn = is_pipeline
                       ? run_pipeline(chat, std::move(job.request), own, route, tools, config_.loop, teller)
                       : answer_with_tools(chat, std::move(job.request), tools, config_.loop, teller, "answer", true);

  turn.last.citations = citations_in(turn.content, found);
  // Before the last chunk: who has it may ask for the trace at once.
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  const RunReport report = teller.report();
  count(report);
  traces_.keep({report, job.ask.client, job.ask.model, date, ms, teller.usage(),
                turn.has_failed() ? turn.last.error->message : orchestrator::finish_name(turn.last.finish)});
  if (turn.has_failed()) {
    teller.fail(*turn.last.error, turn.last.is_too_long, turn.last.usage.prompt_tokens);
  } else {
    teller.finish(std::move(turn.last));
  }
}

void StageCount::add(double took_seconds) {
  ++n;
  seconds += took_seconds;
  const auto bound = std::lower_bound(kStageSeconds.begin(), kStageSeconds.end(), took_seconds);
  ++by_seconds[static_cast<size_t>(bound - kStageSeconds.begin())];
}

void Odo::count(const RunReport& report) {
  std::lock_guard lock(counts_mutex_);
  for (const StepReport& step : report.steps) {
    StageCount& count = counts_[step.stage];
    count.add(step.ms / 1000);
    count.failed += step.state == State::failed;
    count.skipped += step.state == State::skipped;
  }
}

std::map<std::string, StageCount> Odo::stage_counts() const {
  std::lock_guard lock(counts_mutex_);
  return counts_;
}

}  // namespace chimere::odo
