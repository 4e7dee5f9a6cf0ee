// web_search.cpp  The stages of a search, in order.
#include "web/web_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "text/json.h"

namespace chimere::web {
namespace {

constexpr size_t kMaxThreads = 6;
constexpr size_t kFetchRounds = 3;         // pages that fail are replaced by the next best, so often
constexpr size_t kRerankedPerPassage = 4;  // what a given scorer sees, for each passage that is handed back
// Parts of the time that is left when a stage begins: what it may use, so that a slow one leaves something to those
// behind.
constexpr double kExpandShare = 0.25, kSearchShare = 0.4, kFetchShare = 0.6, kRerankShare = 0.7;

template <class F>
void for_all(size_t n, F&& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) body(i);
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(n, kMaxThreads); ++i) threads.emplace_back(work);
  work();
}

void add_note(std::string& note, const std::string& text) { note += (note.empty() ? "" : "; ") + text; }

std::string one_form(std::string_view query) {
  std::string out;
  for (const char c : query) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ') {
      out += static_cast<char>(std::tolower(byte));
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

class SearchRun {
 public:
  SearchRun(Searxng& server, PageFetcher& pages, const std::string& question, const SearchOptions& options,
            const SearchHooks& hooks, const WebContext& context)
      : server_(server), fetcher_(pages), question_(question), options_(options), hooks_(hooks), context_(context) {}

  Result<SearchOutcome> run();

 private:
  // Runs a stage and writes its step; a stage returns its count and adds to the note.
  template <class F>
  void stage(const char* name, F&& work) {
    SearchStep step{name, 0, 0, ""};
    const auto began = WebContext::Clock::now();
    step.n = work(step.note);
    step.ms = std::chrono::duration<double, std::milli>(WebContext::Clock::now() - began).count();
    if (hooks_.on_step) hooks_.on_step(step);
    outcome_.steps.push_back(std::move(step));
  }

  size_t expand(std::string& note);
  size_t search(std::string& note);
  size_t fetch(std::string& note);
  size_t chunk(std::string& note);
  size_t rerank(std::string& note);
  size_t grade(std::string& note);

  Searxng& server_;
  PageFetcher& fetcher_;
  const std::string& question_;
  const SearchOptions& options_;
  const SearchHooks& hooks_;
  const WebContext& context_;

  std::vector<std::string> queries_;
  std::vector<SearchHits> answers_;  // [queries]
  size_t n_answered_ = 0;
  struct Fetched {
    size_t source;
    std::shared_ptr<const Page> page;
  };
  std::vector<Fetched> pages_;
  SearchOutcome outcome_;
};

size_t SearchRun::expand(std::string& note) {
  queries_ = {question_};
  if (options_.depth.n_queries < 2 || !hooks_.expand) return 1;
  const auto more = hooks_.expand(question_, options_.depth.n_queries - 1, context_.share(kExpandShare));
  if (!more) {
    note = "left out: " + more.error().message;
    return 1;
  }
  queries_ = queries_of(question_, *more, options_.depth.n_queries);
  return queries_.size();
}

size_t SearchRun::search(std::string& note) {
  answers_.resize(queries_.size());
  std::vector<std::string> problems(queries_.size());
  std::atomic<size_t> n_answered{0};
  const WebContext context = context_.share(kSearchShare);
  for_all(queries_.size(), [&](size_t i) {
    const SearchQuery query{queries_[i], options_.language, options_.categories, options_.time_range, 1};
    auto hits = server_.search(query, context);
    if (!hits) {
      problems[i] = hits.error().message;
      return;
    }
    ++n_answered;
    problems[i] = hits->note;
    answers_[i] = std::move(*hits);
  });
  n_answered_ = n_answered;
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  for (const std::string& problem : problems) {
    if (!problem.empty()) add_note(note, problem);
  }
  size_t n_hits = 0;
  for (const SearchHits& answer : answers_) n_hits += answer.hits.size();
  return n_hits;
}

size_t SearchRun::fetch(std::string& note) {
  const WebContext context = context_.share(kFetchShare);
  size_t next = 0;
  for (size_t round = 0; round < kFetchRounds && pages_.size() < options_.depth.n_pages; ++round) {
    const size_t n = std::min(options_.depth.n_pages - pages_.size(), outcome_.sources.size() - next);
    std::vector<std::shared_ptr<const Page>> pages(n);
    std::vector<std::string> problems(n);
    for_all(n, [&](size_t i) {
      auto page = fetcher_.fetch(outcome_.sources[next + i].url, context);
      if (page) {
        pages[i] = std::move(*page);
      } else {
        problems[i] = page.error().message;
      }
    });
    for (size_t i = 0; i < n; ++i) {
      if (pages[i]) {
        pages_.push_back({next + i, std::move(pages[i])});
      } else {
        add_note(note, problems[i]);
      }
    }
    next += n;
    if (n == 0 || !context.check("fetch")) break;
  }
  return pages_.size();
}

size_t SearchRun::chunk(std::string& note) {
  for (const Fetched& fetched : pages_) {
    Source& source = outcome_.sources[fetched.source];
    if (source.title.empty()) source.title = fetched.page->title;
    for (std::string& text : chunk_text(fetched.page->text.as_data(), options_.chunks)) {
      outcome_.passages.push_back({UntrustedText(std::move(text)), source.url, source.title, 0});
    }
  }
  if (!outcome_.passages.empty()) return outcome_.passages.size();
  if (!outcome_.sources.empty()) note = "no page could be read: what the search server quotes stands for them";
  for (const Source& source : outcome_.sources) {
    if (!source.snippet.empty()) outcome_.passages.push_back({source.snippet, source.url, source.title, 0});
  }
  return outcome_.passages.size();
}

void sort_by_score(std::vector<Passage>& passages) {
  std::stable_sort(passages.begin(), passages.end(),
                   [](const Passage& a, const Passage& b) { return a.score > b.score; });
}

size_t SearchRun::rerank(std::string& note) {
  std::vector<Passage>& passages = outcome_.passages;
  std::vector<std::string_view> texts;
  for (const Passage& passage : passages) texts.push_back(passage.text.as_data());
  const std::vector<double> by_words = bm25_scores(question_, texts);
  for (size_t i = 0; i < passages.size(); ++i) passages[i].score = by_words[i];
  sort_by_score(passages);
  if (!hooks_.score || passages.empty()) return passages.size();
  std::vector<Passage> candidates = passages;
  if (const size_t n = kRerankedPerPassage * options_.depth.n_passages; candidates.size() > n) candidates.resize(n);
  const auto scores = hooks_.score(question_, candidates, context_.share(kRerankShare));
  const bool is_whole = scores && scores->size() == candidates.size() &&
                        std::all_of(scores->begin(), scores->end(), [](double s) { return std::isfinite(s); });
  if (!is_whole) {
    note = "words alone decide: " +
           (scores ? std::string("the scorer gave no score for each passage") : scores.error().message);
    return passages.size();
  }
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i].score = (*scores)[i];
  passages = std::move(candidates);
  sort_by_score(passages);
  return passages.size();
}

size_t SearchRun::grade(std::string& note) {
  std::vector<Passage>& passages = outcome_.passages;
  passages = diverse_passages(std::move(passages), options_.depth.n_passages);
  if (!hooks_.grade || passages.empty()) return passages.size();
  const auto helps = hooks_.grade(question_, passages, context_);
  if (!helps || helps->size() != passages.size()) {
    note = "left out: " + (helps ? std::string("the grader gave no word for each passage") : helps.error().message);
    return passages.size();
  }
  std::vector<Passage> kept;
  for (size_t i = 0; i < passages.size(); ++i) {
    if ((*helps)[i]) kept.push_back(std::move(passages[i]));
  }
  if (kept.size() < helps->size())
    note = std::to_string(helps->size() - kept.size()) + " passages that do not help were dropped";
  passages = std::move(kept);
  return passages.size();
}

Result<SearchOutcome> SearchRun::run() {
  const auto go_on = [this]() -> Status {
    if (context_.cancelled()) return Error{Code::cancelled, "web search: cancelled"};
    return Ok{};
  };
  TRY(context_.check("web search"));
  stage("expand", [&](std::string& note) { return expand(note); });
  TRY(go_on());
  stage("search", [&](std::string& note) { return search(note); });
  TRY(go_on());
  if (n_answered_ == 0) {
    return Error{Code::io, "web search: no query was answered: " + outcome_.steps.back().note};
  }
  stage("fuse", [&](std::string&) {
    outcome_.sources = fuse_hits(answers_, options_.depth.n_sources);
    return outcome_.sources.size();
  });
  stage("fetch", [&](std::string& note) { return fetch(note); });
  TRY(go_on());
  stage("chunk", [&](std::string& note) { return chunk(note); });
  stage("rerank", [&](std::string& note) { return rerank(note); });
  TRY(go_on());
  stage("grade", [&](std::string& note) { return grade(note); });
  TRY(go_on());
  return Result<SearchOutcome>{std::move(outcome_)};
}

}  // namespace

std::optional<SearchDepth> search_depth(std::string_view name) {
  if (name == "quick") return kQuickSearch;
  if (name == "standard") return kStandardSearch;
  if (name == "deep") return kDeepSearch;
  return std::nullopt;
}

std::vector<std::string> queries_of(const std::string& question, const std::vector<std::string>& more, size_t n) {
  std::vector<std::string> queries = {question}, forms = {one_form(question)};
  for (const std::string& query : more) {
    if (queries.size() >= n) break;
    const std::string form = one_form(query);
    if (form.empty() || std::find(forms.begin(), forms.end(), form) != forms.end()) continue;
    queries.push_back(query);
    forms.push_back(form);
  }
  return queries;
}

std::vector<Passage> diverse_passages(std::vector<Passage> passages, size_t n) {
  const size_t most_of_one = std::max<size_t>(1, n / 2);
  std::map<std::string, size_t> n_of;
  std::vector<Passage> chosen, rest;
  for (Passage& passage : passages) {
    const bool is_taken = chosen.size() < n && n_of[passage.url]++ < most_of_one;
    (is_taken ? chosen : rest).push_back(std::move(passage));
  }
  for (Passage& passage : rest) {
    if (chosen.size() >= n) break;
    chosen.push_back(std::move(passage));
  }
  sort_by_score(chosen);
  return chosen;
}

std::string search_answer(const SearchOutcome& outcome, const std::string& synthesis) {
  Json sources = Json::array(), passages = Json::array(), steps = Json::array();
  for (const Source& source : outcome.sources) {
    sources.push_back({{"title", source.title.as_data()},
                       {"url", source.url},
                       {"snippet", source.snippet.as_data()},
                       {"score", source.score}});
  }
  for (size_t i = 0; i < outcome.passages.size(); ++i) {
    const Passage& passage = outcome.passages[i];
    passages.push_back({{"n", i + 1},
                        {"title", passage.title.as_data()},
                        {"url", passage.url},
                        {"text", passage.text.as_data()},
                        {"score", passage.score}});
  }
  double ms = 0;
  for (const SearchStep& step : outcome.steps) {
    ms += step.ms;
    steps.push_back({{"stage", step.stage}, {"ms", step.ms}, {"n", step.n}, {"note", step.note}});
  }
  return to_text(Json{{"sources", std::move(sources)},
                      {"n_sources", outcome.sources.size()},
                      {"search_ms", ms},
                      {"passages", std::move(passages)},
                      {"synthesis", synthesis},
                      {"steps", std::move(steps)}});
}

Result<SearchOutcome> WebSearch::run(const std::string& question, const SearchOptions& options,
                                     const SearchHooks& hooks, const WebContext& context) const {
  return SearchRun(server_, pages_, question, options, hooks, context).run();
}

}  // namespace chimere::web
