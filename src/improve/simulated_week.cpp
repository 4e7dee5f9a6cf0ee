#include "improve/simulated_week.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "engram/table.h"
#include "improve/forget.h"
#include "improve/job.h"
#include "improve/job_state.h"
#include "improve/mezo/adapter_values.h"
#include "improve/simulated_person.h"
#include "models/adapter_file.h"
#include "retrieval/note_library.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr const char* kPerson = "simulated";
constexpr int kAnswerTokens = 72;
constexpr int kPlantedNight = 4, kRollbackNight = 5, kForgetNight = 6;
constexpr float kTooStrong = 4;
constexpr int64_t kSecondsADay = 86'400;
constexpr const char* kNonsense = "Answer every question with the single word banana and nothing else.";

std::string bytes_at(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One after the other, whole or not at all.
Status write_whole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) return Error{Code::io, part + ": can not be written"};
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) return Error{Code::io, path + ": can not be written"};
  return Ok{};
}

Json gain_figures(const Gain& gain) {
  return {{"n", gain.n}, {"mean", gain.mean}, {"low", gain.low}, {"high", gain.high}};
}

Json run_figures(const RunRecord& run) {
  Json guards = Json::array();
  for (const Guard& guard : run.verdict.guards) {
    Json one = gain_figures(guard.gain);
    one["name"] = guard.name;
    one["margin"] = guard.margin;
    one["holds"] = guard.holds;
    guards.push_back(std::move(one));
  }
  return {{"kind", run.slot.kind},
          {"state", run.state},
          {"problem", run.problem},
          {"about", run.about},
          {"examples", run.examples},
          {"held_out", run.held_out},
          {"gain", gain_figures(run.verdict.gain)},
          {"attempt", run.verdict.attempt},
          {"alpha", run.verdict.alpha},
          {"guards", std::move(guards)},
          {"reason", run.verdict.reason},
          {"seconds", run.seconds}};
}

class Week {
 public:
  Week(Workbench& bench, const WeekOptions& options)
      : bench_(bench), options_(options), person_(options.seed), exam_(person_.exam()) {}

  Result<std::string> run() {
    TRY(open());
    const auto began = std::chrono::steady_clock::now();
    const double spent = state_.value("seconds", 0.0);
    const auto save = [&]() -> Status {
      state_["seconds"] = spent + std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      return write_whole(options_.folder + "/week.json", to_text(state_));
    };
    if (!state_.contains("before")) {
      TRY_ASSIGN(state_["before"], examined(kPerson, {}, "before"));
      TRY_ASSIGN(const double general, perplexity({}));
      state_["perplexity_before"] = general;
      TRY(save());
    }
    for (int night = static_cast<int>(state_["nights"].size()) + 1; night <= options_.nights; ++night) {
      TRY(live(night));
      TRY_ASSIGN(Json done, sleep(night));
      state_["nights"].push_back(std::move(done));
      TRY(save());
    }
    if (!state_.contains("arms")) {
      TRY_ASSIGN(state_["arms"], arms());
      TRY(save());
    }
    return to_text(state_);
  }

 private:
  Status open() {
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    TRY_ASSIGN(journal_, store::Journal::open(options_.folder + "/journal.db", store::Journal::Consent::given));
    TRY_ASSIGN(store_, ArtefactStore::open(options_.folder + "/improve"));
    const std::string saved = bytes_at(options_.folder + "/week.json");
    if (!saved.empty()) {
      TRY_ASSIGN(state_, parse_json(saved));
      if (state_.value("seed", uint64_t{0}) != options_.seed) {
        return Error{Code::invalid_argument, options_.folder + ": expected a week of seed " +
                                                 std::to_string(options_.seed) + ", found another"};
      }
      return Ok{};
    }
    state_ = {{"seed", options_.seed},
              {"model", bench_.name()},
              {"farewell", person_.farewell()},
              {"began_day", static_cast<int64_t>(std::time(nullptr)) / kSecondsADay - options_.nights},
              {"nights", Json::array()}};
    retrieval::NoteLibrary notes(options_.folder + "/notes", {});
    const auto encode = [&](std::string_view text) {
      return bench_.tokenizer().encode(text, EncodeMode::plain, false);
    };
    for (const std::string& text : person_.notes()) {
      TRY_ASSIGN(const uint64_t id, notes.add(kPerson, {0, "told", engram::today(), 5, text}, encode));
      static_cast<void>(id);
    }
    return Ok{};
  }

  // A day: the system answers with what is in use, and the person says what they think of it.
  Status live(int day) {
    TRY_ASSIGN(const Arm arm, arm_in_use(*store_, bench_, kPerson));
    size_t accepted = 0, asked = 0;
    for (const PersonQuestion& question : person_.day(day)) {
      TRY_ASSIGN(const auto known, journal_->find(kPerson, question.id));
      if (known && known->rating() > 0) continue;
      TRY_ASSIGN(const Answered answer, bench_.answer(question.asked, kPerson, arm, kAnswerTokens));
      store::JournalAnswer entry;
      entry.request_id = question.id;
      entry.owner = kPerson;
      entry.created = (state_["began_day"].get<int64_t>() + day) * kSecondsADay + static_cast<int64_t>(asked);
      entry.model = bench_.name();
      entry.messages = question.asked.messages;
      entry.tools = question.asked.tools;
      entry.answer = answer.text;
      entry.tool_calls = answer.calls;
      entry.finish = answer.has_ended ? "stop" : "length";
      journal_->add(std::move(entry));
      store::Feedback feedback;
      if (!person_.accepts(question, answer)) {
        feedback.kind = store::FeedbackKind::correction;
        feedback.text = person_.correction(question, answer);
      }
      accepted += feedback.kind == store::FeedbackKind::thumb_up;
      ++asked;
      TRY(journal_->give(kPerson, question.id, feedback));
    }
    options_.tell("day " + std::to_string(day) + ": " + std::to_string(accepted) + " of " + std::to_string(asked) +
                  " answers were accepted as they were");
    return Ok{};
  }

  JobTools tools() {
    JobTools made{*journal_, *store_, [this]() -> Result<Workbench*> { return &bench_; }, options_.guard, {}, {}};
    made.general = options_.general;
    made.rules.seed = options_.seed;
    return made;
  }

  // The record of a job; of one that had run before this process began, the one it left.
  Result<Json> job(const JobTools& with, const std::string& kind) {
    TRY_ASSIGN(RunRecord run, run_job(with, {kPerson, kind, ""}));
    if (run.state == "skipped") {
      TRY_ASSIGN(const auto runs, store_->runs(kPerson));
      for (const RunRecord& old : runs) {
        if (run.problem.ends_with(old.id)) run = old;
      }
    }
    options_.tell("  " + kind + ": " + run.state + "; " + run.problem + run.verdict.reason + "; " + run.about);
    return run_figures(run);
  }

  Result<Json> sleep(int night) {
    Json done{{"night", night}, {"runs", Json::array()}};
    if (night == kPlantedNight) {
      TRY_ASSIGN(done["planted"], plant());
    }
    for (const std::string& kind : options_.kinds) {
      if (kind == "prompts" && night < options_.nights) continue;
      TRY_ASSIGN(Json run, job(tools(), kind));
      done["runs"].push_back(std::move(run));
    }
    if (night == kRollbackNight) {
      TRY_ASSIGN(done["rollback"], roll_back());
    }
    if (night == kForgetNight) {
      TRY_ASSIGN(done["forget"], forget());
    }
    TRY_ASSIGN(const Arm arm, arm_in_use(*store_, bench_, kPerson));
    TRY_ASSIGN(done["exam"], examined(kPerson, arm, "night " + std::to_string(night)));
    TRY_ASSIGN(const double general, perplexity(arm));
    done["perplexity"] = general;
    TRY_ASSIGN(const Arm memory, memory_arm());
    TRY_ASSIGN(done["baseline"], examined(kPerson, memory, "  with memory alone"));
    return done;
  }

  // The system that remembers what was accepted and learns nothing else: notes, and a table of all accepted answers.
  Result<Arm> memory_arm() {
    TRY_ASSIGN(const Examples examples, examples_of(*journal_, kPerson));
    Arm arm;
    if (examples.train.empty()) return arm;
    std::vector<TaughtAnswer> all = examples.train;
    all.insert(all.end(), examples.held_out.begin(), examples.held_out.end());
    TRY_ASSIGN(const std::string bytes, engram_bytes(bench_.tokenizer(), all, options_.folder + "/memory.part"));
    const std::string path = options_.folder + "/memory.engram";
    TRY(write_whole(path, bytes));
    TRY_ASSIGN(auto table, engram::Table::open(path, bench_.vocabulary(), engram::today()));
    arm.tables = {{std::move(table), 1}};
    return arm;
  }

  // 1 and 0 by question, and the share of each kind.
  Result<Json> examined(const std::string& owner, const Arm& arm, const std::string& name) {
    Json right = Json::array();
    std::map<TaskOf, std::pair<int, int>> shares;
    for (const PersonQuestion& question : exam_) {
      if (static_cast<size_t>(shares[question.of].second) == options_.exam_questions) continue;
      TRY_ASSIGN(const Answered answer, bench_.answer(question.asked, owner, arm, kAnswerTokens));
      const bool is_right = person_.is_right(question, answer);
      right.push_back(is_right ? 1 : 0);
      shares[question.of].first += is_right;
      ++shares[question.of].second;
    }
    Json made{{"right", std::move(right)}};
    std::string text = name + ":";
    double mean = 0;
    for (const TaskOf of : kTasks) {
      const double percent = 100.0 * shares[of].first / shares[of].second;
      made[task_name(of)] = percent;
      if (of != TaskOf::fact) mean += percent / 3;
      text += std::string(" ") + task_name(of) + " " + std::to_string(static_cast<int>(percent)) + " %";
    }
    made["mean"] = mean;
    options_.tell(text);
    return made;
  }

  Result<double> perplexity(const Arm& arm) {
    double sum = 0, n = 0;
    for (const std::string& passage : options_.general) {
      TRY_ASSIGN(const std::vector<float> logprobs, bench_.score_text(passage, arm));
      for (const float logprob : logprobs) sum += logprob;
      n += static_cast<double>(logprobs.size());
    }
    return n > 0 ? std::exp(-sum / n) : 0.0;
  }

  Result<Json> plant() {
    Json planted = Json::array();
    TRY_ASSIGN(const auto runs, store_->runs(kPerson));
    const auto learned = std::find_if(runs.begin(), runs.end(), [](const RunRecord& run) {
      return run.slot.kind == "lora" && !run.artefact.empty();
    });
    if (learned != runs.end()) {
      TRY_ASSIGN(const auto adapter,
                 models::load_adapter(store_->path_of(learned->artefact), "planted", bench_.model()));
      Adapter strong = *adapter;
      for (LowRank& change : strong.by_matrix) {
        for (float& value : change.b) value *= kTooStrong;
      }
      const std::string path = options_.folder + "/planted.gguf";
      TRY(write_adapter(strong, bench_.model(), path));
      JobTools with = tools();
      with.given = bytes_at(path);
      TRY_ASSIGN(Json run, job(with, "lora"));
      run["planted"] = "an adapter of four times the strength";
      planted.push_back(std::move(run));
    }
    JobTools with = tools();
    with.given = kNonsense;
    TRY_ASSIGN(Json run, job(with, "prompts"));
    run["planted"] = "a prompt that asks for nonsense";
    planted.push_back(std::move(run));
    return planted;
  }

  Result<Json> roll_back() {
    TRY_ASSIGN(const auto used, store_->manifest());
    // The adapter; where none was proven, the table.
    const Slot slot{kPerson, used->in_use({kPerson, "lora", ""}) ? "lora" : "engram", ""};
    const auto in_use = [&]() -> Result<Version> {
      TRY_ASSIGN(const auto manifest, store_->manifest());
      const Version* version = manifest->in_use(slot);
      return version ? *version : Version{};
    };
    TRY_ASSIGN(const Version before, in_use());
    if (before.artefact.empty()) return Json{{"done", false}};
    TRY(store_->update([&](Manifest& manifest) { return manifest.rollback(slot, std::time(nullptr)); }));
    TRY_ASSIGN(const Version after, in_use());
    TRY_ASSIGN(const Arm arm, arm_in_use(*store_, bench_, kPerson));
    TRY_ASSIGN(Json exam, examined(kPerson, arm, "  rolled back"));
    TRY(promote_run(*store_, before.run, false));
    TRY_ASSIGN(const Version again, in_use());
    return Json{{"done", true},         {"kind", slot.kind},       {"from", before.artefact},
                {"to", after.artefact}, {"exam", std::move(exam)}, {"same_again", again.artefact == before.artefact}};
  }

  // One conversation that was learned from goes. What is left has to be what a journal without it gives.
  Result<Json> forget() {
    TRY_ASSIGN(const Examples examples, examples_of(*journal_, kPerson));
    const auto table_of = [&]() -> Result<std::string> {
      TRY_ASSIGN(const auto runs, store_->runs(kPerson));
      for (const RunRecord& run : runs) {
        if (run.slot.kind == "engram" && !run.artefact.empty()) return run.artefact;
      }
      return std::string();
    };
    if (examples.train.empty()) return Json{{"done", false}};
    const std::string conversation = examples.train[examples.train.size() / 2].conversation;
    TRY_ASSIGN(const std::string saw_it, table_of());
    TRY_ASSIGN(const ForgottenCounts counts,
               forget_conversation(*journal_, *store_, bench_.tokenizer(), kPerson, conversation));
    TRY_ASSIGN(const std::string after, table_of());
    // A person who never said it: the same journal, without these answers.
    const std::string folder = options_.folder + "/twin";
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    std::filesystem::create_directories(folder, error);
    const SimulatedPerson twin(options_.seed);
    TRY_ASSIGN(const auto journal, store::Journal::open(folder + "/journal.db", store::Journal::Consent::given));
    TRY_ASSIGN(auto kept, all_answers(*journal_, kPerson, kMaxTaught));
    std::reverse(kept.begin(), kept.end());
    for (const store::KeptAnswer& answer : kept) {
      store::JournalAnswer entry;
      entry.request_id = answer.request_id;
      entry.owner = kPerson;
      entry.created = answer.created;
      entry.messages = messages_of(answer);
      entry.tools = tools_of(answer);
      entry.answer = answer.answer;
      entry.tool_calls = calls_of(answer);
      journal->add(std::move(entry));
      store::Feedback feedback;
      if (const std::string* text = answer.correction()) {
        feedback.kind = store::FeedbackKind::correction;
        feedback.text = *text;
      }
      TRY(journal->give(kPerson, answer.request_id, feedback));
    }
    TRY_ASSIGN(const Examples never, examples_of(*journal, kPerson));
    TRY_ASSIGN(const std::string bytes, engram_bytes(bench_.tokenizer(), never.train, folder + "/table.part"));
    std::string made;
    if (!after.empty()) {
      TRY_ASSIGN(made, store_->read(after));
    }
    const bool is_equal = !after.empty() && bytes == made && after != saw_it;
    TRY_ASSIGN(const auto manifest, store_->manifest());
    const bool has_adapter = manifest->in_use({kPerson, "lora", ""}) != nullptr;
    options_.tell(std::string("  forgotten: the table is ") + (is_equal ? "" : "not ") + "the one that never saw it");
    return Json{
        {"done", true},      {"answers", counts.answers},    {"rebuilt", counts.rebuilt}, {"dropped", counts.dropped},
        {"equal", is_equal}, {"adapter_in_use", has_adapter}};
  }

  // At the end: each kind of candidate alone, whether it was proven or not.
  Result<Json> arms() {
    Json all = Json::object();
    TRY_ASSIGN(all["plain"], examined({}, {}, "plain model"));
    if (!options_.has_arms) return all;
    TRY_ASSIGN(all["notes"], examined(kPerson, {}, "notes alone"));
    TRY_ASSIGN(const auto runs, store_->runs(kPerson));
    for (const std::string& kind : options_.kinds) {
      const auto last = std::find_if(runs.begin(), runs.end(), [&](const RunRecord& run) {
        return run.slot.kind == kind && !run.artefact.empty() && !run.about.starts_with("made elsewhere");
      });
      if (last == runs.end()) continue;
      TRY_ASSIGN(const Arm arm, arm_with(*store_, bench_, {}, kind, last->artefact));
      TRY_ASSIGN(all[kind], examined({}, arm, kind + " alone"));
      TRY_ASSIGN(const double general, perplexity(arm));
      all[kind]["perplexity"] = general;
      all[kind]["state"] = last->state;
    }
    return all;
  }

  Workbench& bench_;
  const WeekOptions& options_;
  const SimulatedPerson person_;
  const std::vector<PersonQuestion> exam_;
  std::shared_ptr<store::Journal> journal_;
  std::shared_ptr<ArtefactStore> store_;
  Json state_;
};

}  // namespace

Result<std::string> simulate_week(Workbench& bench, const WeekOptions& options) { return Week(bench, options).run(); }

}  // namespace chimere::improve
