#include "odo/lookup.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

constexpr size_t kSnippetBytes = 1200;  // a chunk of a document whole: who reads [n] wants to see what it says
constexpr std::chrono::seconds kLookupTime{20};

std::string snippet_of(const std::string& text) {
  if (text.size() <= kSnippetBytes) return text;
  size_t end = kSnippetBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string name_of(const FoundText& found) {
  std::string name = found.title.empty() ? (found.url.empty() ? found.document : found.url) : found.title;
  if (!found.place.empty()) name += ", " + found.place;
  return name;
}

// "3 texts"
std::string counted(size_t n) { return std::to_string(n) + (n == 1 ? " text" : " texts"); }

// What it costs is told of with the step.
SearchHelp charged_to(SearchHelp help, RunTeller& teller, int step) {
  help.told = [&teller, step](int32_t tokens) {
    engine::Usage usage;
    usage.completion_tokens = tokens;
    teller.add_tokens(step, usage);
  };
  return help;
}

// As stages of the web are told of. Those that did not run are not among them.
std::vector<web::SearchStep> stages_of(const retrieval::SearchTrace& trace, size_t n_hits) {
  std::vector<web::SearchStep> stages = {{"words", trace.words_ms, trace.n_words, ""}};
  if (trace.embed_ms > 0) stages.push_back({"vectors", trace.embed_ms + trace.vectors_ms, trace.n_vectors, ""});
  if (trace.rerank_ms > 0) stages.push_back({"rerank", trace.rerank_ms, n_hits, ""});
  if (trace.grade_ms > 0) stages.push_back({"grade", trace.grade_ms, n_hits, ""});
  for (const std::string& skipped : trace.skipped) {
    const size_t colon = skipped.find(": ");
    const std::string name = skipped.substr(0, colon);
    auto stage = std::find_if(stages.begin(), stages.end(), [&](const auto& ran) { return ran.stage == name; });
    if (stage == stages.end()) stage = stages.insert(stage, {name, 0, 0, ""});
    stage->note = colon == std::string::npos ? "it failed" : skipped.substr(colon + 2);
  }
  return stages;
}

}  // namespace

Result<std::vector<FoundText>> find_documents(const retrieval::Collections& collections, retrieval::SearchCall call,
                                              std::vector<web::SearchStep>& stages) {
  call.query.resize(std::min(call.query.size(), retrieval::kMaxQueryBytes));
  call.k = kToldTexts;
  call.drops_unlike = true;
  // That there is no embedder is how this server is, and no failure of this search.
  if (!collections.has_embedder()) call.mode = retrieval::SearchMode::words;
  retrieval::SearchTrace trace;
  TRY_ASSIGN(std::vector<retrieval::Hit> hits, collections.search(call, &trace));
  stages = stages_of(trace, hits.size());
  std::vector<FoundText> found;
  for (retrieval::Hit& hit : hits) {
    found.push_back({std::move(hit.title), "", std::move(hit.document), std::move(hit.place), std::move(hit.text),
                     std::move(hit.collection)});
  }
  return Result<std::vector<FoundText>>{std::move(found)};
}

void retrieve(const Shelves& shelves, const std::vector<std::string>& collections, const std::string& question,
              const SearchHelp& help, const tools::ToolContext& context, RunTeller& teller,
              std::vector<FoundText>& found) {
  const size_t before = found.size();
  const int step = teller.begin("retrieve", "looks in the collections");
  if (!shelves.collections) return teller.end(step, State::skipped, "this server has no collections");
  retrieval::SearchCall call;
  call.owner = context.key;
  call.collections = collections;
  call.query = question;
  call.deadline = std::min(context.deadline, std::chrono::steady_clock::now() + kLookupTime);
  call.is_cancelled = context.is_cancelled;
  const SearchHelp charged = charged_to(help, teller, step);
  call.grader = grader_of(charged, {call.deadline, call.is_cancelled});
  std::vector<web::SearchStep> stages;
  auto texts = find_documents(*shelves.collections, std::move(call), stages);
  if (!texts) return teller.end(step, State::failed, texts.error().message);
  found.insert(found.end(), std::make_move_iterator(texts->begin()), std::make_move_iterator(texts->end()));
  std::string about = counted(found.size() - before);
  for (const web::SearchStep& stage : stages) {
    if (!stage.note.empty()) about += "; " + stage.stage + " left out: " + stage.note;
  }
  teller.end(step, State::done, std::move(about), sources_detail(found, stages, before));
}

void search_web(const Shelves& shelves, const web::SearchDepth& depth, const std::string& question,
                const SearchHelp& help, const tools::ToolContext& context, RunTeller& teller,
                std::vector<FoundText>& found) {
  const size_t before = found.size();
  const int step = teller.begin("web", "searches the web");
  if (!shelves.web) return teller.end(step, State::skipped, "no search server is configured (serve --searxng URL)");
  web::SearchOptions options;
  options.depth = depth;
  const web::WebContext limits{std::min(context.deadline, std::chrono::steady_clock::now() + kLookupTime),
                               context.is_cancelled};
  const SearchHelp charged = charged_to(help, teller, step);
  const auto outcome = shelves.web->run(question, options, hooks_of(charged), limits);
  if (!outcome) return teller.end(step, State::failed, outcome.error().message);
  for (const web::Passage& passage : outcome->passages) {
    if (found.size() == before + kToldTexts) break;
    found.push_back({passage.title.as_data(), passage.url, "", "", passage.text.as_data()});
  }
  teller.end(step, State::done, counted(found.size() - before), sources_detail(found, outcome->steps, before));
}

std::vector<std::string> collections_there(const Shelves& shelves, const std::string& key,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> there;
  if (!shelves.collections || names.empty()) return there;
  const auto list = shelves.collections->list(key);
  if (!list) return there;
  for (const retrieval::CollectionInfo& info : *list) {
    if (std::find(names.begin(), names.end(), info.name) != names.end()) there.push_back(info.name);
  }
  return there;
}

std::string sources_detail(const std::vector<FoundText>& found, const std::vector<web::SearchStep>& stages,
                           size_t first) {
  Json json;
  json["sources"] = Json::array();
  json["is_untrusted"] = true;
  for (size_t i = first; i < found.size(); ++i) {
    Json source = {{"n", i + 1}, {"title", name_of(found[i])}, {"snippet", snippet_of(found[i].text)}};
    if (found[i].url.empty()) {
      source["document"] = found[i].document;
      source["collection"] = found[i].collection;
    } else {
      source["url"] = found[i].url;
    }
    json["sources"].push_back(std::move(source));
  }
  for (const web::SearchStep& stage : stages) {
    Json told = {{"stage", stage.stage}, {"ms", std::round(stage.ms * 10) / 10}, {"n", stage.n}};
    if (!stage.note.empty()) told["note"] = stage.note;
    json["stages"].push_back(std::move(told));
  }
  return to_text(json);
}

std::string as_numbered(const std::vector<FoundText>& found, size_t first) {
  std::string text;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string mark = "[" + std::to_string(first + i) + "]";
    text += mark + " " + name_of(found[i]) + "\n" + found[i].text + " " + mark + "\n\n";
  }
  return text;
}

void tell(const std::vector<FoundText>& found, float weight, orchestrator::ChatRequest& request) {
  const size_t before = request.looked_up.size();
  for (size_t i = 0; i < found.size(); ++i) {
    request.looked_up.push_back(
        {name_of(found[i]), found[i].text + " [" + std::to_string(before + i + 1) + "]", weight});
  }
}

Sources::Sources(std::vector<FoundText> found) {
  for (FoundText& text : found) texts_.emplace(next_++, std::move(text));
}

size_t Sources::reserve(size_t n_calls) {
  std::lock_guard lock(mutex_);
  return std::exchange(next_, next_ + n_calls * kToldTexts);
}

void Sources::put(size_t first, const std::vector<FoundText>& found) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < found.size(); ++i) texts_.insert_or_assign(first + i, found[i]);
}

bool Sources::empty() const {
  std::lock_guard lock(mutex_);
  return texts_.empty();
}

std::vector<orchestrator::Citation> Sources::cited_in(std::string_view answer) const {
  std::lock_guard lock(mutex_);
  std::vector<orchestrator::Citation> citations;
  size_t n_chars = 0;  // before `i`
  for (size_t i = 0; i < answer.size(); ++i) {
    const bool begins_char = (static_cast<unsigned char>(answer[i]) & 0xC0) != 0x80;
    if (answer[i] == '[') {
      size_t end = i + 1, n = 0;
      while (end < answer.size() && end < i + 4 && answer[end] >= '0' && answer[end] <= '9') {
        n = 10 * n + static_cast<size_t>(answer[end++] - '0');
      }
      const bool is_closed = end < answer.size() && answer[end] == ']';
      const auto text = is_closed ? texts_.find(n) : texts_.end();
      if (text != texts_.end()) {
        const FoundText& found = text->second;
        citations.push_back({n_chars, n_chars + (end + 1 - i), name_of(found), found.url, found.document});
      }
    }
    n_chars += begins_char;
  }
  return citations;
}

}  // namespace chimere::odo
