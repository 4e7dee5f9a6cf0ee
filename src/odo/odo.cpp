#include "odo/odo.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <utility>

#include "odo/calculate.h"
#include "odo/few_shot.h"
#include "odo/gate.h"
#include "odo/pipeline.h"
#include "odo/routing/service_hooks.h"
#include "odo/tool_cues.h"
#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using State = StepReport::State;

constexpr std::string_view kName = "odo", kPrefix = "odo/";
constexpr size_t kMaxWhyBytes = 80;
// Of the n-grams of texts that were found, where nobody says otherwise (docs/odo.md has what it gives).
constexpr float kSourceWeight = 0;

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

// Nothing of an answer that is searched for, or judged, was shown while it was made.
void show(const ModelTurn& turn, bool with_tokens, RunTeller& teller) {
  if (turn.has_failed()) return;
  ChatChunk delta;
  delta.reasoning = turn.reasoning;
  delta.content = turn.content;
  if (with_tokens) delta.tokens = turn.tokens;
  for (size_t i = 0; i < turn.calls.size(); ++i) {
    delta.tool_calls.push_back(
        {static_cast<int>(i), turn.calls[i].id, turn.calls[i].name, turn.calls[i].arguments_json});
  }
  teller.tell(std::move(delta));
}

// Why the answer can not be searched for; empty: it can.
std::string why_no_search(const ChatRequest& request, const LoopTools& tools, bool is_set) {
  if (!tools.names.empty() || !request.tools.empty()) return "tools are offered, and their calls are not branches";
  if (request.goes_on) return "an answer that has begun goes on by itself";
  if (is_set && request.sampling.temperature < kGreedyBelow) return "at temperature 0 all branches are the same";
  return {};
}

// The answer, by as much effort as was asked for. `is_set`: somebody said the temperature.
ModelTurn answer_with_effort(orchestrator::ChatService& chat, ChatRequest request, LoopTools tools,
                             const LoopLimits& limits, const Effort& effort, bool is_set, const JudgeParts& parts,
                             RunTeller& teller) {
  SearchRule rule = effort.search_rule();
  const bool is_gated = effort.gate.value_or(false);
  const bool with_tokens = request.logprobs || request.token_stats || request.token_ids;
  if (rule.kind != SearchKind::none) {
    if (const std::string why = why_no_search(request, tools, is_set); !why.empty()) {
      teller.end(teller.begin("search", "", false), State::skipped, why);
      rule.kind = SearchKind::none;
    }
  }
  if (rule.kind == SearchKind::none && !is_gated) {
    return answer_with_tools(chat, std::move(request), tools, limits, teller, "answer", true);
  }
  const Judge judge(parts);
  ModelTurn turn;
  if (rule.kind != SearchKind::none) {
    tools.doubt.reset();
    if (!is_set) request.sampling.temperature = std::max(request.sampling.temperature, kSearchTemperature);
    turn = search_answer(chat, request, rule, judge, teller);
  } else {
    request.token_stats = true;
    turn = answer_with_tools(chat, request, tools, limits, teller, "answer", false);
  }
  if (is_gated) {
    request.token_stats = true;
    turn = pass_gate(std::move(turn), request, judge, teller, [&](ChatRequest again) {
      return answer_with_tools(chat, std::move(again), tools, limits, teller, "answer", false);
    });
  }
  show(turn, with_tokens, teller);
  return turn;
}

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
      teacher_(config_.embedder ? std::make_unique<VectorTeacher>(*config_.embedder) : nullptr),
      threads_(config_.max_runs) {
  if (teacher_) teacher_->hooks_for(folder_.routes()->router);  // begins now, before the first question
}

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

std::vector<tools::ToolSpec> Odo::skills() const {
  const std::vector<std::string> names = config_.skills ? config_.skills() : std::vector<std::string>();
  std::vector<tools::ToolSpec> specs = toolbox_.list();
  std::erase_if(specs, [&](const tools::ToolSpec& spec) { return !is_named(spec.name, names); });
  return specs;
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

RouteChoice Odo::choose(const std::shared_ptr<const Router>& router, const Job& job,
                        orchestrator::ChatService& chat) const {
  std::vector<RouteAttachment> attachments;
  for (const std::string& file : job.ask.attachments) {
    const bool is_type = file.find('/') != std::string::npos && file.find('.') == std::string::npos;
    attachments.push_back(is_type ? RouteAttachment{"", file} : RouteAttachment{file, ""});
  }
  RouteHooks hooks = teacher_ ? teacher_->hooks_for(router) : RouteHooks();
  if (config_.asks_model_for_routes) lend_model(chat, {job.request.owner, job.request.deadline}, hooks);
  return router->choose(orchestrator::question_of(job.request.messages), attachments, hooks);
}

tools::ToolContext Odo::context_of(const Job& job, const RunTeller& teller) {
  tools::ToolContext context;
  context.owner = job.request.memory.owner;
  context.key = job.ask.client;
  context.deadline = job.request.deadline;
  context.is_cancelled = [&teller] { return teller.is_cancelled(); };
  return context;
}

SearchHelp Odo::help_of(const Job& job, orchestrator::ChatService& chat, const Effort& effort) const {
  SearchHelp help;
  help.scorer = shelves_.scorer;
  help.model = &chat;
  help.expands = effort.expand.value_or(false);
  help.grades = effort.grade.value_or(false);
  help.owner = job.request.owner;
  help.cache_scope = job.request.cache_scope;
  return help;
}

// For an answer in doubt: what all collections of the one who asks say, where there are any.
std::function<void(ChatRequest&)> Odo::look_up_in_doubt(const Job& job, orchestrator::ChatService& chat,
                                                        const Effort& effort, Sources& sources,
                                                        RunTeller& teller) const {
  if (!effort.looks_in_doubt.value_or(false) || !shelves_.collections || !sources.empty()) return {};
  const float weight = effort.source_weight.value_or(kSourceWeight);
  return [this, question = orchestrator::question_of(job.request.messages), help = help_of(job, chat, effort),
          context = context_of(job, teller), weight, &sources, &teller](ChatRequest& request) {
    const auto there = shelves_.collections->list(context.key);
    if (!there || there->empty()) return;
    std::vector<FoundText> found;
    retrieve(shelves_, {}, question, help, context, teller, found);
    sources.put(sources.reserve(1), found);
    tell(found, weight, request);
  };
}

std::vector<FoundText> Odo::look_up(Job& job, orchestrator::ChatService& chat, const Route& route, const Mode* mode,
                                    const Effort& effort, RunTeller& teller) const {
  std::vector<FoundText> found;
  const std::string question = orchestrator::question_of(job.request.messages);
  const tools::ToolContext context = context_of(job, teller);
  const std::vector<std::string> collections =
      job.ask.collections ? *job.ask.collections : collections_there(shelves_, context.key, route.collections);
  const SearchHelp help = help_of(job, chat, effort);
  if (!collections.empty()) retrieve(shelves_, collections, question, help, context, teller, found);
  const bool by_route = route.searches && shelves_.web && (!mode || mode->may_search);
  if (job.ask.web.value_or(by_route)) {
    const bool is_deep = mode && mode->runs_pipeline;
    search_web(shelves_, is_deep ? web::kDeepSearch : web::kQuickSearch, question, help, context, teller, found);
  }
  tell(found, effort.source_weight.value_or(kSourceWeight), job.request);
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
  if (choice.route.empty()) choice = choose(set->router, job, chat);
  const Route& route = set->at_or_default(choice.route);
  teller.set_route(route.name);
  if (choice.why.size() > kMaxWhyBytes) choice.why = "a pattern of its file";
  teller.end(routing, State::done, route.name + ": " + choice.why, choice_detail(choice));

  const Wishes own = wishes_of(job.request);
  own.over(route.wishes).over(mode ? mode->wishes : Wishes()).apply_to(job.request);
  add_system(job.request, route.system_prompt);
  const Effort effort = job.ask.effort.over(route.effort);
  show_examples(config_.journal.get(), job.request.memory.owner, effort.few_shot.value_or(0), chat, teller,
                job.request);
  Sources sources(look_up(job, chat, route, mode, effort, teller));
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
  tools.sources = &sources;
  tools.tokens = effort.tool_tokens;
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
    if (is_plain || job.ask.entropy) {
      tools.doubt.emplace();
      tools.doubt->look_up = look_up_in_doubt(job, chat, effort, sources, teller);
    }
  }
  ModelTurn turn;
  if (is_pipeline) {
    turn = run_pipeline(chat, std::move(job.request), own, route, tools, config_.loop, teller);
  } else {
    JudgeParts parts;
    parts.chat = &chat;
    parts.prm = config_.prm;
    parts.box = &toolbox_;
    parts.context = context_of(job, teller);
    parts.runs_code = is_named("run_code", tools.names);
    const bool is_set = own.temperature || route.wishes.temperature;
    turn = answer_with_effort(chat, std::move(job.request), tools, config_.loop, effort, is_set, parts, teller);
  }

  turn.last.citations = sources.cited_in(turn.content);
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
