// top.cpp  `chimere top`: a running server, looked at from a terminal.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "commands.h"
#include "common.h"
#include "terminal/signals.h"
#include "terminal/top_view.h"
#include "terminal/word_wrap.h"
#include "text/json.h"
#include "web/http_client.h"

namespace chimere::apps {
namespace {

constexpr std::chrono::seconds kLongestAnswer{5};
constexpr size_t kMaxFactsBytes = 16 << 20;

struct TopOptions {
  std::string url = "http://127.0.0.1:8081";
  std::string api_key;
  std::string ca_file;
  double interval = 1;  // seconds
  bool once = false;
};

class ServerView {
 public:
  explicit ServerView(const TopOptions& o) : o_(o), client_(options_of(o)) {
    while (base_.ends_with('/')) base_.pop_back();
  }

  Result<TopFacts> look() const {
    TopFacts facts;
    TRY_ASSIGN(facts.status, get("/v1/status"));
    TRY_ASSIGN(facts.requests, get("/v1/requests"));
    TRY_ASSIGN(facts.metrics, get("/metrics"));
    return Result<TopFacts>{std::move(facts)};
  }

 private:
  static web::HttpClient::Options options_of(const TopOptions& o) {
    web::HttpClient::Options options;
    options.ca_file = o.ca_file;
    return options;
  }

  Result<std::string> get(const char* path) const {
    web::HttpRequest request;
    request.url = base_ + path;
    if (!o_.api_key.empty()) request.headers.push_back({"Authorization", "Bearer " + o_.api_key});
    request.limits.total = request.limits.connect = kLongestAnswer;
    request.limits.body_bytes = kMaxFactsBytes;
    request.is_cancelled = [] { return asked_to_end(); };
    auto answer = client_.exchange(request);
    if (!answer) {
      return Error{answer.error().code, "no server answers at " + o_.url + ": " + answer.error().message +
                                            " (`chimere serve` starts one, --url names another)"};
    }
    if (answer->status == 200) return std::move(answer->body);
    const std::string said = "the server at " + o_.url + " says " + std::to_string(answer->status) + " to " + path;
    if (answer->status == 401) return Error{Code::invalid_argument, said + ": expected its key (--api-key)"};
    const auto json = parse_json(answer->body);
    const bool explains = json && json->is_object() && json->contains("error") && (*json)["error"].is_object() &&
                          (*json)["error"].contains("message") && (*json)["error"]["message"].is_string();
    return Error{Code::io, said + (explains ? ": " + (*json)["error"]["message"].get<std::string>() : "")};
  }

  const TopOptions& o_;
  const web::HttpClient client_;
  std::string base_ = o_.url;
};

// Keys come at once and are not shown, the screen before is there again at the end.
class FullScreen {
 public:
  FullScreen() {
    tcgetattr(STDIN_FILENO, &before_);
    termios mode = before_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
    write("\033[?1049h\033[?25l\033[?7l");  // another screen, no cursor, no wrapped lines
  }
  ~FullScreen() {
    write("\033[?7h\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  static winsize size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) size = {24, 80, 0, 0};
    return size;
  }

  void show(const std::vector<std::string>& lines) const {
    std::string text = "\033[H";
    const size_t rows = size().ws_row;
    for (size_t i = 0; i < lines.size() && i < rows; ++i) text += (i == 0 ? "" : "\r\n") + lines[i] + "\033[K";
    write(text + "\033[J");
  }

 private:
  static void write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  termios before_{};
};

// Until the next look is due, or there is another reason to draw. False: somebody wants to leave.
bool wait_for_keys(std::chrono::steady_clock::time_point until) {
  for (;;) {
    if (take_interrupt() || asked_to_end()) return false;
    if (take_resize() || take_continue()) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    if (poll(&keys, 1, static_cast<int>(left.count())) <= 0) continue;
    char key = 0;
    const ssize_t n = read(STDIN_FILENO, &key, 1);
    if (n == 0 || (n == 1 && (key == 'q' || key == 'Q'))) return false;
  }
}

void watch(const ServerView& server, TopFacts facts, const TopOptions& o) {
  const FullScreen screen;
  catch_signals();
  std::string trouble;
  for (;;) {
    const winsize size = FullScreen::size();
    auto lines = top_lines(facts, size.ws_col, size.ws_row - 1);
    if (!lines) trouble = lines.error().message;
    std::vector<std::string> shown = lines ? std::move(*lines) : std::vector<std::string>();
    if (!trouble.empty()) shown.insert(shown.begin(), harmless(trouble));
    shown.emplace_back(trouble.empty() ? "q: quit" : "These are the figures that were last seen. q: quit");
    screen.show(shown);
    const auto next =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(o.interval * 1000));
    if (!wait_for_keys(next)) return;
    auto seen = server.look();
    trouble = seen ? "" : seen.error().message;
    if (seen) facts = std::move(*seen);
  }
}

Status top(const TopOptions& o) {
  const ServerView server(o);
  TRY_ASSIGN(TopFacts facts, server.look());
  const bool is_watched = !o.once && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (is_watched) {
    watch(server, std::move(facts), o);
    return Ok{};
  }
  const int columns = isatty(STDOUT_FILENO) != 0 ? FullScreen::size().ws_col : 0;
  TRY_ASSIGN(const auto lines, top_lines(facts, columns, 0));
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return Ok{};
}

}  // namespace

void add_top(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "A running server, live: load, speed, queue, memory, cache, requests");
  command->add_option("--url", o->url, "address of the server")->capture_default_str();
  command->add_option("--api-key", o->api_key, "key that the server asks for; the variable keeps it out of `ps`")
      ->envname("CHIMERE_API_KEY");
  command->add_option("--ca", o->ca_file, "certificates to trust, in PEM form; else those of the system");
  command->add_option("--interval", o->interval, "seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", o->once, "print it once and end, as it does without a terminal");
  command->callback([o, &outcome] {
    if (Status s = top(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
