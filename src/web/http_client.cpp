// http_client.cpp  Exchanges over libcurl's multi interface, whose loop lets us look at limits and cancellation.
#include "web/http_client.h"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <optional>

namespace chimere::web {
namespace {

using HttpClock = std::chrono::steady_clock;

constexpr int kPollMs = 50;  // how late a cancellation may be noticed

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeList>;

void append_line(CurlList& list, const std::string& line) {
  list.reset(curl_slist_append(list.release(), line.c_str()));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

Status check_request(const HttpRequest& request) {
  if (!is_token(request.method)) return Error{Code::invalid_argument, "HTTP request: the method is no token"};
  for (const HttpHeader& header : request.headers) {
    const std::string name = lower_case(header.name);
    if (!is_token(header.name) || name == "host" || name == "content-length" || name == "transfer-encoding") {
      return Error{Code::invalid_argument, "HTTP request: the header name \"" + header.name + "\" is not allowed"};
    }
    for (const char c : header.value) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) {
        return Error{Code::invalid_argument,
                     "HTTP request: the header \"" + header.name + "\" has a control character"};
      }
    }
  }
  return Ok{};
}

Error time_is_up(const std::string& url, const char* what, std::chrono::milliseconds limit) {
  return {Code::exhausted, url + ": " + what + " after " + std::to_string(limit.count()) + " ms"};
}

// One request and its answer, without what a redirect leads to.
class Hop {
 public:
  Hop(const HttpClient::Options& options, const HttpRequest& request, const Url& url, HttpClock::time_point deadline)
      : options_(options), request_(request), url_(url), deadline_(deadline) {}

  // `follows`: a redirect's body is not read.
  Status run(const std::string& method, const std::vector<HttpHeader>& headers, const std::string* body, bool follows);

  HttpAnswer& answer() { return answer_; }
  // Where a redirect leads to; empty where the answer is none.
  std::string location() const {
    const int s = answer_.status;
    return s == 301 || s == 302 || s == 303 || s == 307 || s == 308 ? std::string(answer_.header("location")) : "";
  }

 private:
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static size_t take_head_line(char* data, size_t size, size_t n, void* self);
  static size_t take_body(char* data, size_t size, size_t n, void* self);
  bool head_line(std::string_view line);
  bool end_of_head();
  bool body_piece(std::string_view piece);
  bool fail(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }

  void set_options(CURL* easy, const std::string& method, const std::string* body);
  Status resolve(CURL* easy);
  Status perform(CURL* easy);
  std::optional<Error> look_at_limits();

  const HttpClient::Options& options_;
  const HttpRequest& request_;
  const Url& url_;
  const HttpClock::time_point deadline_;
  bool follows_ = false;

  CurlList header_list_, resolved_;
  HttpAnswer answer_;
  size_t head_bytes_ = 0, body_bytes_ = 0;
  bool head_is_over_ = false, ends_early_ = false;
  HttpClock::time_point last_byte_;
  std::optional<Error> error_, refused_address_;
};

curl_socket_t Hop::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  Hop& hop = *static_cast<Hop*>(self);
  const std::optional<Address> peer = address_of(&address->addr);
  if (!peer) {
    hop.refused_address_ = Error{Code::invalid_argument, hop.url_.text + ": its address is neither IPv4 nor IPv6"};
    return CURL_SOCKET_BAD;
  }
  if (hop.request_.allow_address) {
    if (Status allowed = hop.request_.allow_address(*peer); !allowed) {
      hop.refused_address_ = std::move(allowed.error());
      return CURL_SOCKET_BAD;
    }
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

size_t Hop::take_head_line(char* data, size_t size, size_t n, void* self) {
  return static_cast<Hop*>(self)->head_line({data, size * n}) ? size * n : 0;
}

size_t Hop::take_body(char* data, size_t size, size_t n, void* self) {
  if (size * n == 0) return 0;
  return static_cast<Hop*>(self)->body_piece({data, size * n}) ? size * n : 0;
}

bool Hop::head_line(std::string_view line) {
  last_byte_ = HttpClock::now();
  head_bytes_ += line.size();
  if (head_bytes_ > request_.limits.head_bytes) {
    return fail({Code::exhausted, url_.text + ": the head of the answer is longer than " +
                                      std::to_string(request_.limits.head_bytes) + " bytes"});
  }
  if (head_is_over_) return true;  // fields behind the body
  if (line.substr(0, 5) == "HTTP/") {
    answer_.headers.clear();
    const size_t space = line.find(' ');
    answer_.status = space == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    return true;
  }
  const std::string_view text = trimmed(line);
  if (text.empty()) return answer_.status / 100 == 1 || end_of_head();
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return true;
  answer_.headers.push_back({lower_case(trimmed(text.substr(0, colon))), std::string(trimmed(text.substr(colon + 1)))});
  return true;
}

bool Hop::end_of_head() {
  head_is_over_ = true;
  if (follows_ && !location().empty()) {
    ends_early_ = true;
    return false;
  }
  if (request_.on_head) {
    if (Status wanted = request_.on_head(answer_); !wanted) return fail(std::move(wanted.error()));
  }
  return true;
}

bool Hop::body_piece(std::string_view piece) {
  last_byte_ = HttpClock::now();
  body_bytes_ += piece.size();
  if (request_.limits.body_bytes > 0 && body_bytes_ > request_.limits.body_bytes) {
    return fail({Code::exhausted,
                 url_.text + ": the answer is longer than " + std::to_string(request_.limits.body_bytes) + " bytes"});
  }
  if (!request_.on_body) {
    answer_.body.append(piece);
    return true;
  }
  if (Status wanted = request_.on_body(piece); !wanted) return fail(std::move(wanted.error()));
  return true;
}

void Hop::set_options(CURL* easy, const std::string& method, const std::string* body) {
  const auto set = [easy](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_URL, url_.text.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for the system's answer about a name when we are done
  set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_PROXY, options_.proxy.c_str());  // "": none, not even that of the environment
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_NETRC, long{CURL_NETRC_IGNORED});
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
  set(CURLOPT_USERAGENT, options_.user_agent.c_str());
  set(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
  set(CURLOPT_HTTPHEADER, header_list_.get());
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<int64_t>(1, request_.limits.connect.count())));

  set(CURLOPT_OPENSOCKETFUNCTION, &Hop::open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Hop::take_head_line);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Hop::take_body);
  set(CURLOPT_WRITEDATA, this);

  if (body != nullptr) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
    set(CURLOPT_POSTFIELDS, body->c_str());
  }
  if (method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (method != "GET" || body != nullptr) {
    set(CURLOPT_CUSTOMREQUEST, method.c_str());
  }
}

Status Hop::resolve(CURL* easy) {
  if (!options_.resolver || parse_address(url_.host)) return Ok{};
  TRY_ASSIGN(const std::vector<Address> addresses, options_.resolver(url_.host));
  if (addresses.empty()) return Error{Code::io, url_.text + ": no address is known for \"" + url_.host + "\""};
  std::string line = url_.host + ":" + std::to_string(url_.port) + ":";
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::string text = addresses[i].is_v6 ? "[" + addresses[i].text() + "]" : addresses[i].text();
    line += (i == 0 ? "" : ",") + text;
  }
  append_line(resolved_, line);
  curl_easy_setopt(easy, CURLOPT_RESOLVE, resolved_.get());
  return Ok{};
}

std::optional<Error> Hop::look_at_limits() {
  if (request_.is_cancelled && request_.is_cancelled()) return Error{Code::cancelled, url_.text + ": cancelled"};
  const auto now = HttpClock::now();
  const HttpLimits& limits = request_.limits;
  if (limits.total.count() > 0 && now >= deadline_) return time_is_up(url_.text, "not finished", limits.total);
  if (limits.silence.count() > 0 && now - last_byte_ > limits.silence) {
    return time_is_up(url_.text, "nothing was received, given up", limits.silence);
  }
  return std::nullopt;
}

Status Hop::perform(CURL* easy) {
  const std::unique_ptr<CURLM, FreeMulti> multi(curl_multi_init());
  curl_multi_add_handle(multi.get(), easy);
  last_byte_ = HttpClock::now();
  int n_running = 1;
  while (n_running > 0) {
    if (curl_multi_perform(multi.get(), &n_running) != CURLM_OK) fail({Code::internal, url_.text + ": libcurl failed"});
    if (n_running == 0 || error_) break;
    if (std::optional<Error> limit = look_at_limits()) {
      fail(std::move(*limit));
      break;
    }
    curl_multi_poll(multi.get(), nullptr, 0, kPollMs, nullptr);
  }
  CURLcode code = CURLE_OK;
  int n_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi.get(), &n_left)) {
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  }
  curl_multi_remove_handle(multi.get(), easy);
  if (error_) return std::move(*error_);
  if (ends_early_ || code == CURLE_OK) return Ok{};
  if (refused_address_) return std::move(*refused_address_);
  if (code == CURLE_OPERATION_TIMEDOUT) return time_is_up(url_.text, "not connected", request_.limits.connect);
  return Error{Code::io, url_.text + ": " + curl_easy_strerror(code)};
}

Status Hop::run(const std::string& method, const std::vector<HttpHeader>& headers, const std::string* body,
                bool follows) {
  follows_ = follows;
  answer_.url = url_.text;
  bool has_type = false;
  for (const HttpHeader& header : headers) {
    has_type = has_type || lower_case(header.name) == "content-type";
    append_line(header_list_, header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  // What libcurl would add by itself.
  append_line(header_list_, "Expect:");
  if (!has_type) append_line(header_list_, "Content-Type:");

  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  if (!easy) return Error{Code::internal, url_.text + ": libcurl failed"};
  set_options(easy.get(), method, body);
  TRY(resolve(easy.get()));
  return perform(easy.get());
}

std::vector<HttpHeader> headers_for_strangers(const std::vector<HttpHeader>& headers) {
  std::vector<HttpHeader> kept;
  for (const HttpHeader& header : headers) {
    const std::string name = lower_case(header.name);
    if (name == "accept" || name == "accept-language") kept.push_back(header);
  }
  return kept;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

HttpClient::HttpClient(Options options) : options_(std::move(options)) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Result<HttpAnswer> HttpClient::exchange(const HttpRequest& request) const {
  TRY(check_request(request));
  TRY_ASSIGN(Url url, parse_url(request.url));
  const auto deadline = HttpClock::now() + std::min<HttpClock::duration>(request.limits.total, std::chrono::hours(24));
  std::string method = request.method;
  std::vector<HttpHeader> headers = request.headers;
  const std::string* body = request.body.empty() && method != "POST" && method != "PUT" ? nullptr : &request.body;
  for (int n_redirects = 0;; ++n_redirects) {
    if (request.allow_url) TRY(request.allow_url(url));
    Hop hop(options_, request, url, deadline);
    TRY(hop.run(method, headers, body, n_redirects < request.limits.redirects));
    const std::string location = hop.location();
    if (location.empty() || n_redirects >= request.limits.redirects) return Result<HttpAnswer>{std::move(hop.answer())};

    TRY_ASSIGN(Url next, resolve_url(url, location));
    const int status = hop.answer().status;
    if (status == 303 || ((status == 301 || status == 302) && method == "POST")) {
      method = method == "HEAD" ? method : "GET";
      body = nullptr;
    }
    if (next.origin() != url.origin()) {
      if (body != nullptr) {
        return Error{Code::invalid_argument,
                     url.text + ": redirects a request with a body to another server, " + next.text};
      }
      headers = headers_for_strangers(headers);
    }
    url = std::move(next);
  }
}

}  // namespace chimere::web
