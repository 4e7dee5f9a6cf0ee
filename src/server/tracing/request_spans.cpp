#include "server/tracing/request_spans.h"

#include <algorithm>

#include "text/json.h"

namespace chimere::server {
namespace {

using Clock = TracedRequest::Clock;
using orchestrator::ModelTime;
using orchestrator::StepReport;

const char* step_state(StepReport::State state) {
  switch (state) {
    case StepReport::State::running: return "running";
    case StepReport::State::asks: return "asks";
    case StepReport::State::done: return "done";
    case StepReport::State::failed: return "failed";
    case StepReport::State::skipped: return "skipped";
  }
  return "done";
}

// Fields of a step's own: numbers and truths, texts only where they may be told.
void add_detail(const std::string& detail, bool with_texts, std::vector<Attribute>& attributes) {
  if (detail.empty()) return;
  const auto json = parse_json(detail);
  if (!json || !json->is_object()) return;
  for (const auto& [name, value] : json->items()) {
    const std::string key = "chimere.odo.detail." + name;
    if (value.is_boolean()) attributes.push_back({key, value.get<bool>()});
    if (value.is_number_integer()) attributes.push_back({key, value.get<int64_t>()});
    if (value.is_number_float()) attributes.push_back({key, value.get<double>()});
    if (value.is_string() && with_texts) attributes.push_back({key, value.get<std::string>()});
  }
}

class SpanWriter {
 public:
  SpanWriter(const TracedRequest& request, bool with_texts) : request_(request), with_texts_(with_texts) {}

  std::vector<Span> write() {
    const SpanId root = add_request();
    for (const ModelTime& answer : request_.answers) add_model(answer, root);
    for (const orchestrator::RunReport& run : request_.runs) {
      for (const StepReport& step : run.steps) add_step(step, root);
    }
    return std::move(spans_);
  }

 private:
  int64_t unix_ns(Clock::time_point time) const {
    // Nothing of a request is before it, though some times are reckoned back from others.
    const auto since = std::clamp(time, request_.begin, request_.end) - steady_now_;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(system_now_.time_since_epoch() + since).count();
  }

  Span& add(std::string name, SpanId parent, Clock::time_point begin, Clock::time_point end) {
    Span span;
    span.trace = request_.trace;
    span.id = new_span_id();
    span.parent = parent;
    span.name = std::move(name);
    span.begin_ns = unix_ns(begin);
    span.end_ns = unix_ns(end);
    spans_.push_back(std::move(span));
    return spans_.back();
  }

  SpanId add_request() {
    const std::string name = request_.method + (request_.route.empty() ? "" : " " + request_.route);
    Span& span = add(name, request_.parent ? request_.parent->span : SpanId{}, request_.begin, request_.end);
    span.kind = Span::Kind::server;
    std::vector<Attribute>& facts = span.attributes;
    facts = {
        {"http.request.method", request_.method}, {"url.path", request_.path}, {"chimere.request_id", request_.id}};
    if (!request_.route.empty()) facts.push_back({"http.route", request_.route});
    if (!request_.client.empty()) facts.push_back({"chimere.client", request_.client});
    if (request_.status > 0) facts.push_back({"http.response.status_code", int64_t{request_.status}});
    if (request_.status == 0) {
      span.error = "the client left";
      facts.push_back({"error.type", std::string("client_left")});
    } else if (request_.status >= 500) {
      span.error = "";
      facts.push_back({"error.type", std::to_string(request_.status)});
    }
    if (request_.first_token) {
      facts.push_back({"chimere.first_token_seconds",
                       std::chrono::duration<double>(*request_.first_token - request_.begin).count()});
    }
    if (request_.usage.prompt_tokens > 0) {
      facts.push_back({"gen_ai.usage.input_tokens", int64_t{request_.usage.prompt_tokens}});
      facts.push_back({"gen_ai.usage.output_tokens", int64_t{request_.usage.completion_tokens}});
      facts.push_back({"chimere.cached_tokens", int64_t{request_.usage.cached_tokens}});
    }
    if (!request_.finish.empty()) facts.push_back({"chimere.finish", request_.finish});
    if (!request_.runs.empty()) {
      facts.push_back({"chimere.odo.run", request_.runs.front().id});
      facts.push_back({"chimere.odo.route", request_.runs.front().route});
      if (!request_.runs.front().mode.empty()) facts.push_back({"chimere.odo.mode", request_.runs.front().mode});
    }
    return span.id;
  }

  // The engine tells how long each part took; they follow each other up to the end.
  void add_model(const ModelTime& model, SpanId parent) {
    const engine::Usage& usage = model.usage;
    if (usage.prompt_tokens == 0) return;
    const auto before = [](Clock::time_point time, double seconds) {
      return time - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    const Clock::time_point decode = before(model.end, usage.decode_seconds);
    const Clock::time_point prompt = before(decode, usage.prefill_seconds);
    add("queue", parent, before(prompt, usage.queue_seconds), prompt);
    add("prompt", parent, prompt, decode).attributes = {{"chimere.prompt_tokens", int64_t{usage.prompt_tokens}},
                                                        {"chimere.cached_tokens", int64_t{usage.cached_tokens}}};
    add("decode", parent, decode, model.end).attributes = {
        {"chimere.completion_tokens", int64_t{usage.completion_tokens}},
        {"chimere.reasoning_tokens", int64_t{usage.reasoning_tokens}},
        {"chimere.draft_tokens", int64_t{usage.draft_tokens}},
        {"chimere.draft_tokens_accepted", int64_t{usage.draft_tokens_accepted}}};
  }

  void add_step(const StepReport& step, SpanId root) {
    const auto took = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(step.ms));
    Span& span = add("odo." + step.stage, root, step.began, step.began + took);
    span.attributes = {{"chimere.odo.stage", step.stage},
                       {"chimere.odo.state", std::string(step_state(step.state))},
                       {"chimere.odo.step", int64_t{step.index}},
                       {"chimere.odo.tokens", int64_t{step.tokens}}};
    if (with_texts_ && !step.about.empty()) span.attributes.push_back({"chimere.odo.about", step.about});
    add_detail(step.detail, with_texts_, span.attributes);
    if (step.state == StepReport::State::failed) span.error = with_texts_ ? step.about : "";
    const SpanId id = span.id;
    for (const ModelTime& model : step.answers) add_model(model, id);
  }

  const TracedRequest& request_;
  const bool with_texts_;
  const Clock::time_point steady_now_ = Clock::now();
  const std::chrono::system_clock::time_point system_now_ = std::chrono::system_clock::now();
  std::vector<Span> spans_;
};

}  // namespace

std::vector<Span> request_spans(const TracedRequest& request, bool with_texts) {
  return SpanWriter(request, with_texts).write();
}

}  // namespace chimere::server
