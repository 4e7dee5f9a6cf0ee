#include "improve/job.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "improve/content_hash.h"
#include "improve/job_state.h"
#include "retrieval/words.h"

namespace chimere::improve {
namespace {

constexpr int64_t kAttemptDays = 30;  // tries of before that count for nothing any more
constexpr int64_t kDaySeconds = 86'400;
constexpr int kGuardAnswerTokens = 96;

int64_t now_seconds() { return static_cast<int64_t>(std::time(nullptr)); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool is_result(const RunRecord& run) { return run.state == "proven" || run.state == "refused"; }

// What a job would be made from: the same text, the same job.
std::string input_of(const JobState& state, const Manifest& manifest) {
  std::string text =
      state.run.slot.kind + "\n" + state.run.slot.route + "\n" + in_use_text(manifest, state.run.slot.owner) + "\n";
  for (const auto* side : {&state.examples.train, &state.examples.held_out}) {
    for (const TaughtAnswer& example : *side) {
      text += std::to_string(example.id) + " " + content_hash(example.wanted.shown()) +
              (example.is_held_out ? "h" : "t") + "\n";
    }
  }
  if (!state.tools.given.empty()) text += content_hash(state.tools.given) + "\n";
  return content_hash(text).substr(0, 32);
}

void use_route(Examples& examples, const std::string& route) {
  const auto is_other = [&](const TaughtAnswer& example) { return example.route != route; };
  std::erase_if(examples.train, is_other);
  std::erase_if(examples.held_out, is_other);
}

size_t n_conversations(const std::vector<TaughtAnswer>& examples) {
  std::vector<std::string> names;
  for (const TaughtAnswer& example : examples) names.push_back(example.conversation);
  std::sort(names.begin(), names.end());
  return static_cast<size_t>(std::unique(names.begin(), names.end()) - names.begin());
}

double sum_of(const std::vector<Difference>& differences) {
  double sum = 0;
  for (const double value : grouped(differences)) sum += value;
  return sum;
}

// `gained`: over having neither of them.
Status compare_with_replaced(JobState& state, const Candidate& candidate, const std::vector<Difference>& gained) {
  constexpr double kMayLose = 0.25;  // a part of the gain
  TRY_ASSIGN(const auto differences, state.differences("in use", *candidate.replaced, candidate.name, candidate.after,
                                                       state.examples.held_out));
  if (sum_of(differences) >= -kMayLose * sum_of(gained)) return Ok{};
  state.run.verdict.is_proven = false;
  state.run.verdict.reason = "what is in use gains more than that: expected three quarters of its gain at least";
  return Ok{};
}

// A kind that becomes an artefact if it is proven.
Status make_and_prove(JobState& state) {
  const JobTools& tools = state.tools;
  if (state.run.slot.kind == "thinking") return make_and_prove_thoughts(state);
  RunRecord& run = state.run;
  Result<Candidate> made = !tools.given.empty()          ? take_given(state)
                           : run.slot.kind == "prompts"  ? make_prompt(state)
                           : run.slot.kind == "lora"     ? make_lora(state)
                           : run.slot.kind == "closing"  ? make_closing(state)
                           : run.slot.kind == "words"    ? make_words(state)
                           : run.slot.kind == "examples" ? make_examples(state)
                                                         : make_engram(state);
  if (!made) return made.error();
  const Candidate& candidate = *made;
  run.about = candidate.about;
  if (candidate.waits) {
    run.state = "skipped";
    run.problem = candidate.about;
    return Ok{};
  }
  if (candidate.bytes.empty()) {
    run.state = "refused";
    run.verdict.reason = candidate.about;
    return Ok{};
  }
  TRY_ASSIGN(run.artefact, tools.store.put(candidate.bytes));
  TRY_ASSIGN(const auto differences,
             state.differences("before", candidate.before, candidate.name, candidate.after, state.examples.held_out));
  TRY_ASSIGN(const auto guards, state.guard_figures("before", candidate.before, candidate.name, candidate.after));
  run.verdict = judge(differences, guards, run.verdict.attempt, tools.rules);
  if (run.verdict.is_proven && candidate.replaced) TRY(compare_with_replaced(state, candidate, differences));
  run.state = run.verdict.is_proven ? "proven" : "refused";
  return Ok{};
}

Status promote(ArtefactStore& store, const RunRecord& run) {
  return store.update([&](Manifest& manifest) -> Status {
    manifest.promote(run.slot, {run.artefact, now_seconds(), run.id});
    return Ok{};
  });
}

}  // namespace

const std::vector<std::string>& job_kinds() {
  static const std::vector<std::string> kKinds = {"scores", "closing", "words",   "examples",
                                                  "engram", "lora",    "prompts", "thinking"};
  return kKinds;
}

std::string kind_names() {
  std::string names;
  for (const std::string& kind : job_kinds()) names += (names.empty() ? "" : ", ") + kind;
  return names;
}

Status promote_run(ArtefactStore& store, const std::string& id, bool anyway) {
  TRY_ASSIGN(const RunRecord run, store.run(id));
  if (run.artefact.empty()) return Error{Code::invalid_argument, "run " + id + " has made nothing that could be used"};
  if (run.state != "proven" && !anyway) {
    return Error{Code::invalid_argument,
                 "run " + id + " is not proven: " + (run.verdict.reason.empty() ? run.state : run.verdict.reason)};
  }
  TRY(store.read(run.artefact));
  return promote(store, run);
}

double package_joules() {
  std::ifstream in("/sys/class/powercap/intel-rapl:0/energy_uj");
  double microjoules = 0;
  return in >> microjoules ? microjoules / 1e6 : -1;
}

Status Remembered::open(const std::string& path) {
  path_ = path;
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    const size_t tab = line.rfind('\t');
    // A line that was cut off by the end of its writer has no newline, or no number.
    if (tab == std::string::npos || in.eof()) continue;
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + tab + 1, &end);
    if (*end == '\0' && end != line.c_str() + tab + 1) values_[line.substr(0, tab)] = value;
  }
  out_.open(path, std::ios::app);
  if (!out_) return Error{Code::io, path + ": can not be written"};
  out_ << "\n";
  return Ok{};
}

std::optional<double> Remembered::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional<double>(found->second);
}

Status Remembered::put(const std::string& key, double value) {
  char figure[40];
  std::snprintf(figure, sizeof figure, "%.17g", value);
  out_ << key << '\t' << figure << '\n' << std::flush;
  values_[key] = value;
  return out_ ? Status{Ok{}} : Status{Error{Code::io, path_ + ": can not be written"}};
}

void Remembered::remove() {
  std::error_code error;
  out_.close();
  if (!path_.empty()) std::filesystem::remove(path_, error);
}

namespace {

Error lost_lock() { return {Code::cancelled, "the journal's database was lost: the next one goes on"}; }

}  // namespace

Status JobState::step() {
  ++run.done;
  const auto now = std::chrono::steady_clock::now();
  // A process that is stopped gets no processor time, while the clock goes on: its time is the smaller of the two.
  const double cpu = cpu_seconds(), clock = std::chrono::duration<double>(now - looked).count();
  run.seconds += std::min(clock, std::max(0.0, cpu - cpu_looked));
  looked = now;
  run.cpu_seconds = cpu_looked = cpu;
  const double joules = package_joules();
  if (joules >= joules_began && joules_began >= 0) run.joules = joules - joules_began;
  if (now - told > std::chrono::seconds(1)) {
    told = now;
    TRY(tools.store.save_run(run));
    tools.tell(run);
  }
  if (tools.must_end()) return Error{Code::cancelled, "it was told to end"};
  if (!lock.is_held()) return lost_lock();
  if (run.seconds > tools.limits.seconds) {
    return Error{Code::cancelled,
                 "its time of " + std::to_string(static_cast<int64_t>(tools.limits.seconds)) + " s is over"};
  }
  if (tools.limits.joules > 0 && run.joules > tools.limits.joules) return Error{Code::cancelled, "its energy is spent"};
  return Ok{};
}

Asked guard_question(const GuardPair& pair) {
  Asked asked;
  asked.messages.emplace_back();
  asked.messages.back().role = "user";
  asked.messages.back().content = pair.question;
  return asked;
}

Wanted guard_answer(const GuardPair& pair) { return {pair.answer, {}, false}; }

Result<std::optional<double>> JobState::figure(const std::string& key,
                                               const std::function<Result<std::optional<double>>()>& compute) {
  if (const auto known = remembered.find(key)) {
    skip_step();
    return std::isnan(*known) ? std::optional<double>{} : known;
  }
  TRY_ASSIGN(const auto value, compute());
  TRY(remembered.put(key, value.value_or(NAN)));
  TRY(step());
  return value;
}

Result<std::optional<double>> JobState::score(const std::string& arm_name, const Arm& arm,
                                              const std::string& example_name, const Asked& asked,
                                              const Wanted& wanted) {
  return figure(arm_name + " " + example_name, [&] { return bench->score(asked, wanted, run.slot.owner, arm); });
}

Result<std::vector<Difference>> JobState::differences(const std::string& name_a, const Arm& a,
                                                      const std::string& name_b, const Arm& b,
                                                      const std::vector<TaughtAnswer>& of) {
  std::vector<Difference> all;
  for (const TaughtAnswer& example : of) {
    const std::string name = "e" + std::to_string(example.id);
    TRY_ASSIGN(const auto before, score(name_a, a, name, example.asked, example.wanted));
    TRY_ASSIGN(const auto after, score(name_b, b, name, example.asked, example.wanted));
    if (before && after) all.push_back({example.conversation, *after - *before});
  }
  return Result<std::vector<Difference>>{std::move(all)};
}

Result<std::vector<GuardFigures>> JobState::guard_figures(const std::string& name_a, const Arm& a,
                                                          const std::string& name_b, const Arm& b) {
  const ProofRules& rules = tools.rules;
  std::vector<GuardFigures> guards{{"general answers", {}, rules.guard_margin},
                                   {"answers that end", {}, rules.ending_margin}};
  if (!tools.general.empty()) guards.push_back({"general text", {}, rules.guard_margin});
  guards.push_back({"what answers tell", {}, rules.telling_margin});
  // What an arm says is looked at twice.
  std::map<std::string, Answered> said_by;
  const auto say = [&](const std::string& arm_name, const Arm& arm, size_t i) -> Result<Answered> {
    const std::string key = arm_name + " " + std::to_string(i);
    if (const auto found = said_by.find(key); found != said_by.end()) return found->second;
    TRY_ASSIGN(Answered said, bench->answer(guard_question(tools.guard[i]), run.slot.owner, arm, kGuardAnswerTokens));
    return said_by[key] = std::move(said);
  };
  // The difference of the arms in one figure.
  const auto compare =
      [&](GuardFigures& guard, const std::string& name,
          const std::function<Result<std::optional<double>>(const std::string&, const Arm&)>& compute) -> Status {
    TRY_ASSIGN(const auto before, figure(name_a + " " + name, [&] { return compute(name_a, a); }));
    TRY_ASSIGN(const auto after, figure(name_b + " " + name, [&] { return compute(name_b, b); }));
    if (before && after) guard.differences.push_back(*after - *before);
    return Ok{};
  };
  for (size_t i = 0; i < tools.guard.size(); ++i) {
    const Asked asked = guard_question(tools.guard[i]);
    TRY(compare(guards[0], "g" + std::to_string(i), [&](const std::string&, const Arm& arm) {
      return bench->score(asked, guard_answer(tools.guard[i]), run.slot.owner, arm);
    }));
    // Those that an adapter was not told to keep.
    if (i % 2 == 0) continue;
    using Figure = Result<std::optional<double>>;
    TRY(compare(guards[1], "n" + std::to_string(i), [&](const std::string& arm_name, const Arm& arm) -> Figure {
      TRY_ASSIGN(const Answered said, say(arm_name, arm, i));
      return std::optional<double>{said.has_ended ? 1.0 : 0.0};
    }));
    TRY(compare(guards.back(), "k" + std::to_string(i), [&](const std::string& arm_name, const Arm& arm) -> Figure {
      TRY_ASSIGN(const Answered said, say(arm_name, arm, i));
      return std::optional<double>{told_part(tools.guard[i], said.text)};
    }));
  }
  for (size_t i = 0; i < tools.general.size(); ++i) {
    TRY(compare(guards[2], "t" + std::to_string(i),
                [&](const std::string&, const Arm& arm) -> Result<std::optional<double>> {
                  TRY_ASSIGN(const std::vector<float> logprobs, bench->score_text(tools.general[i], arm));
                  if (logprobs.empty()) return std::optional<double>{};
                  double sum = 0;
                  for (const float logprob : logprobs) sum += logprob;
                  return std::optional<double>{sum / static_cast<double>(logprobs.size())};
                }));
  }
  return Result<std::vector<GuardFigures>>{std::move(guards)};
}

double told_part(const GuardPair& pair, const std::string& said) {
  const auto terms_of = [](const std::string& text) {
    std::set<uint64_t> terms;
    for (const retrieval::Word& word : retrieval::words_of(text)) {
      if (!retrieval::is_small_word(word.text)) terms.insert(word.term);
    }
    return terms;
  };
  std::set<uint64_t> told = terms_of(pair.answer);
  const std::set<uint64_t> all = told;
  for (const uint64_t term : terms_of(pair.question)) told.erase(term);
  if (told.empty()) told = all;
  if (told.empty()) return 0;
  const std::set<uint64_t> found = terms_of(said);
  const auto n = std::count_if(told.begin(), told.end(), [&](uint64_t term) { return found.count(term) > 0; });
  return static_cast<double>(n) / static_cast<double>(told.size());
}

Result<RunRecord> run_job(const JobTools& tools, const Slot& slot) {
  const auto& kinds = job_kinds();
  if (std::find(kinds.begin(), kinds.end(), slot.kind) == kinds.end()) {
    return Error{Code::invalid_argument, "kind: expected one of " + kind_names() + ", found '" + slot.kind + "'"};
  }
  TRY_ASSIGN(auto of_replicas, tools.journal.lock_runs(tools.patience));
  TRY_ASSIGN(const auto of_folder, tools.store.lock_runs());
  if (!of_replicas || !of_folder) return Error{Code::exhausted, "another run is under way: one runs at a time"};
  JobState state{tools, *of_replicas, {}, {}, nullptr, {}};
  RunRecord& run = state.run;
  run.slot = slot;
  run.created = now_seconds();
  TRY_ASSIGN(const auto earlier, tools.store.runs(slot.owner));
  int attempt = 1;
  for (RunRecord old : earlier) {
    if (!(old.slot == slot)) continue;
    if (is_result(old) && old.created > run.created - kAttemptDays * kDaySeconds) ++attempt;
    // Whoever left it so has ended: we hold the lock. What it has computed is found by its input.
    if (!old.is_over()) {
      old.state = "stopped";
      old.problem = "it ended in the middle; the next one goes on";
      old.ended = run.created;
      TRY(tools.store.save_run(old));
    }
  }
  run.verdict.attempt = attempt;
  const bool scores = slot.kind == "scores";
  TRY_ASSIGN(const auto manifest, tools.store.manifest());
  if (!scores) {
    TRY_ASSIGN(const auto answers, all_answers(tools.journal, slot.owner, kMaxTaught));
    state.examples = examples_from(slot.owner, answers);
    if (!answers.empty()) run.last_answer = answers.front().id;
    if (slot.kind == "prompts") use_route(state.examples, slot.route);
    run.input = input_of(state, *manifest);
    run.learned_from = state.examples.conversations();
    run.examples = state.examples.train.size();
    run.held_out = state.examples.held_out.size();
    run.duplicates = state.examples.duplicates;
    run.foreign = state.examples.foreign;
    run.state = "skipped";
    if (state.examples.train.empty() || n_conversations(state.examples.held_out) < tools.rules.min_examples) {
      run.problem = "there is too little to learn from and to prove with: " + std::to_string(run.examples) +
                    " accepted answers to learn from, " + std::to_string(n_conversations(state.examples.held_out)) +
                    " conversations of at least " + std::to_string(tools.rules.min_examples) + " to prove with";
      return Result<RunRecord>{std::move(run)};
    }
    for (const RunRecord& old : earlier) {
      if (!(old.slot == slot) || !is_result(old) || old.input != run.input) continue;
      run.problem = "nothing is new since " + old.id;
      return Result<RunRecord>{std::move(run)};
    }
  } else {
    TRY_ASSIGN(const auto waiting, tools.journal.unscored(slot.owner, 1));
    if (waiting.empty()) {
      run.state = "skipped";
      run.problem = "every answer has a score";
      return Result<RunRecord>{std::move(run)};
    }
  }
  run.state = "running";
  run.id = new_run_id(slot, run.created);
  run.total = 2 * (state.examples.held_out.size() + 2 * tools.guard.size() + tools.general.size());
  TRY(tools.store.save_run(run));
  const auto work = [&]() -> Status {
    TRY_ASSIGN(state.bench, tools.bench());
    run.model = state.bench->name();
    if (scores) return score_answers(state);
    std::string figures = run.input + std::to_string(state.bench->fingerprint());
    for (const GuardPair& pair : tools.guard) figures += "\n" + pair.question + "\n" + pair.answer;
    for (const std::string& passage : tools.general) figures += "\n" + passage;
    const std::string name = content_hash(figures).substr(0, 32);
    TRY(state.remembered.open(tools.store.work_file(name + ".tsv")));
    return make_and_prove(state);
  };
  Status done = work();
  // Another replica may be at it by now.
  if (done && !of_replicas->is_held(true)) done = lost_lock();
  run.ended = now_seconds();
  if (!done) {
    run.state = done.error().code == Code::cancelled ? "stopped" : "failed";
    run.problem = done.error().message;
  } else {
    state.remembered.remove();
    // Before its record says that it is in use.
    if (run.state == "proven" && tools.promotes) TRY(promote(tools.store, run));
  }
  run.total = std::max(run.total, run.done);
  TRY(tools.store.save_run(run));
  tools.tell(run);
  return Result<RunRecord>{std::move(run)};
}

}  // namespace chimere::improve
