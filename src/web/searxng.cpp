// searxng.cpp  The question as a URL, the answer as hits.
#include "web/searxng.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "text/json.h"
#include "text/utf8.h"

namespace chimere::web {
namespace {

constexpr size_t kMaxTitleBytesOfHit = 300;
constexpr size_t kMaxSnippetBytes = 1000;
constexpr size_t kMaxEngines = 20;
constexpr size_t kMaxCategories = 10;

bool is_word(std::string_view text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == ' ';
  });
}

// At most `limit` bytes, whole characters, one space for any white space.
std::string short_line(const std::string& text, size_t limit) {
  std::string out;
  for (size_t pos = 0; pos < text.size() && out.size() < limit;) {
    const CodePoint c = decode_at(text, pos);
    const bool is_space = c.n_bytes == 1 && static_cast<unsigned char>(text[pos]) <= ' ';
    if (is_space) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else if (c.value != kInvalidChar) {
      if (out.size() + c.n_bytes > limit) break;
      out.append(text, pos, c.n_bytes);
    }
    pos += c.n_bytes;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string cut_between_words(const std::string& text, size_t limit) {
  const std::string line = short_line(text, limit + 1);
  if (line.size() <= limit) return line;
  const std::string cut = short_line(line, limit);
  const size_t space = cut.rfind(' ');
  return space == std::string::npos || space < limit / 2 ? cut : cut.substr(0, space);
}

std::string string_at(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// "engines": ["a", "b"] with "positions": [1, 3]; searx before 1.0 says "engine" alone, and others no positions: then
// the place in the answer stands in.
std::vector<EngineRank> ranks_of(const Json& result, int place) {
  std::vector<EngineRank> ranks;
  const auto engines = result.find("engines");
  const auto positions = result.find("positions");
  if (engines != result.end() && engines->is_array()) {
    for (size_t i = 0; i < engines->size() && i < kMaxEngines; ++i) {
      if (!(*engines)[i].is_string()) continue;
      int position = place;
      if (positions != result.end() && positions->is_array() && i < positions->size() &&
          (*positions)[i].is_number_integer()) {
        position = static_cast<int>(std::clamp<int64_t>((*positions)[i].get<int64_t>(), 1, 1000));
      }
      ranks.push_back({short_line((*engines)[i].get<std::string>(), 50), position});
    }
  }
  if (ranks.empty()) ranks.push_back({short_line(string_at(result, "engine"), 50), place});
  return ranks;
}

std::string unresponsive_engines(const Json& answer) {
  const auto engines = answer.find("unresponsive_engines");
  if (engines == answer.end() || !engines->is_array()) return {};
  std::string note;
  for (size_t i = 0; i < engines->size() && i < kMaxEngines; ++i) {
    const Json& engine = (*engines)[i];
    if (!engine.is_array() || engine.empty() || !engine[0].is_string()) continue;
    note += (note.empty() ? "no answer from " : ", ") + short_line(engine[0].get<std::string>(), 50);
    if (engine.size() > 1 && engine[1].is_string()) note += " (" + short_line(engine[1].get<std::string>(), 100) + ")";
  }
  return note;
}

}  // namespace

Result<std::string> searxng_target(const SearchQuery& query) {
  const std::string text = cut_between_words(query.text, kMaxQueryBytes);
  if (text.empty()) return Error{Code::invalid_argument, "search: the query is empty"};
  std::string target = "?q=" + percent_encoded(text) + "&format=json";
  if (!query.language.empty()) {
    if (!is_word(query.language, 16))
      return Error{Code::invalid_argument, "search: \"" + short_line(query.language, 40) +
                                               "\" is no language; expected one like \"fr\" or \"pt-BR\""};
    target += "&language=" + percent_encoded(query.language);
  }
  if (query.categories.size() > kMaxCategories) return Error{Code::invalid_argument, "search: more than 10 categories"};
  for (size_t i = 0; i < query.categories.size(); ++i) {
    if (!is_word(query.categories[i], 40))
      return Error{Code::invalid_argument, "search: \"" + short_line(query.categories[i], 40) + "\" is no category"};
    target += (i == 0 ? "&categories=" : ",") + percent_encoded(query.categories[i]);
  }
  if (!query.time_range.empty()) {
    const std::string& range = query.time_range;
    if (range != "day" && range != "week" && range != "month" && range != "year") {
      return Error{Code::invalid_argument,
                   "search: the time range is \"" + short_line(range, 40) + "\"; expected day, week, month or year"};
    }
    target += "&time_range=" + range;
  }
  if (query.page < 1 || query.page > 10)
    return Error{Code::invalid_argument, "search: page " + std::to_string(query.page) + "; expected 1 to 10"};
  if (query.page > 1) target += "&pageno=" + std::to_string(query.page);
  return Result<std::string>{std::move(target)};
}

Result<SearchHits> parse_searxng(std::string_view json, size_t max_hits) {
  JsonLimits limits;
  limits.depth = 16;
  limits.values = 200'000;
  limits.key_comparisons = 5'000'000;
  auto answer = parse_json(json, limits);
  if (!answer) return Error{Code::corrupt, "the search server's answer is no JSON: " + answer.error().message};
  const auto results = answer->is_object() ? answer->find("results") : answer->end();
  if (!answer->is_object() || results == answer->end() || !results->is_array()) {
    return Error{Code::corrupt, "the search server's answer has no list \"results\""};
  }
  SearchHits out;
  int place = 0;
  for (const Json& result : *results) {
    if (out.hits.size() >= max_hits) break;
    if (!result.is_object()) continue;
    ++place;
    const auto url = parse_url(string_at(result, "url"));
    if (!url) continue;
    SearchHit hit;
    hit.url = url->text;
    hit.title = UntrustedText(short_line(string_at(result, "title"), kMaxTitleBytesOfHit));
    hit.snippet = UntrustedText(short_line(string_at(result, "content"), kMaxSnippetBytes));
    hit.ranks = ranks_of(result, place);
    if (const auto score = result.find("score"); score != result.end() && score->is_number()) {
      hit.score = score->get<double>();
      if (!std::isfinite(hit.score)) hit.score = 0;
    }
    out.hits.push_back(std::move(hit));
  }
  out.note = unresponsive_engines(*answer);
  return Result<SearchHits>{std::move(out)};
}

Result<std::unique_ptr<Searxng>> Searxng::create(Options options) {
  while (!options.endpoint.empty() && options.endpoint.back() == '/') options.endpoint.pop_back();
  auto url = parse_url(options.endpoint);
  if (!url) return Error{Code::invalid_argument, "search server: " + url.error().message};
  if (url->target.find('?') != std::string::npos) {
    return Error{Code::invalid_argument,
                 "search server: \"" + options.endpoint + "\" has parameters; expected the address alone"};
  }
  return std::unique_ptr<Searxng>(new Searxng(std::move(options), std::move(*url)));
}

Searxng::Searxng(Options options, Url endpoint)
    : options_(std::move(options)),
      endpoint_(std::move(endpoint)),
      client_(HttpClient::Options{}),
      cache_(options_.cache_bytes, options_.ttl, options_.now) {}

Result<SearchHits> Searxng::search(const SearchQuery& query, const WebContext& context) {
  TRY_ASSIGN(const std::string target, searxng_target(query));
  if (auto hits = cache_.find(target)) {
    ++counters_.searches_from_cache;
    return std::move(*hits);
  }
  auto hits = search_now(target, context.within(options_.time));
  if (!hits) {
    ++counters_.searches_failed;
    return hits;
  }
  ++counters_.searches;
  size_t bytes = hits->note.size();
  for (const SearchHit& hit : hits->hits) {
    bytes += sizeof(SearchHit) + hit.url.size() + hit.title.as_data().size() + hit.snippet.as_data().size() +
             hit.ranks.size() * sizeof(EngineRank);
  }
  if (!hits->hits.empty()) cache_.put(target, *hits, bytes);
  return hits;
}

Result<SearchHits> Searxng::search_now(const std::string& target, const WebContext& context) const {
  TRY(context.check("search"));
  HttpRequest request;
  request.url = options_.endpoint + "/search" + target;
  request.headers = options_.headers;
  request.headers.push_back({"Accept", "application/json"});
  request.limits.total = std::max(context.left(), std::chrono::milliseconds(1));
  request.limits.connect = request.limits.total;
  request.limits.body_bytes = options_.answer_bytes;
  request.is_cancelled = context.is_cancelled;
  const auto answer = client_.exchange(request);
  const std::string server = "search server " + endpoint_.origin();
  if (!answer) return Error{answer.error().code, server + ": " + answer.error().message};
  if (answer->status == 403) {
    return Error{Code::unsupported, server + " answered with 403: add \"json\" to search.formats in its settings.yml"};
  }
  if (answer->status == 429) {
    return Error{Code::exhausted,
                 server + " answered with 429: too many questions; see server.limiter in its settings.yml"};
  }
  if (answer->status != 200) {
    return Error{Code::io, server + " answered with " + std::to_string(answer->status) + "; expected 200"};
  }
  return parse_searxng(answer->body, options_.max_hits);
}

}  // namespace chimere::web
