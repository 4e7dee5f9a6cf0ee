// eval_arms.cpp  Every stage of a run on and off: what it makes of accuracy, tokens and time, on tasks that are made here.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval_house.h"
#include "eval_stages.h"

namespace chimere::apps {
namespace {

using odo::SearchKind;
using orchestrator::ChatRequest;

constexpr uint32_t kArmsSeed = 2027;  // no other stage was fitted on it
constexpr const char* kOwner = "evaluation";
constexpr const char* kForm = "=> ";  // how the owner of the examples wants answers

// One way to answer tasks of one kind.
struct Arm {
  const char* stage;
  std::string name;
  TaskKind kind;
  std::function<void(ChatRequest&, odo::Ask&, const EvalTask&)> set;
  bool wants_form = false;  // right is what has the form of the examples, too
};

// No tools: what the stage itself does is measured.
void without_tools(odo::Ask& ask) { ask.tools.emplace(); }

// Branches are drawn at the search's temperature, from the task's own seed.
void drawn(ChatRequest& request, float temperature) {
  request.sampling.temperature = temperature;
  request.seed = 1;
}

Arm search_arm(TaskKind kind, SearchKind search, int branches, int width) {
  std::string name = std::string(task_name(kind)) + ": " + odo::search_name(search) + ", " + std::to_string(branches);
  if (search == SearchKind::dvts) name += " sub-trees of " + std::to_string(width);
  return {"search", name, kind, [=](ChatRequest& request, odo::Ask& ask, const EvalTask&) {
            without_tools(ask);
            drawn(request, odo::kSearchTemperature);
            ask.effort.search = search;
            ask.effort.branches = branches;
            ask.effort.width = width;
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
      arms.push_back(search_arm(kind, SearchKind::best_of, n, 1));
      arms.push_back(search_arm(kind, SearchKind::dvts, n / 2, 2));
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

std::vector<Arm> all_arms() {
  std::vector<Arm> arms;
  add_other_arms(arms);
  add_gate_arms(arms);
  add_search_arms(arms);
  return arms;
}

Status measure(EvalHouse& house, const Arm& arm, int n) {
  EvalTally tally;
  for (const EvalTask& task : made_tasks(arm.kind, kArmsSeed, n)) {
    odo::Ask ask;
    ask.model = "odo";
    ChatRequest request = asked(house, task.text, std::nullopt);
    arm.set(request, ask, task);
    TRY_ASSIGN(const EvalAnswer answer, answer_of(house, std::move(request), std::move(ask)));
    const bool has_form = !arm.wants_form || answer.content.starts_with(kForm);
    tally.add(has_form && is_right(answer.content, task), answer.last.usage.completion_tokens, answer.ms);
  }
  tally.print_row(std::string(arm.stage) + " | " + arm.name);
  std::printf("\n");
  std::fflush(stdout);
  return Ok{};
}

// Answers that their owner holds for right, all in his form.
Status accept_answers(store::Journal& journal) {
  TRY(journal.agree(kOwner, true));
  int id = 0;
  for (const EvalTask& task : made_tasks(TaskKind::facts, kArmsSeed + 1, 64)) {
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

// A journal that is gone with it.
class ScratchJournal {
 public:
  ScratchJournal() : folder_(std::filesystem::temp_directory_path() / ("chimere-eval-" + std::to_string(getpid()))) {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
  }
  ~ScratchJournal() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ScratchJournal(const ScratchJournal&) = delete;
  ScratchJournal& operator=(const ScratchJournal&) = delete;

  Result<std::shared_ptr<store::Journal>> open() const {
    return store::Journal::open((folder_ / "journal.db").string(), store::Journal::Consent::ask);
  }

 private:
  const std::filesystem::path folder_;
};

Status run_arms(const EvalOptions& o, const std::string& stage) {
  const ScratchJournal scratch;
  TRY_ASSIGN(const auto journal, scratch.open());
  TRY(accept_answers(*journal));
  TRY_ASSIGN(const auto house, open_house(o, journal));
  std::printf("| stage | %d tasks | right (95 %%) | tokens | ms |\n|---|---|---|---|---|\n", o.n);
  for (const Arm& arm : all_arms()) {
    if (stage.empty() || stage == arm.stage) TRY(measure(*house, arm, o.n));
  }
  return Ok{};
}

}  // namespace

Status eval_search(const EvalOptions& o) { return run_arms(o, "search"); }
Status eval_gate(const EvalOptions& o) { return run_arms(o, "gate"); }
Status eval_few_shot(const EvalOptions& o) { return run_arms(o, "few_shot"); }
Status eval_sources(const EvalOptions& o) { return run_arms(o, "sources"); }

Status eval_all(const EvalOptions& o) {
  // Routes are compared with questions of people, which are not part of the program.
  if (!o.questions.empty()) {
    TRY(eval_routing(o));
    std::printf("\n");
  }
  return run_arms(o, "");
}

}  // namespace chimere::apps
