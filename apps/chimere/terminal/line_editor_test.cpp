// The editor in a real terminal: a child process edits, the test types.
#include "terminal/line_editor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "terminal/signals.h"

namespace chimere::apps {
namespace {

constexpr char kUp[] = "\033[A", kDown[] = "\033[B", kLeft[] = "\033[D", kRight[] = "\033[C";

// Reads texts until the end and reports each as a line of JSON.
[[noreturn]] void edit(const std::string& history_path, int report, const std::string& draft) {
  setenv("TERM", "xterm", 1);
  setenv("LC_ALL", "C", 1);  // the editor sees to UTF-8 itself
  catch_signals();
  {
    InputHistory history(history_path);
    LineEditor editor(stdout, history, true);
    for (std::string next = draft;; next.clear()) {
      std::string text;
      const LineEditor::Outcome outcome = editor.read(text, next);
      if (outcome == LineEditor::Outcome::text) (void)history.add(text);
      const std::string line = nlohmann::json{{"outcome", static_cast<int>(outcome)}, {"text", text}}.dump() + "\n";
      if (write(report, line.data(), line.size()) != static_cast<ssize_t>(line.size())) break;
      if (outcome == LineEditor::Outcome::end) break;
    }
  }
  _exit(0);
}

class LineEditorTest : public testing::Test {
 protected:
  void start(const std::string& history = "", const std::string& draft = "") {
    stop();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    winsize size{24, 80, 0, 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      close(ends[0]);
      edit(history, ends[1], draft);
    }
    close(ends[1]);
    reports_ = ends[0];
    wait_for_prompt();
  }

  void TearDown() override { stop(); }

  void stop() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    int status = 0;
    waitpid(child_, &status, 0);
    close(terminal_);
    close(reports_);
    child_ = -1;
    seen_.clear();
    after_prompt_ = 0;
    reported_.clear();
  }

  // Typed text is swallowed by the terminal's own line discipline until the editor has taken it over.
  void wait_for_prompt() {
    // Once for each text; the prompt itself may be drawn again.
    const auto prompt = [&] { return seen_.find("\033[?2004h", after_prompt_); };
    pump([&] { return prompt() != std::string::npos; });
    ASSERT_NE(prompt(), std::string::npos) << "no prompt; the screen has: " << seen_;
    after_prompt_ = prompt() + 1;
  }

  void type(std::string_view keys) {
    while (!keys.empty()) {
      const ssize_t n = write(terminal_, keys.data(), std::min<size_t>(keys.size(), 512));
      ASSERT_GT(n, 0);
      keys.remove_prefix(static_cast<size_t>(n));
      pump([] { return true; });
    }
  }

  struct Report {
    LineEditor::Outcome outcome = LineEditor::Outcome::end;
    std::string text;
  };
  // The next text the child has read.
  Report next() {
    pump([&] { return reported_.find('\n') != std::string::npos; });
    const size_t end = reported_.find('\n');
    if (end == std::string::npos) {
      ADD_FAILURE() << "nothing was read; the screen has: " << seen_;
      return {};
    }
    const auto report = nlohmann::json::parse(reported_.substr(0, end));
    reported_.erase(0, end + 1);
    const auto outcome = static_cast<LineEditor::Outcome>(report["outcome"].get<int>());
    if (outcome != LineEditor::Outcome::end) wait_for_prompt();
    return {outcome, report["text"].get<std::string>()};
  }
  std::string typed(std::string_view keys) {
    type(keys);
    return next().text;
  }

  std::string seen_;  // what the child wrote to the terminal

 private:
  // Takes what comes until `done`, at least what is there now; a minute at most.
  template <class Done>
  void pump(Done done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (bool idle = false; !(idle && done());) {
      pollfd ends[2] = {{terminal_, POLLIN, 0}, {reports_, POLLIN, 0}};
      const int ready = poll(ends, 2, done() ? 0 : 100);
      idle = ready <= 0;
      if (std::chrono::steady_clock::now() > limit) return;
      bool open = false;
      for (int i = 0; i < 2; ++i) {
        if ((ends[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        char bytes[4096];
        const ssize_t n = read(ends[i].fd, bytes, sizeof bytes);
        if (n <= 0) continue;
        open = true;
        (i == 0 ? seen_ : reported_).append(bytes, static_cast<size_t>(n));
      }
      if (!idle && !open) return;  // the child is gone
    }
  }

  pid_t child_ = -1;
  int terminal_ = -1, reports_ = -1;
  size_t after_prompt_ = 0;  // of seen_, behind the last prompt
  std::string reported_;
};

std::string keys(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

TEST_F(LineEditorTest, ArrowsMoveAndEdit) {
  start();
  EXPECT_EQ(typed(keys({"helo", kLeft, "l\r"})), "hello");
  EXPECT_EQ(typed(keys({"bc", kLeft, kLeft, "a", kRight, kRight, "d\r"})), "abcd");
  EXPECT_EQ(typed("world\001hello \005!\r"), "hello world!");
  EXPECT_EQ(typed("one two\027three\r"), "one three");
  EXPECT_EQ(typed("für 日本 😀\177!\r"), "für 日本 !");
  EXPECT_EQ(typed("\r"), "");
}

TEST_F(LineEditorTest, HistoryComesBackAlsoInTheNextRun) {
  std::string name = (std::filesystem::temp_directory_path() / "chimere-editor-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::string path = name + "/history";
  start(path);
  EXPECT_EQ(typed("first\r"), "first");
  EXPECT_EQ(typed("second\r"), "second");
  EXPECT_EQ(typed(keys({kUp, kUp, " again\r"})), "first again");
  EXPECT_EQ(typed(keys({"unfinished", kUp, kUp, kDown, kDown, " text\r"})), "unfinished text");
  start(path);
  EXPECT_EQ(typed(keys({kUp, kUp, "\r"})), "first again");
  EXPECT_EQ(typed("\022seco\033\r"), "second") << "Ctrl-R";
  std::filesystem::remove_all(name);
}

TEST_F(LineEditorTest, APasteOfFourLinesIsOneText) {
  start();
  EXPECT_EQ(typed("\033[200~one\rtwo\rthree\rfour\r\033[201~\r"), "one\ntwo\nthree\nfour");
  EXPECT_EQ(typed("see: \033[200~a\r\nb\tc\033[201~ ?\r"), "see: a\nb\tc ?");
  EXPECT_EQ(typed("\033[200~x\033[31my\007\033[201~\r"), "x[31my") << "control characters of a paste are left out";
}

TEST_F(LineEditorTest, SeveralLines) {
  start();
  EXPECT_EQ(typed("one\\\rtwo\033\rthree\r"), "one\ntwo\nthree");
  EXPECT_EQ(typed(keys({"abc\033\rdef", kUp, "X\r"})), "abcX\ndef") << "Up moves inside the text";
  EXPECT_EQ(typed(keys({"abc\033\rdef", kUp, kLeft, kDown, "X\r"})), "abc\ndeXf");
}

TEST_F(LineEditorTest, ALongLineIsWhole) {
  start();
  std::string line;
  while (line.size() < 10000) line += "word" + std::to_string(line.size()) + " ";
  EXPECT_EQ(typed(line + "\r"), line);
  EXPECT_EQ(typed(keys({kUp, "end\r"})), line + "end");
  EXPECT_EQ(typed(keys({line, "unfinished", kUp, kDown, "\r"})), line + "unfinished");
  EXPECT_EQ(typed("\033[200~" + line + "\rand more\033[201~\r"), line + "\nand more");
}

TEST_F(LineEditorTest, InterruptDropsTheTextAndControlDEnds) {
  start();
  type("not this\003");
  EXPECT_EQ(next().outcome, LineEditor::Outcome::interrupted);
  EXPECT_EQ(typed("this\r"), "this");
  // What is typed behind it in one breath is the next text.
  type("not this\003but this\r");
  EXPECT_EQ(next().outcome, LineEditor::Outcome::interrupted);
  EXPECT_EQ(next().text, "but this");
  type("\004");
  EXPECT_EQ(next().outcome, LineEditor::Outcome::end);
}

TEST_F(LineEditorTest, ADraftCanBeChanged) {
  start("", "a draft\nof two lines");
  EXPECT_EQ(typed("!\r"), "a draft\nof two lines!");
  EXPECT_EQ(typed("next\r"), "next");
}

}  // namespace
}  // namespace chimere::apps
