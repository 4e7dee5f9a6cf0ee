#include "odo/own_tools.h"

#include <chrono>
#include <thread>
#include <utility>

#include "text/json.h"

namespace chimere::odo {
namespace {

using tools::ToolContext;
using tools::ToolResult;

constexpr size_t kMaxPageBytes = 16 << 10;  // of a page that the model reads
constexpr std::chrono::milliseconds kLookForResult{2};
constexpr const char* kNobody = "nobody's memory can be told: the request has no key and no user";
constexpr const char* kNoModel = "no model is loaded: the first request for one loads it";

// The schema of one text, which every one of these takes.
std::string one_text(const char* name, const char* description) {
  Json schema = {{"type", "object"}, {"required", Json::array({name})}};
  schema["properties"][name] = {{"type", "string"}, {"description", description}};
  return to_text(schema);
}

ToolResult failed(const std::string& message) { return {"Error: " + message, true}; }

// A tool that takes one text, which the toolbox has checked to be there.
class TextTool : public tools::Tool {
 public:
  TextTool(const char* name, const char* description, const char* argument, const char* about)
      : spec_{name, description, one_text(argument, about)}, argument_(argument) {}

  const tools::ToolSpec& spec() const override { return spec_; }
  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    const auto json = parse_json(arguments);
    if (!json || !json->is_object() || !json->contains(argument_) || !(*json)[argument_].is_string()) {
      return failed(std::string("expected a text as `") + argument_ + "`");
    }
    return answer((*json)[argument_].get<std::string>(), context);
  }

 protected:
  virtual ToolResult answer(const std::string& text, const ToolContext& context) = 0;

 private:
  const tools::ToolSpec spec_;
  const char* const argument_;
};

ToolResult found_result(const std::vector<FoundText>& found, const std::vector<web::SearchStep>& stages) {
  const std::string detail = sources_detail(found, stages);
  if (found.empty()) return {"Nothing was found.", false, false, detail};
  return {as_numbered(found), false, true, detail, found};
}

class Retrieve : public TextTool {
 public:
  explicit Retrieve(retrieval::Collections& collections)
      : TextTool("retrieve", "Finds passages in the user's own documents.", "query", "What to look for."),
        collections_(collections) {}

 private:
  ToolResult answer(const std::string& text, const ToolContext& context) override {
    retrieval::SearchCall call;
    call.owner = context.key;
    call.query = text;
    call.deadline = context.deadline;
    call.is_cancelled = context.is_cancelled;
    std::vector<web::SearchStep> stages;
    const auto found = find_documents(collections_, std::move(call), stages);
    return found ? found_result(*found, stages) : failed(found.error().message);
  }

  retrieval::Collections& collections_;
};

class WebSearchTool : public TextTool {
 public:
  WebSearchTool(const web::WebSearch& search, retrieval::PairScorer scorer)
      : TextTool("web_search", "Searches the web and gives passages of the best pages.", "query", "What to look for."),
        search_(search) {
    help_.scorer = std::move(scorer);
  }

 private:
  ToolResult answer(const std::string& text, const ToolContext& context) override {
    web::SearchOptions options;
    options.depth = web::kQuickSearch;
    const auto outcome = search_.run(text, options, hooks_of(help_), {context.deadline, context.is_cancelled});
    if (!outcome) return failed(outcome.error().message);
    std::vector<FoundText> found;
    for (const web::Passage& passage : outcome->passages) {
      if (found.size() == kToldTexts) break;
      found.push_back({passage.title.as_data(), passage.url, "", "", passage.text.as_data()});
    }
    return found_result(found, outcome->steps);
  }

  const web::WebSearch& search_;
  SearchHelp help_;  // the query is the model's own already
};

class Fetch : public TextTool {
 public:
  explicit Fetch(web::PageFetcher& pages)
      : TextTool("fetch", "Reads a web page and gives its text.", "url", "The address, with https://."),
        pages_(pages) {}

 private:
  ToolResult answer(const std::string& url, const ToolContext& context) override {
    const auto page = pages_.fetch(url, {context.deadline, context.is_cancelled});
    if (!page) return failed(page.error().message);
    const web::Page& read = **page;
    std::string text = read.text.as_data().substr(0, kMaxPageBytes);
    const std::vector<FoundText> found = {{read.title.as_data(), read.url, "", "", text}};
    return {read.title.as_data() + "\n" + text, false, true, sources_detail(found, {})};
  }

  web::PageFetcher& pages_;
};

// The result of a job of the service's thread. What was begun is finished there, whoever waits for it.
template <class T>
Result<T> result_of(orchestrator::ServiceJob<T>& job, const ToolContext& context) {
  while (!context.is_cancelled() && std::chrono::steady_clock::now() < context.deadline) {
    if (auto result = job.poll()) return std::move(*result);
    std::this_thread::sleep_for(kLookForResult);
  }
  return Error{Code::cancelled, "it took too long"};
}

class Remember : public TextTool {
 public:
  explicit Remember(MemoryFinder memory)
      : TextTool("remember", "Keeps a fact that the user told, for later conversations.", "text",
                 "The fact, as a sentence of its own."),
        memory_(std::move(memory)) {}

 private:
  ToolResult answer(const std::string& text, const ToolContext& context) override {
    if (context.owner.empty()) return failed(kNobody);
    const auto memory = memory_();
    if (!memory) return failed(kNoModel);
    orchestrator::LessonCall call;
    call.owner = context.owner;
    call.text = text;
    call.source = "remember";
    const auto job = memory->learn(std::move(call), {});
    const auto learned = result_of(*job, context);
    if (!learned) return failed(learned.error().message);
    if (!learned->learned) return failed("there is no room: " + learned->no_room);
    return {"Kept as note " + std::to_string(learned->note) + "."};
  }

  const MemoryFinder memory_;
};

class Forget : public TextTool {
 public:
  explicit Forget(MemoryFinder memory)
      : TextTool("forget", "Forgets a fact that was kept with remember.", "text", "The fact, in its words."),
        memory_(std::move(memory)) {}

 private:
  ToolResult answer(const std::string& text, const ToolContext& context) override {
    if (context.owner.empty()) return failed(kNobody);
    const auto memory = memory_();
    if (!memory) return failed(kNoModel);
    const auto listing = memory->list_notes(context.owner, {});
    const auto notes = result_of(*listing, context);
    if (!notes) return failed(notes.error().message);
    for (const retrieval::Note& note : *notes) {
      // What a person taught by other ways is theirs to take back.
      if (note.source != "remember" || note.text.find(text) == std::string::npos) continue;
      orchestrator::ForgetCall call;
      call.owner = context.owner;
      call.note = note.id;
      const auto job = memory->forget(std::move(call), {});
      const auto forgotten = result_of(*job, context);
      return forgotten ? ToolResult{"Forgotten: " + note.text} : failed(forgotten.error().message);
    }
    return failed("no kept fact has these words");
  }

  const MemoryFinder memory_;
};

}  // namespace

std::shared_ptr<tools::Tool> make_retrieve(retrieval::Collections& collections) {
  return std::make_shared<Retrieve>(collections);
}
std::shared_ptr<tools::Tool> make_web_search(const web::WebSearch& search, retrieval::PairScorer scorer) {
  return std::make_shared<WebSearchTool>(search, std::move(scorer));
}
std::shared_ptr<tools::Tool> make_fetch(web::PageFetcher& pages) { return std::make_shared<Fetch>(pages); }
MemoryFinder memory_of(orchestrator::ChatService& chat) {
  return [&chat] { return std::shared_ptr<orchestrator::MemoryService>(std::shared_ptr<void>(), &chat.memory()); };
}
std::shared_ptr<tools::Tool> make_remember(MemoryFinder memory) {
  return std::make_shared<Remember>(std::move(memory));
}
std::shared_ptr<tools::Tool> make_forget(MemoryFinder memory) { return std::make_shared<Forget>(std::move(memory)); }

}  // namespace chimere::odo
