// eval_arms.cpp  Every stage of a run on and off: what it makes of accuracy, tokens and time, on tasks that are made here.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "eval_house.h"
#include "eval_stages.h"
#include "text/json.h"

namespace chimere::apps {
namespace {

using odo::SearchKind;
using orchestrator::ChatRequest;

constexpr const char* kOwner = "evaluation";
constexpr const char* kForm = "=> ";  // how the owner of the examples wants answers
constexpr const char* kShelf = "notes";
constexpr size_t kNotesInDocument = 4;

// One way to answer tasks of one kind.
struct Arm {
  const char* stage;
  std::string name;
  TaskKind kind;
  std::function<void(ChatRequest&, odo::Ask&, const EvalTask&)> set;
  bool wants_form = false;   // right is what has the form of the examples, too
  std::string against = {};  // the arm that it is compared with, task by task
};

// No tools: what the stage itself does is measured.
void without_tools(odo::Ask& ask) { ask.tools.emplace(); }

// Branches are drawn at the search's temperature, from the task's own seed.
void drawn(ChatRequest& request, float temperature) {
  request.sampling.temperature = temperature;
  request.seed = 1;
}

Arm search_arm(TaskKind kind, SearchKind search, int branches, int width, bool mends = true) {
  std::string name = std::string(task_name(kind)) + ": " + odo::search_name(search) + ", " + std::to_string(branches);
  if (search == SearchKind::dvts) name += " sub-trees of " + std::to_string(width);
  if (!mends) name += ", its sums as they are";
  return {"search", name, kind, [=](ChatRequest& request, odo::Ask& ask, const EvalTask&) {
            without_tools(ask);
            drawn(request, odo::kSearchTemperature);
            ask.effort.search = search;
            ask.effort.branches = branches;
            ask.effort.width = width;
            request.logprobs = !mends;  // who looks at tokens gets those of the model
          }};
}

void add_search_arms(std::vector<Arm>& arms) {
  for (const TaskKind kind : {TaskKind::problems, TaskKind::long_problems, TaskKind::sums}) {
    const std::string about = std::string(task_name(kind)) + ": ";
    arms.push_back({"search", about + "one answer", kind,
                    [](ChatRequest&, odo::Ask& ask, const EvalTask&) { without_tools(ask); }});
    arms.push_back(
        {"search", about + "one answer, drawn", kind, [](ChatRequest& request, odo::Ask& ask, const EvalTask&) {
           without_tools(ask);
           drawn(request, odo::kSearchTemperature);
           ask.entropy = false;
         }});
    // Of the same tokens stand beside each other: a sub-tree of w costs about what w answers cost.
    for (const int n : {2, 4, 8}) {
      arms.push_back(search_arm(kind, SearchKind::majority, n, 1));
      const std::string majority = arms.back().name;
      arms.push_back(search_arm(kind, SearchKind::best_of, n, 1));
      arms.back().against = majority;
      for (const bool mends : {false, true}) {
        arms.push_back(search_arm(kind, SearchKind::dvts, n / 2, 2, mends));
        arms.back().against = majority;
      }
    }
  }
}

void add_gate_arms(std::vector<Arm>& arms) {
  for (const TaskKind kind : {TaskKind::problems, TaskKind::long_problems, TaskKind::sums}) {
    for (const bool gate : {false, true}) {
      arms.push_back({"gate", std::string(task_name(kind)) + (gate ? ": gate" : ": no gate"), kind,
                      [gate](ChatRequest&, odo::Ask& ask, const EvalTask&) {
                        without_tools(ask);
                        ask.effort.gate = gate;
                      }});
    }
  }
}

void add_other_arms(std::vector<Arm>& arms) {
  for (const bool calculates : {false, true}) {
    arms.push_back({"calculate", calculates ? "sums: computed before" : "sums: calculator to call", TaskKind::sums,
                    [calculates](ChatRequest&, odo::Ask& ask, const EvalTask&) { ask.calculates = calculates; }});
  }
  for (const TaskKind kind : {TaskKind::short_sums, TaskKind::problems, TaskKind::facts}) {
    for (const bool weighs : {false, true}) {
      arms.push_back({"entropy", std::string(task_name(kind)) + (weighs ? ": thinks in doubt" : ": thinks always"),
                      kind, [weighs](ChatRequest&, odo::Ask& ask, const EvalTask&) {
                        if (!weighs) ask.entropy = false;
                      }});
    }
  }
  for (const int n : {0, 1, 2, 4}) {
    const std::string name = n == 0 ? "no examples" : std::to_string(n) + (n == 1 ? " example" : " examples");
    const auto set = [n](ChatRequest& request, odo::Ask& ask, const EvalTask&) {
      request.memory.owner = kOwner;
      request.memory.notes = 0;
      ask.effort.few_shot = n;
    };
    arms.push_back({"few_shot", "facts in the owner's form: " + name, TaskKind::facts, set, true});
    arms.push_back({"few_shot", "facts in any form: " + name, TaskKind::facts, set, false});
  }
  for (const float weight : {0.0f, 0.1f, 0.25f, 0.5f, 1.0f}) {
    char name[64];
    std::snprintf(name, sizeof name, "notes: n-grams of weight %g", static_cast<double>(weight));
    arms.push_back(
        {"sources", name, TaskKind::notes, [weight](ChatRequest& request, odo::Ask& ask, const EvalTask& task) {
           without_tools(ask);
           for (const std::string& note : task.notes) request.looked_up.push_back({"a note", note, weight});
         }});
  }
}

// Notes of the collection, and capitals, of which it says nothing.
void add_retrieval_arms(std::vector<Arm>& arms) {
  struct Setting {
    const char* name;
    bool looks = false, grades = false, in_doubt = false, by_tool = false;
  };
  constexpr std::array<Setting, 5> kSettings = {{{"no collections"},
                                                 {"collection", true},
                                                 {"collection, graded", true, true},
                                                 {"looked up in doubt", false, false, true},
                                                 {"`retrieve` to call", false, false, false, true}}};
  for (const TaskKind kind : {TaskKind::documents, TaskKind::facts}) {
    for (const Setting& setting : kSettings) {
      arms.push_back({"retrieval", std::string(task_name(kind)) + ": " + setting.name, kind,
                      [setting](ChatRequest&, odo::Ask& ask, const EvalTask&) {
                        ask.client = kOwner;
                        ask.collections.emplace();
                        if (setting.looks) ask.collections->emplace_back(kShelf);
                        ask.effort.grade = setting.grades;
                        ask.effort.looks_in_doubt = setting.in_doubt;
                        ask.tools.emplace();
                        if (setting.by_tool) ask.tools->emplace_back("retrieve");
                      },
                      false, std::string(task_name(kind)) + ": " + kSettings[0].name});
    }
  }
}

std::vector<Arm> all_arms() {
  std::vector<Arm> arms;
  add_other_arms(arms);
  add_retrieval_arms(arms);
  add_gate_arms(arms);
  add_search_arms(arms);
  return arms;
}

// Of a search: whether one of its branches is right, chosen or not.
bool has_right_branch(const orchestrator::ChatChunk& last, const EvalTask& task) {
  if (!last.run) return false;
  for (const orchestrator::StepReport& step : last.run->steps) {
    if (step.stage != "search") continue;
    const auto detail = parse_json(step.detail);
    if (!detail || !detail->contains("branches")) continue;
    for (const Json& branch : (*detail)["branches"]) {
      if (branch.contains("text") && is_right(branch["text"].get<std::string>(), task)) return true;
    }
  }
  return false;
}

// {"arm", "question", "expected", "right", "content", "tokens", "steps": [{"stage", "about", "detail"}]}
std::string dump_line(const Arm& arm, const EvalTask& task, bool right, const EvalAnswer& answer) {
  Json line = {{"arm", arm.name},       {"question", task.text},     {"expected", task.answer},
               {"right", right},        {"content", answer.content}, {"tokens", answer.last.usage.completion_tokens},
               {"steps", Json::array()}};
  for (const orchestrator::StepReport& step :
       answer.last.run ? answer.last.run->steps : std::vector<orchestrator::StepReport>()) {
    const auto detail = parse_json(step.detail);
    line["steps"].push_back({{"stage", step.stage}, {"about", step.about}, {"detail", detail ? *detail : Json()}});
  }
  return to_text(line);
}

// `measured`: the arms before it, by name; this one is added. `dump`: null: nothing is written.
Status measure(EvalHouse& house, const Arm& arm, const EvalOptions& o, std::map<std::string, EvalTally>& measured,
               std::ofstream* dump) {
  EvalTally tally;
  int n_reached = 0;
  for (const EvalTask& task : made_tasks(arm.kind, o.seed, o.n)) {
    odo::Ask ask;
    ask.model = "odo";
    ChatRequest request = asked(house, task.text, std::nullopt);
    arm.set(request, ask, task);
    TRY_ASSIGN(const EvalAnswer answer, answer_of(house, std::move(request), std::move(ask)));
    const bool has_form = !arm.wants_form || answer.content.starts_with(kForm);
    tally.add(has_form && is_right(answer.content, task), answer.last.usage.completion_tokens, answer.ms);
    n_reached += has_right_branch(answer.last, task);
    if (dump) *dump << dump_line(arm, task, tally.answers.back().chosen == 1, answer) << '\n';
  }
  tally.print_row(std::string(arm.stage) + " | " + arm.name);
  const auto other = measured.find(arm.against);
  std::printf(" %s |", other == measured.end() ? "" : tally.more_than(other->second).c_str());
  if (n_reached > 0) std::printf(" %.1f %%", 100.0 * n_reached / o.n);
  std::printf(" |\n");
  std::fflush(stdout);
  measured[arm.name] = std::move(tally);
  return Ok{};
}

// All notes of the tasks, in no order, some of them in a document.
Status store_notes(EvalHouse& house, const EvalOptions& o) {
  std::vector<std::string> notes;
  for (const EvalTask& task : made_tasks(TaskKind::documents, o.seed, o.n)) {
    notes.insert(notes.end(), task.notes.begin(), task.notes.end());
  }
  std::mt19937 random(o.seed);
  for (size_t i = notes.size(); i > 1; --i) std::swap(notes[i - 1], notes[random() % i]);
  for (size_t i = 0; i < notes.size(); i += kNotesInDocument) {
    std::string text;
    for (size_t k = i; k < std::min(notes.size(), i + kNotesInDocument); ++k) text += notes[k] + "\n\n";
    retrieval::AddCall call;
    call.owner = kOwner;
    call.collection = kShelf;
    call.name = "notes-" + std::to_string(i / kNotesInDocument) + ".md";
    call.bytes = text;
    TRY(house.collections->add(call));
  }
  return Ok{};
}

// Answers that their owner holds for right, all in his form.
Status accept_answers(store::Journal& journal, uint32_t seed) {
  TRY(journal.agree(kOwner, true));
  int id = 0;
  for (const EvalTask& task : made_tasks(TaskKind::facts, seed + 1, 64)) {
    store::JournalAnswer answer;
    answer.request_id = "accepted-" + std::to_string(++id);
    answer.owner = kOwner;
    answer.created = static_cast<int64_t>(std::time(nullptr));
    answer.messages.emplace_back();
    answer.messages.back().role = "user";
    answer.messages.back().content = task.text;
    answer.answer = kForm + task.answer + ".";
    const std::string request_id = answer.request_id;
    journal.add(std::move(answer));
    store::Feedback feedback;
    feedback.kind = store::FeedbackKind::thumb_up;
    TRY(journal.give(kOwner, request_id, feedback));
  }
  return Ok{};
}

// A journal and a database that are gone with it.
class ScratchFolder {
 public:
  ScratchFolder() : folder_(std::filesystem::temp_directory_path() / ("chimere-eval-" + std::to_string(getpid()))) {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const char* name) const { return (folder_ / name).string(); }

 private:
  const std::filesystem::path folder_;
};

Status run_arms(const EvalOptions& o, const std::string& stage) {
  const ScratchFolder scratch;
  TRY_ASSIGN(const std::shared_ptr<store::Journal> journal,
             store::Journal::open(scratch.file("journal.db"), store::Journal::Consent::ask));
  TRY(accept_answers(*journal, o.seed));
  const bool has_shelf = stage.empty() || stage == "retrieval";
  TRY_ASSIGN(const auto house, open_house(o, journal, has_shelf ? scratch.file("collections.db") : ""));
  if (has_shelf) TRY(store_notes(*house, o));
  std::printf(
      "| stage | %d tasks of seed %u | right (95 %%) | tokens | ms | more (95 %%) | a branch is right |\n"
      "|---|---|---|---|---|---|---|\n",
      o.n, o.seed);
  std::optional<std::ofstream> dump;
  if (!o.dump.empty()) dump.emplace(o.dump);
  std::map<std::string, EvalTally> measured;
  for (const Arm& arm : all_arms()) {
    const bool is_meant = (stage.empty() || stage == arm.stage) && arm.name.find(o.arms) != std::string::npos;
    if (is_meant) TRY(measure(*house, arm, o, measured, dump ? &*dump : nullptr));
  }
  if (dump && !dump->flush()) return Error{Code::io, o.dump + " can not be written"};
  return Ok{};
}

}  // namespace

Status eval_search(const EvalOptions& o) { return run_arms(o, "search"); }
Status eval_gate(const EvalOptions& o) { return run_arms(o, "gate"); }
Status eval_few_shot(const EvalOptions& o) { return run_arms(o, "few_shot"); }
Status eval_sources(const EvalOptions& o) { return run_arms(o, "sources"); }
Status eval_retrieval(const EvalOptions& o) { return run_arms(o, "retrieval"); }

Status eval_all(const EvalOptions& o) {
  // Routes are compared with questions of people, which are not part of the program.
  if (!o.questions.empty()) {
    TRY(eval_routing(o));
    std::printf("\n");
  }
  return run_arms(o, "");
}

}  // namespace chimere::apps
