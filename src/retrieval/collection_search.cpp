// collection_search.cpp  From a question to hits: by words, by vectors, both together, then whoever reads the texts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "documents/document.h"
#include "retrieval/collection_reader.h"
#include "retrieval/collection_schema.h"
#include "retrieval/collections.h"
#include "retrieval/matcher.h"
#include "retrieval/rank_fusion.h"
#include "retrieval/search_terms.h"
#include "store/stemmer.h"

namespace chimere::retrieval {

// One search under way.
struct Collections::Searching {
  const SearchCall& call;
  Database& database;
  std::vector<StoredCollection> collections;
  size_t n_candidates = 0;   // of each ranking
  bool adds_scores = false;  // instead of fusing ranks: what one ranking finds needs its score in the other
  std::map<std::string, int64_t> n_with =
      {};  // of the question's terms: in how many chunks, at most kMaxMatches a table
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLeastCandidates = 64;
constexpr size_t kMatchedHits = 32;
constexpr size_t kRerankedHits = 32;
// Rows that BM25 may have to score, which takes about a microsecond each. The commonest words of a question are left out
// where they match more: they tell least.
constexpr size_t kMaxMatches = 12'000;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

using ScoredChunk = std::pair<int64_t, double>;

void take_best(std::vector<ScoredChunk> all, size_t n, ScoredRanking& ranking) {
  std::stable_sort(all.begin(), all.end(),
                   [](const ScoredChunk& a, const ScoredChunk& b) { return a.second > b.second; });
  const size_t n_best = std::min(n, all.size());
  ranking.others.insert(all.begin() + static_cast<std::ptrdiff_t>(n_best), all.end());
  all.resize(n_best);
  ranking.found = std::move(all);
}

Ranking without_scores(const ScoredRanking& ranking) {
  Ranking ranks{{}, ranking.weight};
  for (const auto& [chunk, score] : ranking.found) ranks.ids.push_back(chunk);
  return ranks;
}

// What is looked for in one table.
struct AskedRows {
  std::vector<std::string> terms;
  int64_t first_row = 0;  // those before it are not looked at
};

// The rarest terms, as many as can be scored. Where even the rarest is in too many chunks, the newest of these count. Adds
// to `n_with` how many have each.
Result<AskedRows> rare_terms(const Database& database, const std::string& table, const std::vector<std::string>& terms,
                             std::map<std::string, int64_t>& n_with) {
  TRY_ASSIGN(Statement count,
             database.prepare("SELECT count(*), min(rowid) FROM (SELECT rowid FROM " + table + " WHERE " + table +
                              " MATCH ? ORDER BY rowid DESC LIMIT " + std::to_string(kMaxMatches) + ")"));
  struct Counted {
    int64_t n = 0, first_row = 0;
    std::string term;
  };
  std::vector<Counted> counted;
  for (const std::string& term : terms) {
    TRY(count.with(std::string_view(match_any({term}))).step());
    n_with[term] += count.integer(0);
    if (count.integer(0) > 0) counted.push_back({count.integer(0), count.integer(1), term});
  }
  std::stable_sort(counted.begin(), counted.end(), [](const Counted& a, const Counted& b) { return a.n < b.n; });
  AskedRows asked;
  size_t n_matches = 0;
  for (const Counted& one : counted) {
    n_matches += static_cast<size_t>(one.n);
    if (n_matches > kMaxMatches && !asked.terms.empty()) break;
    asked.terms.push_back(one.term);
    if (n_matches >= kMaxMatches && asked.terms.size() == 1) asked.first_row = one.first_row;
  }
  return Result<AskedRows>{std::move(asked)};
}

// `scores_all`: all that have one of the words, so that what vectors find has its points, too; kMaxMatches at most.
Status search_words(const Database& database, const std::vector<StoredCollection>& collections,
                    const std::string& query, size_t n, bool scores_all, std::map<std::string, int64_t>& n_with,
                    ScoredRanking& ranking) {
  const std::vector<std::string> terms = asked_terms(query);
  if (terms.empty()) return Ok{};
  std::vector<ScoredChunk> all;
  for (const StoredCollection& collection : collections) {
    const std::string table = words_table(collection.id);
    TRY_ASSIGN(const AskedRows asked, rare_terms(database, table, terms, n_with));
    if (asked.terms.empty()) continue;
    TRY_ASSIGN(Statement find, database.prepare("SELECT rowid, rank FROM " + table + " WHERE " + table +
                                                " MATCH ? AND rowid >= ? ORDER BY rank LIMIT ?"));
    find.with(std::string_view(match_any(asked.terms)), asked.first_row,
              static_cast<int64_t>(scores_all ? kMaxMatches : n));
    for (;;) {
      TRY_ASSIGN(const bool has_row, find.step());
      if (!has_row) break;
      all.emplace_back(find.integer(0), -find.real(1));  // FTS5's are the smaller the better
    }
  }
  take_best(std::move(all), n, ranking);
  return Ok{};
}

// What a ranking says of chunks that it did not find, or found.
double score_in(const ScoredRanking& ranking, int64_t chunk, double otherwise) {
  for (const auto& [found, score] : ranking.found) {
    if (found == chunk) return score;
  }
  const auto other = ranking.others.find(chunk);
  return other == ranking.others.end() ? otherwise : other->second;
}

Result<double> count_chunks(const Database& database, const std::vector<StoredCollection>& collections) {
  double n = 0;
  for (const StoredCollection& collection : collections) {
    TRY_ASSIGN(Statement count,
               database.prepare("SELECT count(*) FROM " + words_table(collection.id) + "_docsize"));  // of FTS5's own
    TRY(count.step());
    n += static_cast<double>(count.integer(0));
  }
  return n;
}

// Words with the same stem are one, as rare as the commoner of them.
Result<MatchQuestion> match_question(const std::string& query, const std::map<std::string, int64_t>& n_with,
                                     double n_chunks, store::Stemmer& stemmer) {
  std::vector<std::string> stems;
  std::vector<double> rarity;
  for (const std::string& term : asked_terms(query)) {
    const auto n = n_with.find(term);
    const double rare = rarity_of_word(n_chunks, n == n_with.end() ? 0 : static_cast<double>(n->second));
    TRY(stemmer.each(term, [&](std::string_view stem) {
      if (std::find(stems.begin(), stems.end(), stem) != stems.end()) return;
      stems.emplace_back(stem);
      rarity.push_back(rare);
    }));
  }
  return MatchQuestion::of(query, stems, rarity, stemmer);
}

// A chunk that is gone meanwhile, or that no collection of this search has, is passed over.
Result<std::vector<Hit>> read_hits(const Database& database, const std::vector<StoredCollection>& collections,
                                   const std::vector<Fused>& fused, size_t n) {
  std::map<int64_t, std::string> names;
  for (const StoredCollection& collection : collections) names[collection.id] = collection.name;
  TRY_ASSIGN(Statement read,
             database.prepare("SELECT d.collection, d.name, d.title, c.heading, c.line, c.page, c.text FROM "
                              "chunks c JOIN documents d ON d.id = c.document WHERE c.id = ?"));
  std::vector<Hit> hits;
  for (const Fused& one : fused) {
    if (hits.size() == n) break;
    TRY_ASSIGN(const bool has_row, read.with(one.id).step());
    const auto name = has_row ? names.find(read.integer(0)) : names.end();
    if (name == names.end()) continue;
    Hit hit;
    hit.collection = name->second;
    hit.document = read.text(1);
    hit.title = read.text(2);
    hit.heading = read.text(3);
    hit.place =
        describe(documents::Place{static_cast<uint32_t>(read.integer(4)), static_cast<uint32_t>(read.integer(5))});
    hit.text = read.text(6);
    hit.score = one.score;
    hit.word_rank = one.ranks[0];
    hit.vector_rank = one.ranks[1];
    hits.push_back(std::move(hit));
  }
  return Result<std::vector<Hit>>{std::move(hits)};
}

Status check_call(const SearchCall& call) {
  if (call.query.size() > kMaxQueryBytes) {
    return Error{Code::invalid_argument, "query: expected at most " + std::to_string(kMaxQueryBytes) +
                                             " bytes, found " + std::to_string(call.query.size())};
  }
  if (call.k == 0 || call.k > kMaxHits) {
    return Error{Code::invalid_argument,
                 "k: expected 1 to " + std::to_string(kMaxHits) + ", found " + std::to_string(call.k)};
  }
  return Ok{};
}

bool must_end(const SearchCall& call) {
  return Clock::now() >= call.deadline || (call.is_cancelled && call.is_cancelled());
}

Error ended(const SearchCall& call) {
  return {Code::cancelled,
          Clock::now() >= call.deadline ? "the search did not end in time" : "the search was cancelled"};
}

void skip(SearchTrace& trace, const char* stage, const Error& error) {
  trace.skipped.push_back(std::string(stage) + ": " + error.message);
}

void grade(const SearchCall& call, SearchTrace& trace, std::vector<Hit>& hits) {
  const auto start = Clock::now();
  const auto kept = call.grader(call.query, hits);
  trace.grade_ms = ms_since(start);
  if (!kept) return skip(trace, "grade", kept.error());
  if (kept->size() != hits.size()) {
    return skip(trace, "grade", {Code::internal, "expected a word on each hit, found another number"});
  }
  size_t n = 0;
  for (size_t i = 0; i < hits.size(); ++i) {
    if (!(*kept)[i]) continue;
    if (n != i) hits[n] = std::move(hits[i]);
    ++n;
  }
  hits.resize(n);
}

}  // namespace

Status Collections::search_vectors(const Searching& searching, const std::vector<int64_t>& by_words, double least_alone,
                                   SearchTrace& trace, ScoredRanking& ranking) const {
  if (!embedder_) return Error{Code::unsupported, "there is no model for embeddings here"};
  TRY_ASSIGN(const int64_t embedder, find_embedder(searching.database, embedder_));
  if (embedder == 0) return Error{Code::not_found, "no document has vectors of '" + embedder_.name + "'"};
  auto start = Clock::now();
  TRY_ASSIGN(const auto vectors, embedder_.embed({&searching.call.query, 1}, searching.call.deadline));
  trace.embed_ms = ms_since(start);
  if (vectors.size() != 1 || vectors[0].size() != static_cast<size_t>(embedder_.dimensions)) {
    return Error{Code::internal, "the embedder: expected one vector of " + std::to_string(embedder_.dimensions)};
  }
  start = Clock::now();
  const std::unordered_set<int64_t> has_words(by_words.begin(), by_words.end());
  const std::vector<int64_t> none;
  std::unordered_set<int64_t> has_vectors;
  std::vector<ScoredChunk> all;
  for (const StoredCollection& collection : searching.collections) {
    TRY_ASSIGN(const auto near,
               shelf_.nearest(searching.database, collection.id, collection.revision, embedder, vectors[0],
                              searching.n_candidates, searching.adds_scores ? by_words : none));
    for (const NearChunk& chunk : near) {
      const bool shares_words = has_words.count(chunk.chunk) > 0;
      if (chunk.score >= embedder_.least_cosine && (chunk.score >= least_alone || shares_words)) {
        all.emplace_back(chunk.chunk, chunk.score);
      } else if (shares_words && searching.adds_scores) {
        ranking.others.emplace(chunk.chunk, chunk.score);  // not found so, but farther than others all the same
      }
      has_vectors.insert(chunk.chunk);
    }
  }
  // What was added before there was this embedder stands between what is near and what is not.
  for (const int64_t chunk : searching.adds_scores ? by_words : none) {
    if (has_vectors.count(chunk) == 0) ranking.others.emplace(chunk, std::max(embedder_.least_cosine, 0.0));
  }
  trace.vectors_ms = ms_since(start);
  take_best(std::move(all), searching.n_candidates, ranking);
  return Ok{};
}

Status Collections::match(const Searching& searching, const std::vector<ScoredRanking>& rankings, SearchTrace& trace,
                          std::vector<Fused>& fused) const {
  const auto start = Clock::now();
  const size_t n = std::min(kMatchedHits, fused.size());
  TRY_ASSIGN(store::Stemmer stemmer, store::Stemmer::open());
  TRY_ASSIGN(const double n_chunks, count_chunks(searching.database, searching.collections));
  TRY_ASSIGN(const MatchQuestion question, match_question(searching.call.query, searching.n_with, n_chunks, stemmer));
  TRY_ASSIGN(Statement read, searching.database.prepare("SELECT heading, text FROM chunks WHERE id = ?"));
  std::vector<Matcher::Text> texts(n);
  for (size_t i = 0; i < n; ++i) {
    if (must_end(searching.call)) return ended(searching.call);
    TRY_ASSIGN(const bool has_row, read.with(fused[i].id).step());
    if (!has_row) continue;  // gone meanwhile, and passed over by who reads the hits
    texts[i].points = score_in(rankings[0], fused[i].id, 0);
    TRY(stemmer.each(terms_text(read.text(0)) + terms_text(read.text(1)), [&](std::string_view stem) {
      const auto asked = question.numbers.find(std::string(stem));
      texts[i].words.push_back({asked == question.numbers.end() ? -1 : asked->second, matcher_->vector_of(stem)});
    }));
  }
  const std::vector<float> scores = matcher_->scores(question, texts);
  if (!std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); })) {
    return Error{Code::internal, "the matcher: expected finite scores"};
  }
  const double far = std::max(embedder_.least_cosine, 0.0);
  const bool has_cosines = !rankings[1].found.empty() || !rankings[1].others.empty();
  // Those behind them keep their order and what they are behind.
  const double last_fused = n > 0 ? fused[n - 1].score : 0;
  double least = 0;
  for (size_t i = 0; i < n; ++i) {
    const double cosine = has_cosines ? score_in(rankings[1], fused[i].id, far) : 0;
    fused[i].score = double{scores[i]} + matcher_->cosine_weight() * cosine;
    least = i == 0 ? fused[i].score : std::min(least, fused[i].score);
  }
  for (size_t i = n; i < fused.size(); ++i) fused[i].score += least - last_fused;
  std::stable_sort(fused.begin(), fused.begin() + static_cast<std::ptrdiff_t>(n),
                   [](const Fused& a, const Fused& b) { return a.score > b.score; });
  trace.match_ms = ms_since(start);
  return Ok{};
}

void Collections::rerank(const SearchCall& call, SearchTrace& trace, std::vector<Hit>& hits) const {
  const auto start = Clock::now();
  std::vector<std::string> texts;
  for (const Hit& hit : hits) texts.push_back(hit.title + "\n" + hit.text);
  const auto scores = scorer_(call.query, texts, call.deadline);
  trace.rerank_ms = ms_since(start);
  if (!scores) return skip(trace, "rerank", scores.error());
  if (scores->size() != hits.size()) {
    return skip(trace, "rerank", {Code::internal, "expected a score for each hit, found another number"});
  }
  for (size_t i = 0; i < hits.size(); ++i) hits[i].score = (*scores)[i];
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
}

Result<std::vector<Hit>> Collections::search(const SearchCall& call, SearchTrace* trace_out) const {
  TRY(check_call(call));
  SearchTrace own_trace;
  SearchTrace& trace = trace_out ? *trace_out : own_trace;
  TRY_ASSIGN(Reader reader, this->reader());
  reader->end_when([&call] { return must_end(call); });
  TRY_ASSIGN(Transaction snapshot, Transaction::begin(*reader, Database::Mode::read));
  Searching searching{call, *reader, {}, std::max(kLeastCandidates, 4 * call.k), embedder_.score_weight.has_value()};
  if (call.collections.empty()) {
    TRY_ASSIGN(searching.collections, collections_of(*reader, call.owner));
  }
  for (const std::string& name : call.collections) {
    TRY_ASSIGN(StoredCollection found, find_collection(*reader, call.owner, name));
    searching.collections.push_back(std::move(found));
  }
  std::vector<ScoredRanking> rankings(2);
  rankings[1].weight = call.vector_weight.value_or(embedder_.score_weight.value_or(embedder_.weight));
  Status by_words = Ok{}, by_vectors = Ok{};
  if (call.mode != SearchMode::vectors) {
    const auto start = Clock::now();
    const bool scores_all = searching.adds_scores && call.mode == SearchMode::hybrid;
    by_words = search_words(*reader, searching.collections, call.query, searching.n_candidates, scores_all,
                            searching.n_with, rankings[0]);
    trace.words_ms = ms_since(start);
  }
  // Vectors without a weight are near to everything: they only put something behind what words have found.
  const bool looks_near = call.mode != SearchMode::words && (!call.drops_unlike || rankings[1].weight > 0);
  if (looks_near && !must_end(call)) {
    const bool has_least = embedder_.least_cosine > -1;
    const double least_alone = !call.drops_unlike ? -1 : has_least ? embedder_.least_cosine : kLeastCosineAlone;
    by_vectors = search_vectors(searching, without_scores(rankings[0]).ids, least_alone, trace, rankings[1]);
  }
  if (must_end(call)) return ended(call);
  trace.n_words = rankings[0].found.size();
  trace.n_vectors = rankings[1].found.size();
  if (!by_words) skip(trace, "words", by_words.error());
  if (!by_vectors) skip(trace, "vectors", by_vectors.error());
  if (!by_words && (!by_vectors || call.mode == SearchMode::words)) return by_words.error();
  if (!by_vectors && call.mode == SearchMode::vectors) return by_vectors.error();
  const bool reranks = scorer_ && call.rerank;
  const size_t n_read = reranks ? std::max(kRerankedHits, call.k) : call.k;
  std::vector<Fused> fused =
      searching.adds_scores ? fuse_scores(rankings) : fuse({without_scores(rankings[0]), without_scores(rankings[1])});
  // What fuses ranks, by a larger encoder maybe, is not put into the order of smaller means.
  const bool may_match = matcher_ && call.match && call.mode == SearchMode::hybrid;
  const bool may_order = searching.adds_scores || !embedder_;
  if (may_match && may_order && by_words && !searching.n_with.empty() && !fused.empty()) {
    const Status matched = match(searching, rankings, trace, fused);
    if (must_end(call)) return ended(call);
    if (!matched) skip(trace, "match", matched.error());
  }
  TRY_ASSIGN(std::vector<Hit> hits, read_hits(*reader, searching.collections, fused, n_read));
  if (reranks && !hits.empty()) rerank(call, trace, hits);
  if (hits.size() > call.k) hits.resize(call.k);
  if (call.grader && !hits.empty()) grade(call, trace, hits);
  return Result<std::vector<Hit>>{std::move(hits)};
}

}  // namespace chimere::retrieval
