#include "odo/lookup.h"

#include <algorithm>
#include <chrono>
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

}  // namespace

void retrieve(const Shelves& shelves, const std::vector<std::string>& collections, const std::string& question,
              const tools::ToolContext& context, RunTeller& teller, std::vector<FoundText>& found) {
  const size_t before = found.size();
  const int step = teller.begin("retrieve", "looks in the collections");
  if (!shelves.collections) return teller.end(step, State::skipped, "this server has no collections");
  retrieval::SearchCall call;
  call.owner = context.key;
  call.collections = collections;
  call.query = question.substr(0, retrieval::kMaxQueryBytes);
  call.k = kToldTexts;
  call.deadline = std::min(context.deadline, std::chrono::steady_clock::now() + kLookupTime);
  call.is_cancelled = context.is_cancelled;
  const auto hits = shelves.collections->search(call);
  if (!hits) return teller.end(step, State::failed, hits.error().message);
  for (const retrieval::Hit& hit : *hits) {
    // What is near by its vector alone is near to everything.
    if (hit.word_rank == 0) continue;
    found.push_back({hit.title, "", hit.document, hit.place, hit.text, hit.collection});
  }
  teller.end(step, State::done, counted(found.size() - before), sources_detail(found, before));
}

void search_web(const Shelves& shelves, const web::SearchDepth& depth, const std::string& question,
                const tools::ToolContext& context, RunTeller& teller, std::vector<FoundText>& found) {
  const size_t before = found.size();
  const int step = teller.begin("web", "searches the web");
  if (!shelves.web) return teller.end(step, State::skipped, "no search server is configured (serve --searxng URL)");
  web::SearchOptions options;
  options.depth = depth;
  const web::WebContext limits{std::min(context.deadline, std::chrono::steady_clock::now() + kLookupTime),
                               context.is_cancelled};
  const auto outcome = shelves.web->run(question, options, {}, limits);
  if (!outcome) return teller.end(step, State::failed, outcome.error().message);
  for (const web::Passage& passage : outcome->passages) {
    if (found.size() == before + kToldTexts) break;
    found.push_back({passage.title.as_data(), passage.url, "", "", passage.text.as_data()});
  }
  teller.end(step, State::done, counted(found.size() - before), sources_detail(found, before));
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

std::string sources_detail(const std::vector<FoundText>& found, size_t first) {
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
  return to_text(json);
}

std::string as_numbered(const std::vector<FoundText>& found) {
  std::string text;
  for (size_t i = 0; i < found.size(); ++i) {
    text += "[" + std::to_string(i + 1) + "] " + name_of(found[i]) + "\n" + found[i].text + "\n\n";
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

std::vector<orchestrator::Citation> citations_in(std::string_view answer, const std::vector<FoundText>& found) {
  std::vector<orchestrator::Citation> citations;
  size_t n_chars = 0;  // before `i`
  for (size_t i = 0; i < answer.size(); ++i) {
    const bool begins_char = (static_cast<unsigned char>(answer[i]) & 0xC0) != 0x80;
    if (answer[i] == '[') {
      size_t end = i + 1, n = 0;
      while (end < answer.size() && end < i + 4 && answer[end] >= '0' && answer[end] <= '9') {
        n = 10 * n + static_cast<size_t>(answer[end++] - '0');
      }
      if (end < answer.size() && answer[end] == ']' && n >= 1 && n <= found.size()) {
        const FoundText& text = found[n - 1];
        citations.push_back({n_chars, n_chars + (end + 1 - i), name_of(text), text.url, text.document});
      }
    }
    n_chars += begins_char;
  }
  return citations;
}

}  // namespace chimere::odo
