#include "odo/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "base/hash.h"
#include "odo/branch.h"
#include "odo/equations.h"
#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using Phase = Branch::Phase;
using State = StepReport::State;

constexpr size_t kMaxKeyedBytes = 600;   // longer answers say more than one thing: they are told apart whole
constexpr size_t kShownStepBytes = 160;  // in the trace
constexpr size_t kShownSteps = 24;
constexpr double kProvenWrong = 1e-3;  // the vote of an answer that a check refutes
// What a model that judges holds for right, by itself or beside the step before: no other is tried.
constexpr double kGoodStep = 0.5, kGoodShare = 0.6;

std::string beginning_of(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes) + "…";
}

double two_digits(double score) { return std::round(score * 100) / 100; }

class Search {
 public:
  Search(orchestrator::ChatService& chat, const ChatRequest& request, const SearchRule& rule, const Judge& judge,
         RunTeller& teller)
      : chat_(chat),
        request_(request),
        rule_(rule),
        judge_(judge),
        teller_(teller),
        question_(orchestrator::question_of(request.messages)),
        seed_(request.seed ? *request.seed : std::random_device()()) {
    cuts_.thought_close = chat.thought_close();
    // A form holds for the whole answer, so it can not be cut into steps.
    if (rule_.kind == SearchKind::dvts && !request.form.is_free()) rule_.kind = SearchKind::best_of;
  }

  ModelTurn run() {
    step_ = teller_.begin("search",
                          std::string(search_name(rule_.kind)) + ": " + std::to_string(rule_.branches) + " branches");
    if (rule_.kind == SearchKind::dvts) {
      grow_trees();
    } else {
      draw_answers();
    }
    return chosen();
  }

 private:
  bool is_over() const { return teller_.is_cancelled() || std::chrono::steady_clock::now() >= request_.deadline; }
  uint64_t next_seed() { return hash_mix(seed_ + ++n_seeds_); }

  // Whole answers, all forks of one prompt.
  void draw_answers() {
    ChatRequest request = request_;
    const int32_t share = std::max(1, rule_.tokens / rule_.branches);
    request.max_tokens = request.max_tokens < 0 ? share : std::min(request.max_tokens, share);
    Branch root;
    for (const Piece& piece : read({{going_on(request, root, cuts_, false, next_seed()), rule_.branches}})) {
      branches_.push_back(grown(root, piece, request, cuts_, false));
      branches_.back().phase = Phase::done;
    }
  }

  void grow_trees() {
    begin_trees();
    while (!is_over() && !wants_answer_ && n_spent_ < rule_.tokens && grows()) {
      grow();
      tell_progress();
    }
    finish_trees();
  }

  // The best first steps that differ: sub-trees that begin alike would be one.
  void begin_trees() {
    Branch root;
    const auto pieces = read({{going_on(request_, root, cuts_, true, next_seed()), rule_.branches * rule_.width}});
    std::vector<Branch> first;
    for (const Piece& piece : pieces) first.push_back(judged(root, grown(root, piece, request_, cuts_, true)));
    std::stable_sort(first.begin(), first.end(),
                     [](const Branch& a, const Branch& b) { return score_of(a) > score_of(b); });
    std::set<std::string> texts;
    const auto is_new = [&](const Branch& branch) { return texts.insert(branch.text()).second; };
    std::stable_partition(first.begin(), first.end(), is_new);
    first.resize(std::min(first.size(), static_cast<size_t>(rule_.branches)));
    branches_ = std::move(first);
  }

  static double score_of(const Branch& branch) {
    const bool has_failed = branch.last.kind == ChatChunk::Kind::failed;
    return has_failed ? -1 : branch.steps.empty() ? 0 : branch.steps.back().score;
  }
  static bool is_open(const Branch& branch) { return branch.phase == Phase::thinks || branch.phase == Phase::answers; }
  bool grows() const { return std::any_of(branches_.begin(), branches_.end(), is_open); }

  // A step in every sub-tree. Where a model judges, a step that it holds for right stays, and others are tried in place of
  // one that it does not; where none does, all are tried at once and the best one stays.
  void grow() {
    std::vector<size_t> open;
    for (size_t i = 0; i < branches_.size(); ++i) {
      if (is_open(branches_[i])) open.push_back(i);
    }
    std::vector<std::optional<Branch>> best(branches_.size());
    const int n_first = judge_.has_model() ? 1 : rule_.width;
    try_steps(open, n_first, best);
    std::erase_if(open, [&](size_t i) { return is_good(score_of(*best[i]), score_of(branches_[i])); });
    if (rule_.width > n_first && !is_over() && n_spent_ < rule_.tokens) try_steps(open, rule_.width - n_first, best);
    for (size_t i = 0; i < branches_.size(); ++i) {
      if (best[i]) branches_[i] = std::move(*best[i]);
    }
  }

  // What a model holds for right falls with the length of what it reads: a step is as good as the one before it lets expect.
  static bool is_good(double score, double before) { return score >= std::min(kGoodStep, kGoodShare * before); }

  // `n` next steps of each of these branches; `best` keeps the one that is judged best.
  void try_steps(const std::vector<size_t>& of, int n, std::vector<std::optional<Branch>>& best) {
    std::vector<std::pair<ChatRequest, int>> requests;
    for (const size_t i : of) requests.emplace_back(going_on(request_, branches_[i], cuts_, true, next_seed()), n);
    const std::vector<Piece> pieces = read(std::move(requests));
    for (size_t k = 0; k < pieces.size(); ++k) {
      const size_t i = of[k / static_cast<size_t>(n)];
      Branch tried = judged(branches_[i], grown(branches_[i], pieces[k], request_, cuts_, true));
      if (!best[i] || score_of(tried) > score_of(*best[i])) best[i] = std::move(tried);
    }
  }

  // The answers behind the thoughts, and what the budget left open, each in one go.
  void finish_trees() {
    std::vector<std::pair<ChatRequest, int>> requests;
    std::vector<size_t> of;
    for (size_t i = 0; i < branches_.size() && !is_over(); ++i) {
      Branch& branch = branches_[i];
      if (branch.phase == Phase::done) continue;
      if (branch.phase == Phase::thinks) branch.phase = Phase::thought;
      requests.emplace_back(going_on(request_, branch, cuts_, false, next_seed()), 1);
      of.push_back(i);
    }
    const std::vector<Piece> pieces = read(std::move(requests));
    for (size_t i = 0; i < of.size(); ++i) {
      Branch& branch = branches_[of[i]];
      branch = grown(branch, pieces[i], request_, cuts_, false);
      branch.phase = Phase::done;
    }
  }

  std::vector<Piece> read(std::vector<std::pair<ChatRequest, int>> requests) {
    std::vector<Piece> pieces = read_pieces(chat_, std::move(requests), teller_, step_, wants_answer_);
    for (const Piece& piece : pieces) n_spent_ += piece.last.usage.completion_tokens;
    return pieces;
  }

  Judged about(const std::string& before, std::string text, double logprob) const {
    Judged judged;
    judged.question = question_;
    judged.before = before;
    judged.text = std::move(text);
    judged.logprob = logprob;
    judged.owner = request_.owner;
    judged.cache_scope = request_.cache_scope;
    judged.deadline = request_.deadline;
    return judged;
  }

  // A step whose sum is not right goes on with the right result: behind the wrong one all would be lost, and a second try of
  // the same sum is mostly as wrong as the first. Not where the caller looks at tokens, as these are not the model's.
  void mend(const Branch& before, Branch& after) const {
    const bool shows_tokens = request_.logprobs || request_.token_stats || request_.token_ids;
    if (shows_tokens || after.phase == Phase::done) return;
    for (auto [text, begin] :
         {std::pair(&after.reasoning, before.reasoning.size()), std::pair(&after.content, before.content.size())}) {
      if (begin < text->size()) text->replace(begin, text->size(), with_right_results(text->substr(begin)));
    }
  }

  Branch judged(const Branch& before, Branch after) {
    const std::string written = step_text(before, after);
    mend(before, after);
    std::string text = step_text(before, after);
    const bool is_mended = text != written;
    const int32_t n = after.n_tokens - before.n_tokens;
    const double logprob = n > 0 ? (after.logprob_sum - before.logprob_sum) / n : 0;
    const bool has_failed = after.last.kind == ChatChunk::Kind::failed;
    const Judgement verdict = has_failed ? Judgement() : judge_.judge(about(before.text(), text, logprob));
    charge(verdict);
    after.steps.push_back({std::move(text), verdict.score, is_mended});
    return after;
  }

  // What the judge wrote is part of the cost.
  void charge(const Judgement& verdict) {
    engine::Usage usage;
    usage.completion_tokens = verdict.tokens;
    if (verdict.tokens > 0) teller_.add_tokens(step_, usage);
    n_spent_ += verdict.tokens;
  }

  void tell_progress() {
    teller_.tell_of(step_,
                    std::string(search_name(rule_.kind)) + ": " + std::to_string(branches_.size()) + " branches, " +
                        std::to_string(n_spent_) + " tokens",
                    detail(nullptr));
  }

  // The whole of each answer is judged, and votes.
  void vote() {
    std::map<std::string, double> weights;
    for (Branch& branch : branches_) {
      if (branch.last.kind == ChatChunk::Kind::failed || branch.content.empty()) continue;
      Judged whole = about(branch.reasoning, branch.content, branch.logprob());
      whole.form = &request_.form;
      whole.is_cut = branch.last.finish == orchestrator::Finish::length;
      branch.judgement = judge_.judge(whole);
      charge(branch.judgement);
      const double score = branch.judgement.is_proven_wrong ? kProvenWrong : branch.judgement.score;
      branch.votes = rule_.kind == SearchKind::majority ? 1 : score;
      weights[answer_key(branch.content)] += branch.votes;
    }
    for (Branch& branch : branches_) {
      if (branch.votes == 0) continue;
      if (rule_.kind != SearchKind::best_of) branch.votes = weights[answer_key(branch.content)];
    }
  }

  ModelTurn chosen() {
    vote();
    // Of those who agree the one that is judged best speaks.
    const auto best = std::max_element(branches_.begin(), branches_.end(), [](const Branch& a, const Branch& b) {
      return std::pair(a.votes, a.judgement.score) < std::pair(b.votes, b.judgement.score);
    });
    ModelTurn turn;
    if (best == branches_.end()) return turn;
    turn.reasoning = best->reasoning;
    turn.content = best->content;
    turn.last = best->last;
    const bool has_failed = turn.has_failed();
    teller_.end(step_, has_failed ? State::failed : State::done,
                has_failed ? turn.last.error->message
                           : std::string(search_name(rule_.kind)) + ": " + std::to_string(branches_.size()) +
                                 " branches, " + std::to_string(n_spent_) + " tokens, " + best->judgement.why,
                detail(&*best));
    turn.tokens = std::move(best->tokens);
    return turn;
  }

  std::string detail(const Branch* chosen) const {
    Json json;
    json["kind"] = search_name(rule_.kind);
    json["tokens"] = n_spent_;
    json["branches"] = Json::array();
    for (const Branch& branch : branches_) {
      Json one;
      one["tokens"] = branch.n_tokens;
      if (!branch.content.empty()) one["text"] = beginning_of(branch.content, kShownStepBytes);
      if (chosen) {
        one["score"] = two_digits(branch.judgement.score);
        one["votes"] = two_digits(branch.votes);
        one["by"] = branch.judgement.by;
        if (!branch.judgement.why.empty()) one["why"] = beginning_of(branch.judgement.why, kShownStepBytes);
        one["chosen"] = &branch == chosen;
      }
      for (size_t i = 0; i < std::min(branch.steps.size(), kShownSteps); ++i) {
        one["steps"].push_back({{"text", beginning_of(branch.steps[i].text, kShownStepBytes)},
                                {"score", two_digits(branch.steps[i].score)}});
        if (branch.steps[i].is_mended) one["steps"].back()["mended"] = true;
      }
      json["branches"].push_back(std::move(one));
    }
    return to_text(json);
  }

  orchestrator::ChatService& chat_;
  const ChatRequest& request_;
  SearchRule rule_;
  const Judge& judge_;
  RunTeller& teller_;
  const std::string question_;
  const uint64_t seed_;
  uint64_t n_seeds_ = 0;
  StepCuts cuts_;
  std::vector<Branch> branches_;
  int step_ = 0;
  int32_t n_spent_ = 0;
  bool wants_answer_ = false;
};

}  // namespace

std::optional<SearchKind> search_kind(std::string_view name) {
  for (const SearchKind kind : {SearchKind::none, SearchKind::majority, SearchKind::best_of, SearchKind::dvts}) {
    if (name == search_name(kind)) return kind;
  }
  return std::nullopt;
}

const char* search_name(SearchKind kind) {
  switch (kind) {
    case SearchKind::none: return "none";
    case SearchKind::majority: return "majority";
    case SearchKind::best_of: return "best_of";
    case SearchKind::dvts: return "dvts";
  }
  return "none";
}

std::string answer_key(const std::string& content) {
  std::string plain, number;
  for (size_t i = 0; i < content.size(); ++i) {
    const auto c = static_cast<unsigned char>(content[i]);
    const auto is_digit = [&](size_t at) { return at < content.size() && content[at] >= '0' && content[at] <= '9'; };
    if (is_digit(i)) {
      size_t end = i;
      std::string found = i > 0 && content[i - 1] == '-' && (i < 2 || !is_digit(i - 2)) ? "-" : "";
      for (;
           is_digit(end) || (end < content.size() && (content[end] == ',' || content[end] == '.') && is_digit(end + 1));
           ++end) {
        if (content[end] != ',') found += content[end];
      }
      number = found;
      plain += found;
      i = end - 1;
    } else if (c >= 0x80 || (c >= 'a' && c <= 'z')) {
      plain += content[i];
    } else if (c >= 'A' && c <= 'Z') {
      plain += static_cast<char>(c + ('a' - 'A'));
    }
  }
  return !number.empty() && content.size() <= kMaxKeyedBytes ? number : plain;
}

ModelTurn search_answer(orchestrator::ChatService& chat, const ChatRequest& request, const SearchRule& rule,
                        const Judge& judge, RunTeller& teller) {
  return Search(chat, request, rule, judge, teller).run();
}

}  // namespace chimere::odo
