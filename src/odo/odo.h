// odo.h  The orchestrator: whoever asks the model `odo` is answered by a run, in which the question is routed, tools are
// called and the model is asked as often as that takes. Whoever asks the model itself never comes here.
//
//   odo                  the route is chosen, nothing else is asked for
//   odo/fast, quality, ultra   the same with a mode (wishes.h)
//   odo/ROUTE            that route
//
// A run has a thread of its own while it lasts, and tells of its steps as they come (run_stream.h).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_threads.h"
#include "odo/answer_loop.h"
#include "odo/approvals.h"
#include "odo/effort.h"
#include "odo/lookup.h"
#include "odo/route_folder.h"
#include "odo/routing/vector_teacher.h"
#include "odo/run_stream.h"
#include "odo/trace_store.h"
#include "orchestrator/chat_service.h"
#include "store/journal.h"
#include "tools/mcp_client.h"
#include "tools/toolbox.h"

namespace chimere::odo {

struct OdoConfig {
  std::vector<std::string> route_folders;
  LoopLimits loop;
  const tools::McpServers* servers = nullptr;  // whose tools are in the toolbox, for people to see; null: none
  std::function<std::map<std::string, std::string>()> tool_problems;  // by file, beside those of routes; null: none
  std::function<std::vector<std::string>()> skills;  // names of tools that are programs of a person; null: none are
  orchestrator::ChatService* prm = nullptr;          // a model that judges answers (judge.h); null: none
  std::shared_ptr<store::Journal> journal = {};      // accepted answers are examples (few_shot.h); null: there are none
  orchestrator::Embedder* embedder = nullptr;        // whose vectors routing compares; outlives it; null: words alone
  bool asks_model_for_routes = false;  // where rules and examples are not sure; for models that can choose
  int max_runs = 16;                   // at the same time
  int max_waiting = 64;                // behind these; more are refused
};

// What a caller asks of a run, beside its ChatRequest.
struct Ask {
  std::string model;                                    // "odo", "odo/fast", ...
  std::string mode;                                     // where the name of the model has none
  std::string route;                                    // the same
  std::optional<std::vector<std::string>> tools;        // of the program; absent: those of the route
  std::optional<std::vector<std::string>> collections;  // of documents to look in; absent: those of the route
  std::optional<bool> web;                              // whether the web is searched; absent: as the route says
  std::optional<bool> calculates;                       // whether sums are computed before the answer; absent: the same
  std::optional<bool> entropy;                          // whether a sure answer goes without a thought; the same
  std::optional<bool> pipeline;                         // whether the steps of the route run
  Effort effort = {};                                   // beside asking the model once; absent: as the route says
  std::vector<std::string> attachments;                 // names or types of files that came with the question
  bool can_approve = false;                             // somebody reads the steps and may allow calls
  std::string client;  // whose key it is: who has it sees the trace and may allow calls
  // Who answers, held as long as the run lasts; null: the model that the orchestrator was made with.
  std::shared_ptr<orchestrator::ChatService> chat;
};

// Bounds of the times of a stage, in seconds: from a route chosen by rules (0.01 ms) to an answer after a long thought.
inline constexpr std::array<double, 15> kStageSeconds = {0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                         0.5,    1,     2.5,   5,    10,    30,   60};

// Times and counts of what ran, for metrics.
struct StageCount {
  uint64_t n = 0, failed = 0, skipped = 0;
  double seconds = 0;
  std::array<uint64_t, kStageSeconds.size() + 1> by_seconds = {};  // those up to each bound; the last: above all

  void add(double took_seconds);
};

class Odo {
 public:
  // All of them outlive it. Without a `chat` every run brings its own.
  Odo(orchestrator::ChatService* chat, tools::Toolbox& toolbox, Shelves shelves, OdoConfig config);
  Odo(orchestrator::ChatService& chat, tools::Toolbox& toolbox, Shelves shelves, OdoConfig config)
      : Odo(&chat, toolbox, shelves, std::move(config)) {}

  // Whether a name is one of ours, known or not.
  static bool is_odo(std::string_view model);
  // Why a request can not be answered: invalid_argument, or not_found with the names there are.
  Status check(const Ask& ask);
  // Never blocks and never refuses: what can not run ends as a failed stream. The same rules for `notify` as in
  // ChatService.
  std::unique_ptr<orchestrator::AnswerStream> start(Ask ask, orchestrator::ChatRequest request,
                                                    std::function<void()> notify);

  // Other work that blocks, on a thread of the runs.
  std::unique_ptr<orchestrator::ServiceJob<std::string>> work(std::function<Result<std::string>()> work,
                                                              std::function<void()> notify);

  std::vector<std::string> model_names();
  std::shared_ptr<const RouteSet> routes() { return folder_.routes(); }
  // Files that are broken: what is wrong with each.
  std::map<std::string, std::string> problems();
  // Tools that are programs of a person (tools/skill.h), but for those that the policy denies.
  std::vector<tools::ToolSpec> skills() const;
  Approvals& approvals() { return approvals_; }
  const TraceStore& traces() const { return traces_; }
  tools::Toolbox& toolbox() { return toolbox_; }
  const Shelves& shelves() const { return shelves_; }
  const tools::McpServers* servers() const { return config_.servers; }
  std::map<std::string, StageCount> stage_counts() const;

 private:
  struct Job;

  static tools::ToolContext context_of(const Job& job, const RunTeller& teller);
  RouteChoice choose(const std::shared_ptr<const Router>& router, const Job& job,
                     orchestrator::ChatService& chat) const;
  // Texts for the question, where the request or the route wants some; the request is told of them.
  std::vector<FoundText> look_up(Job& job, orchestrator::ChatService& chat, const Route& route, const Mode* mode,
                                 const Effort& effort, RunTeller& teller) const;
  SearchHelp help_of(const Job& job, orchestrator::ChatService& chat, const Effort& effort) const;
  std::function<void(orchestrator::ChatRequest&)> look_up_in_doubt(const Job& job, orchestrator::ChatService& chat,
                                                                   const Effort& effort, Sources& sources,
                                                                   RunTeller& teller) const;
  void run(Job& job);
  void count(const RunReport& report);

  orchestrator::ChatService* const chat_;  // null: that of a run's Ask
  tools::Toolbox& toolbox_;
  const Shelves shelves_;
  const OdoConfig config_;
  RouteFolder folder_;
  std::unique_ptr<VectorTeacher> teacher_;  // null: no vectors
  Approvals approvals_;
  TraceStore traces_;
  std::atomic<int> n_open_{0};
  mutable std::mutex counts_mutex_;
  std::map<std::string, StageCount> counts_;  // by stage
  JobThreads threads_;                        // ends first: its runs use the others
};

}  // namespace chimere::odo
