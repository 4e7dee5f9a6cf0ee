#include "odo/web_answer.h"

#include <utility>

#include "documents/pdf.h"
#include "odo/lookup.h"

namespace chimere::odo {
namespace {

constexpr int32_t kSynthesisTokens = 512;
constexpr double kSearchPart = 0.6;  // of the time, where an answer is to be written as well

Result<std::string> synthesis_of(const WebAsk& ask, const web::SearchOutcome& outcome, const SearchHelp& help,
                                 const web::WebContext& context) {
  if (outcome.passages.empty()) return Error{Code::not_found, "there is nothing to make an answer of"};
  std::vector<FoundText> found;
  for (const web::Passage& passage : outcome.passages) {
    if (found.size() == kToldTexts) break;
    found.push_back({passage.title.as_data(), passage.url, "", "", passage.text.as_data()});
  }
  orchestrator::ChatRequest request;
  request.messages.emplace_back();
  request.messages.back().role = "user";
  request.messages.back().content = ask.query;
  request.max_tokens = kSynthesisTokens;
  request.memory.notes = 0;
  request.stays_private = true;
  request.owner = help.owner;
  request.cache_scope = help.cache_scope;
  tell(found, 0, request);
  return answer_of(help, std::move(request), context);
}

}  // namespace

Result<std::string> web_answer(const web::WebSearch& search, const WebAsk& ask, const SearchHelp& help,
                               const web::WebContext& context) {
  web::SearchOptions options;
  options.depth = ask.depth;
  TRY_ASSIGN(web::SearchOutcome outcome,
             search.run(ask.query, options, hooks_of(help), ask.synthesizes ? context.share(kSearchPart) : context));
  std::string synthesis;
  if (ask.synthesizes) {
    const auto began = web::WebContext::Clock::now();
    web::SearchStep step{"synthesise", 0, 0, ""};
    if (auto written = synthesis_of(ask, outcome, help, context)) {
      synthesis = std::move(*written);
      step.n = 1;
    } else {
      step.note = "left out: " + written.error().message;
    }
    step.ms = std::chrono::duration<double, std::milli>(web::WebContext::Clock::now() - began).count();
    outcome.steps.push_back(std::move(step));
  }
  return web::search_answer(outcome, synthesis);
}

Result<std::string> pdf_page_text(std::string_view bytes, const web::WebContext& context) {
  documents::ReadOptions options;
  options.max_text_bytes = 1 << 20;  // as much as of any page
  const auto left = std::chrono::ceil<std::chrono::seconds>(context.left());
  options.pdf_time = std::clamp(left, std::chrono::seconds(1), options.pdf_time);
  options.is_cancelled = [&context] { return context.cancelled(); };
  TRY_ASSIGN(const documents::Document document, documents::read_pdf(bytes, "the page", options));
  std::string text;
  for (const documents::Block& block : document.blocks) text += (text.empty() ? "" : "\n\n") + block.text;
  return Result<std::string>{std::move(text)};
}

}  // namespace chimere::odo
