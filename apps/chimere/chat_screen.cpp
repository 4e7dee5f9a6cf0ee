#include "chat_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace chimere::apps {
namespace {

int columns_of(int terminal) {
  winsize size{};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col >= 8 ? size.ws_col : 0;
}

// NO_COLOR is the custom of many programs: set to anything, it means what it says.
bool wants_colours() {
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (!no || !*no) && terminal && *terminal && std::strcmp(terminal, "dumb") != 0;
}

constexpr char kDim[] = "\033[2m", kRed[] = "\033[31m", kPlain[] = "\033[0m";

}  // namespace

ChatScreen::ChatScreen(bool shows_thoughts)
    : answers_on_terminal_(isatty(STDOUT_FILENO) != 0),
      notes_on_terminal_(isatty(STDERR_FILENO) != 0),
      colours_(wants_colours()),
      shows_thoughts_(shows_thoughts) {}

void ChatScreen::begin(Part part) {
  if (part == part_) return;
  if (part_ == Part::none) wrap_ = WordWrap(columns_of(part == Part::thought ? STDERR_FILENO : STDOUT_FILENO));
  if (part_ == Part::thought) {
    std::fputs(colours_ ? "\033[0m\n\n" : "\n\n", stderr);
    wrap_ = WordWrap(columns_of(STDOUT_FILENO));
  }
  if (part == Part::thought) std::fputs(colours_ ? kDim : "(thinking) ", stderr);
  part_ = part;
}

void ChatScreen::write(std::string_view text, bool to_terminal, FILE* file) {
  const std::string shown = to_terminal ? wrap_.push(harmless(text)) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), file);
  std::fflush(file);
}

void ChatScreen::thought(std::string_view text) {
  if (text.empty() || !shows_thoughts_ || !notes_on_terminal_) return;
  begin(Part::thought);
  write(text, true, stderr);
}

void ChatScreen::answer(std::string_view text) {
  if (text.empty()) return;
  begin(Part::answer);
  write(text, answers_on_terminal_, stdout);
  ends_with_newline_ = text.back() == '\n';
}

void ChatScreen::end_answer() {
  if (part_ == Part::thought) std::fputs(colours_ ? "\033[0m\n" : "\n", stderr);
  if (part_ == Part::answer && !ends_with_newline_) std::fputs("\n", stdout);
  std::fflush(stdout);
  part_ = Part::none;
  ends_with_newline_ = true;
}

void ChatScreen::note(const std::string& line) const {
  if (!notes_on_terminal_) return;
  const std::string shown = WordWrap(columns_of(STDERR_FILENO)).push(harmless(line));
  std::fprintf(stderr, "%s%s%s\n", colours_ ? kDim : "", shown.c_str(), colours_ ? kPlain : "");
}

void ChatScreen::warn(const std::string& line) const {
  if (notes_on_terminal_) return note(line);
  std::fprintf(stderr, "chimere: %s\n", harmless(line).c_str());
}

void ChatScreen::tell(const std::string& text) const {
  if (!notes_on_terminal_) return;
  std::fprintf(stderr, "%s\n", WordWrap(columns_of(STDERR_FILENO)).push(harmless(text)).c_str());
}

void ChatScreen::error(const std::string& message) const {
  const bool red = notes_on_terminal_ && colours_;
  const int columns = notes_on_terminal_ ? columns_of(STDERR_FILENO) : 0;
  const std::string shown = WordWrap(columns).push("chimere: " + harmless(message));
  std::fprintf(stderr, "%s%s%s\n", red ? kRed : "", shown.c_str(), red ? kPlain : "");
}

}  // namespace chimere::apps
