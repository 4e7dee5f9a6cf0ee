// page_fetcher.h  Pages of the web as text: through the guard, as robots.txt allows, no site hurried, nothing fetched
// twice.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "web/context.h"
#include "web/counters.h"
#include "web/guard.h"
#include "web/http_client.h"
#include "web/pacer.h"
#include "web/robots.h"
#include "web/timed_cache.h"
#include "web/untrusted.h"

namespace chimere::web {

struct Page {
  std::string url;   // behind redirects
  std::string type;  // "text/html"
  UntrustedText title, text;
  std::string language;
  std::string cut;  // the limit of HtmlLimits at which reading ended, or empty
};

class PageFetcher {
 public:
  struct Options {
    std::string agent = "Chimere";  // the name that robots.txt knows us by: letters
    std::vector<uint16_t> ports = {80, 443};
    size_t page_bytes = 4 * 1024 * 1024;  // unpacked
    std::chrono::milliseconds page_time{15'000};
    int redirects = 5;
    bool respects_robots = true;
    std::chrono::milliseconds pause{500};  // between two questions to one host
    size_t cache_bytes = 64 * 1024 * 1024;
    std::chrono::seconds page_ttl{24 * 3600}, failure_ttl{60}, robots_ttl{12 * 3600};
    // Text of a PDF, on the caller's thread, under limits of its own; without it PDFs are refused.
    std::function<Result<std::string>(std::string_view bytes, const WebContext&)> pdf_text;
    // For tests.
    std::function<Result<std::vector<Address>>(const std::string& host)> resolver;
    TimedCache<std::shared_ptr<const Page>>::Now now = [] { return std::chrono::steady_clock::now(); };
  };
  explicit PageFetcher(Options options, TestAllowance allowance = {});

  // Any thread; blocks. The same page for the same URL until its time is over; failures are remembered for a shorter
  // one, unless they were the caller's (cancelled, or less time than page_time).
  Result<std::shared_ptr<const Page>> fetch(const std::string& url, const WebContext& context);

  WebCounters& counters() { return counters_; }

 private:
  Result<std::shared_ptr<const Page>> fetch_now(const Url& url, const WebContext& context);
  Result<Page> read_page(const HttpAnswer& answer, const WebContext& context) const;
  Status check_robots(const Url& url, const WebContext& context);
  Result<std::shared_ptr<const Robots>> robots_of(const Url& url, const WebContext& context);
  Result<std::shared_ptr<const Robots>> fetch_robots(const Url& url, const WebContext& context) const;
  HttpRequest guarded_request(const Url& url, const WebContext& context) const;

  const Options options_;
  const Guard guard_;
  const HttpClient client_;
  Pacer pacer_;
  WebCounters counters_;
  TimedCache<std::shared_ptr<const Page>> pages_;
  TimedCache<Error> failures_;
  TimedCache<std::shared_ptr<const Robots>> robots_;
  TimedCache<Error> failed_robots_;
  // While a site's robots.txt is on its way, others that want it wait; sites that share a lock wait for each other.
  std::array<std::mutex, 16> robots_turns_;
};

}  // namespace chimere::web
