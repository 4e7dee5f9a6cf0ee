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
#include "server_client.h"
#include "terminal/signals.h"
#include "terminal/top_view.h"
#include "terminal/word_wrap.h"

namespace chimere::apps {
namespace {

struct TopOptions {
  ServerAddress server;
  double interval = 1;  // seconds
  bool once = false;
};

Result<TopFacts> look(const ServerClient& server) {
  TopFacts facts;
  TRY_ASSIGN(facts.status, server.get("/v1/status"));
  TRY_ASSIGN(facts.requests, server.get("/v1/requests"));
  TRY_ASSIGN(facts.metrics, server.get("/metrics"));
  return Result<TopFacts>{std::move(facts)};
}

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

void watch(const ServerClient& server, TopFacts facts, const TopOptions& o) {
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
    auto seen = look(server);
    trouble = seen ? "" : seen.error().message;
    if (seen) facts = std::move(*seen);
  }
}

Status top(const TopOptions& o) {
  const ServerClient server(o.server, "--url");
  TRY_ASSIGN(TopFacts facts, look(server));
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
  command->add_option("--url", o->server.url, "address of the server")->capture_default_str();
  add_server_options(*command, o->server);
  command->add_option("--interval", o->interval, "seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", o->once, "print it once and end, as it does without a terminal");
  command->callback([o, &outcome] {
    if (Status s = top(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
