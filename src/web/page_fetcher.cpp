// page_fetcher.cpp  One page: cache, robots.txt, turn, exchange, text.
#include "web/page_fetcher.h"

#include <thread>

#include "base/hash.h"
#include "web/charset.h"
#include "web/html_text.h"

namespace chimere::web {
namespace {

constexpr size_t kFailureCacheBytes = 1024 * 1024;
constexpr size_t kRobotsCacheBytes = 4 * 1024 * 1024;

// "text/html" of "Text/HTML; charset=utf-8".
std::string media_type(std::string_view header) {
  std::string type(header.substr(0, std::min(header.find(';'), header.size())));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

bool is_html(const std::string& type) { return type == "text/html" || type == "application/xhtml+xml"; }
bool is_plain(const std::string& type) {
  return type == "text/plain" || type == "text/markdown" || type == "application/json";
}

std::string limited_text(std::string text) {
  const size_t limit = HtmlLimits().text_bytes;
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

HttpClient::Options client_options(const PageFetcher::Options& options) {
  HttpClient::Options out;
  out.user_agent = options.agent;
  out.resolver = options.resolver;
  return out;
}

}  // namespace

PageFetcher::PageFetcher(Options options, TestAllowance allowance)
    : options_(std::move(options)),
      guard_(options_.ports, std::move(allowance)),
      client_(client_options(options_)),
      pacer_(options_.pause),
      pages_(options_.cache_bytes, options_.page_ttl, options_.now),
      failures_(kFailureCacheBytes, options_.failure_ttl, options_.now),
      robots_(kRobotsCacheBytes, options_.robots_ttl, options_.now),
      failed_robots_(kFailureCacheBytes, options_.failure_ttl, options_.now) {}

Result<std::shared_ptr<const Page>> PageFetcher::fetch(const std::string& url, const WebContext& context) {
  const auto failed = [this](Error error) {
    ++counters_.pages_failed;
    if (error.code == Code::invalid_argument) ++counters_.refused;
    return error;
  };
  auto parsed = parse_url(url);
  if (!parsed) return failed(std::move(parsed.error()));
  if (auto page = pages_.find(parsed->text)) {
    ++counters_.pages_from_cache;
    return std::move(*page);
  }
  if (auto failure = failures_.find(parsed->text)) return failed(std::move(*failure));
  const bool has_full_time = context.left() >= options_.page_time;
  auto page = fetch_now(*parsed, context.within(options_.page_time));
  if (!page) {
    const bool is_callers = context.cancelled() || (page.error().code == Code::exhausted && !has_full_time);
    if (!is_callers) failures_.put(parsed->text, page.error(), page.error().message.size());
    return failed(std::move(page.error()));
  }
  ++counters_.pages;
  const Page& read = **page;
  pages_.put(parsed->text, *page, read.url.size() + read.title.as_data().size() + read.text.as_data().size());
  return page;
}

HttpRequest PageFetcher::guarded_request(const Url& url, const WebContext& context) const {
  HttpRequest request;
  request.url = url.text;
  request.limits.total = std::max(context.left(), std::chrono::milliseconds(1));
  request.limits.redirects = options_.redirects;
  request.allow_url = [this](const Url& next) { return guard_.check_url(next); };
  request.allow_address = [this](const Address& address) { return guard_.check_address(address); };
  request.is_cancelled = context.is_cancelled;
  return request;
}

Result<std::shared_ptr<const Page>> PageFetcher::fetch_now(const Url& url, const WebContext& context) {
  HttpRequest request = guarded_request(url, context);
  request.headers = {
      {"Accept", "text/html, application/xhtml+xml, text/plain;q=0.8, application/pdf;q=0.7, application/json;q=0.6"}};
  request.limits.body_bytes = options_.page_bytes;
  request.allow_url = [&](const Url& next) -> Status {
    TRY(guard_.check_url(next));
    if (options_.respects_robots) TRY(check_robots(next, context));
    return pacer_.wait(next.host, context);
  };
  request.on_head = [&](const HttpAnswer& answer) -> Status {
    if (answer.status < 200 || answer.status > 299) {
      return Error{Code::not_found, answer.url + ": the server answered with " + std::to_string(answer.status)};
    }
    const std::string type = media_type(answer.header("content-type"));
    if (type == "application/pdf" && !options_.pdf_text) {
      return Error{Code::unsupported, answer.url + ": is a PDF, and nothing here reads PDFs"};
    }
    if (!is_html(type) && !is_plain(type) && type != "application/pdf") {
      return Error{Code::unsupported, answer.url + ": is \"" + type + "\"; expected HTML, text, JSON or PDF"};
    }
    return Ok{};
  };
  TRY_ASSIGN(const HttpAnswer answer, client_.exchange(request));
  counters_.page_bytes += answer.body.size();
  TRY_ASSIGN(Page page, read_page(answer, context));
  return std::shared_ptr<const Page>(std::make_shared<Page>(std::move(page)));
}

Result<Page> PageFetcher::read_page(const HttpAnswer& answer, const WebContext& context) const {
  Page page;
  page.url = answer.url;
  page.type = media_type(answer.header("content-type"));
  const std::string charset = charset_of_type(answer.header("content-type"));
  if (is_html(page.type)) {
    HtmlLimits limits;
    limits.input_bytes = options_.page_bytes;
    limits.time = std::min(limits.time, context.left());
    TRY_ASSIGN(HtmlText html, html_text(answer.body, charset, limits));
    page.title = UntrustedText(std::move(html.title));
    page.text = UntrustedText(std::move(html.text));
    page.language = std::move(html.language);
    page.cut = std::move(html.cut);
  } else if (page.type == "application/pdf") {
    TRY_ASSIGN(std::string text, options_.pdf_text(answer.body, context));
    page.text = UntrustedText(limited_text(decoded_text(text, "utf-8")));
  } else {
    page.text = UntrustedText(limited_text(decoded_text(answer.body, charset)));
  }
  if (page.text.empty()) return Error{Code::not_found, answer.url + ": has no text"};
  return Result<Page>{std::move(page)};
}

Status PageFetcher::check_robots(const Url& url, const WebContext& context) {
  TRY_ASSIGN(const std::shared_ptr<const Robots> robots, robots_of(url, context));
  if (robots->allows(url.target)) return Ok{};
  return Error{Code::invalid_argument,
               "refused: robots.txt of \"" + url.host + "\" asks to leave " + url.target + " alone"};
}

Result<std::shared_ptr<const Robots>> PageFetcher::robots_of(const Url& url, const WebContext& context) {
  const std::string key = url.origin();
  std::unique_lock turn(robots_turns_[hash64(key) % robots_turns_.size()], std::defer_lock);
  while (!turn.try_lock()) {
    TRY(context.check("robots.txt"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (auto known = robots_.find(key)) return std::move(*known);
  if (auto failure = failed_robots_.find(key)) return std::move(*failure);
  auto robots = fetch_robots(url, context);
  if (robots) {
    robots_.put(key, *robots, (*robots)->n_bytes());
  } else {
    TRY(context.check("robots.txt"));  // the caller's end says nothing about the site
    failed_robots_.put(key, robots.error(), robots.error().message.size());
  }
  return robots;
}

// RFC 9309, 2.3.1: one that is not there allows everything; where it cannot be read now, nothing is allowed.
Result<std::shared_ptr<const Robots>> PageFetcher::fetch_robots(const Url& url, const WebContext& context) const {
  TRY_ASSIGN(const Url place, resolve_url(url, "/robots.txt"));
  HttpRequest request = guarded_request(place, context);
  request.limits.body_bytes = 4 * kMaxRobotsBytes;
  std::string text;
  request.on_body = [&](std::string_view piece) -> Status {
    if (text.size() < kMaxRobotsBytes) text += piece;
    return Ok{};
  };
  TRY_ASSIGN(const HttpAnswer answer, client_.exchange(request));
  if (answer.status >= 500) {
    return Error{Code::io,
                 answer.url + ": answered with " + std::to_string(answer.status) + ", so nothing is fetched there"};
  }
  const bool is_there = answer.status >= 200 && answer.status < 300;
  return std::shared_ptr<const Robots>(
      std::make_shared<Robots>(is_there ? Robots::parse(text, options_.agent) : Robots::allow_all()));
}

}  // namespace chimere::web
