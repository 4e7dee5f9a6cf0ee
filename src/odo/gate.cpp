#include "odo/gate.h"

#include <cmath>
#include <utility>

#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

Judgement judgement_of(const ModelTurn& turn, const orchestrator::ChatRequest& request, const Judge& judge) {
  Judged judged;
  judged.question = orchestrator::question_of(request.messages);
  judged.before = turn.reasoning;
  judged.text = turn.content;
  judged.form = &request.form;
  for (const orchestrator::TokenInfo& token : turn.tokens) judged.logprob += static_cast<double>(token.token.logprob);
  if (!turn.tokens.empty()) judged.logprob /= static_cast<double>(turn.tokens.size());
  judged.is_cut = turn.last.finish == orchestrator::Finish::length;
  judged.owner = request.owner;
  judged.cache_scope = request.cache_scope;
  judged.deadline = request.deadline;
  return judge.judge(judged);
}

std::string gate_detail(const Judgement& first, const Judgement* second) {
  const auto rounded = [](double score) { return std::round(score * 100) / 100; };
  Json json = {{"score", rounded(first.score)}, {"stars", first.stars()}, {"by", first.by}, {"why", first.why}};
  json["retried"] = second != nullptr;
  if (second) {
    json["second_score"] = rounded(second->score);
    json["kept"] = second->score >= first.score ? "second" : "first";
  }
  return to_text(json);
}

chat::Message said_by(const char* role, std::string text) {
  chat::Message message;
  message.role = role;
  message.content = std::move(text);
  return message;
}

}  // namespace

ModelTurn pass_gate(ModelTurn turn, const orchestrator::ChatRequest& request, const Judge& judge, RunTeller& teller,
                    const std::function<ModelTurn(orchestrator::ChatRequest)>& answer) {
  if (turn.has_failed() || turn.is_cancelled() || !turn.calls.empty()) return turn;
  const int step = teller.begin("gate", "judges the answer", false);
  const Judgement first = judgement_of(turn, request, judge);
  if (first.stars() > kGateStars || teller.is_cancelled()) {
    teller.end(step, State::done, std::to_string(first.stars()) + " of 5: " + first.why, gate_detail(first, nullptr));
    return turn;
  }
  orchestrator::ChatRequest again = request;
  again.messages.push_back(said_by("assistant", turn.content));
  again.messages.push_back(
      said_by("user", "That answer may be wrong: " + first.why + ".\n" + orchestrator::question_of(request.messages)));
  ModelTurn retried = answer(std::move(again));
  if (retried.has_failed() || retried.is_cancelled()) {
    teller.end(step, State::failed, std::to_string(first.stars()) + " of 5; the second try failed",
               gate_detail(first, nullptr));
    return turn;
  }
  const Judgement second = judgement_of(retried, request, judge);
  teller.end(step, State::done,
             std::to_string(first.stars()) + " of 5: " + first.why + "; tried again: " + std::to_string(second.stars()),
             gate_detail(first, &second));
  return second.score >= first.score ? retried : turn;
}

}  // namespace chimere::odo
