#include "terminal/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>

#include "terminal/signals.h"
#include "text/utf8.h"

namespace chimere::apps {
namespace {

constexpr wchar_t kPasteEnd[] = L"\033[201~";
// No key sends these: with them we press keys ourselves.
constexpr wchar_t kDraftKey[] = L"\033[900~";
constexpr wchar_t kDoneKey[] = L"\033[901~";
constexpr wchar_t kInterruptKey = L'\003';
constexpr size_t kMaxPaste = size_t{16} << 20;

std::wstring wide(std::string_view text) {
  std::wstring out;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_char(text, at);
    out += c == kInvalidChar ? L'\uFFFD' : static_cast<wchar_t>(c);
  }
  return out;
}

std::string narrow(const wchar_t* begin, const wchar_t* end) {
  std::string out;
  for (; begin != end; ++begin) append_utf8(static_cast<char32_t>(*begin), out);
  return out;
}

// libedit writes by the locale. Our text is UTF-8 also where the user's locale does not say so.
void use_utf8() {
  setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

bool knows_sequences() {
  const char* name = std::getenv("TERM");
  return name && *name && std::strcmp(name, "dumb") != 0;
}

}  // namespace

struct LineEditor::State {
  FILE* screen = nullptr;
  InputHistory* history = nullptr;
  EditLine* editor = nullptr;
  HistoryW* searched = nullptr;  // the same history, for Ctrl-R
  size_t n_searched = 0;         // entries it has
  std::wstring prompt;
  bool pastes = false;  // the terminal can bracket them

  std::deque<wchar_t> waiting;  // keys that come before those typed
  std::string bytes;            // read and not decoded yet
  std::wstring draft;
  std::wstring written;  // the text before Up was pressed
  size_t at = 0;         // in the history; its size: the text itself
  Outcome outcome = Outcome::end;

  static State& of(EditLine* editor) {
    void* state = nullptr;
    el_wget(editor, EL_CLIENTDATA, &state);
    return *static_cast<State*>(state);
  }

  // libedit would do this with the first key it waits for: too late for one that is pressed as the prompt appears. It
  // gives the terminal back as it was.
  void take_terminal() const {
    el_wset(editor, EL_PREP_TERM, 1);
    // libedit lets the terminal exchange \r and \n, and then the \r\n of a paste would be two line ends.
    termios mode{};
    if (tcgetattr(STDIN_FILENO, &mode) == 0) {
      mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR);
      // Ctrl-C is a key among the others here: a signal may come later than what is typed behind it.
      mode.c_cc[VINTR] = _POSIX_VDISABLE;
      tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
    }
    bracket_pastes(true);
  }

  void press(std::wstring_view keys) { waiting.insert(waiting.end(), keys.begin(), keys.end()); }

  void bracket_pastes(bool on) const {
    if (!pastes) return;
    std::fputs(on ? "\033[?2004h" : "\033[?2004l", screen);
    std::fflush(screen);
  }

  // The first character of `bytes`, when it is whole.
  bool take_char(wchar_t& out) {
    if (bytes.empty()) return false;
    const CodePoint c = decode_at(bytes, 0);
    if (c.value == kInvalidChar && bytes.size() <= utf8_lead(static_cast<uint8_t>(bytes[0])).n_more) return false;
    out = c.value == kInvalidChar ? L'\uFFFD' : static_cast<wchar_t>(c.value);
    bytes.erase(0, c.n_bytes);
    return true;
  }

  // The signal may come to another thread than this one, so waiting ends by itself now and then.
  int next_char(wchar_t& out) {
    for (;;) {
      if (!waiting.empty()) {
        out = waiting.front();
        waiting.pop_front();
        return 1;
      }
      if (take_char(out)) return 1;
      if (take_interrupt()) {
        outcome = Outcome::interrupted;
        return -1;
      }
      if (asked_to_end()) return -1;
      if (take_resize()) {
        el_resize(editor);
        el_wset(editor, EL_REFRESH);
      }
      if (take_continue()) {  // the shell had the terminal meanwhile
        take_terminal();
        el_wset(editor, EL_REFRESH);
      }
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, 100) <= 0) continue;
      char read_bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, read_bytes, sizeof read_bytes);
      if (n > 0) {
        bytes.append(read_bytes, static_cast<size_t>(n));
      } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        return -1;
      }
    }
  }

  std::wstring current() const {
    const LineInfoW* line = el_wline(editor);
    return {line->buffer, line->lastchar};
  }

  void replace(const std::wstring& with) const {
    const LineInfoW* line = el_wline(editor);
    const auto length = static_cast<int>(line->lastchar - line->buffer);
    el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
    if (length > 0) el_wdeletestr(editor, length);
    if (!with.empty()) el_winsertstr(editor, with.c_str());
  }

  // To the same column of the line above or below; false on the first or last one.
  bool move_line(bool up) const {
    const LineInfoW* line = el_wline(editor);
    const std::wstring_view all(line->buffer, static_cast<size_t>(line->lastchar - line->buffer));
    const auto at_char = static_cast<size_t>(line->cursor - line->buffer);
    const size_t before = at_char == 0 ? std::wstring_view::npos : all.rfind(L'\n', at_char - 1);
    const size_t begin = before == std::wstring_view::npos ? 0 : before + 1;
    size_t target = 0, target_end = 0;
    if (up) {
      if (begin == 0) return false;
      const size_t above = begin < 2 ? std::wstring_view::npos : all.rfind(L'\n', begin - 2);
      target = above == std::wstring_view::npos ? 0 : above + 1;
      target_end = begin - 1;
    } else {
      const size_t end = all.find(L'\n', at_char);
      if (end == std::wstring_view::npos) return false;
      target = end + 1;
      target_end = std::min(all.find(L'\n', target), all.size());
    }
    const size_t to = std::min(target + (at_char - begin), target_end);
    el_cursor(editor, static_cast<int>(to) - static_cast<int>(at_char));
    return true;
  }

  void add_searched() {
    HistEventW event;
    const auto& entries = history->entries();
    for (; n_searched < entries.size(); ++n_searched) {
      history_w(searched, &event, H_ENTER, wide(entries[n_searched]).c_str());
    }
  }
};

namespace {

using State = LineEditor::State;

int get_char(EditLine* editor, wchar_t* out) {
  State& s = State::of(editor);
  const int n = s.next_char(*out);
  if (n != 1 || *out != kInterruptKey) return n;
  s.outcome = LineEditor::Outcome::interrupted;
  return -1;
}
wchar_t* get_prompt(EditLine* editor) { return State::of(editor).prompt.data(); }

unsigned char end_text(EditLine* editor, wint_t) {
  State& s = State::of(editor);
  const LineInfoW* line = el_wline(editor);
  if (line->cursor == line->lastchar && line->cursor > line->buffer && line->cursor[-1] == L'\\') {
    el_wdeletestr(editor, 1);
    el_winsertstr(editor, L"\n");
    return CC_REFRESH;
  }
  s.outcome = LineEditor::Outcome::text;
  s.press(kDoneKey);
  return CC_NORM;
}

unsigned char new_line(EditLine* editor, wint_t) {
  el_winsertstr(editor, L"\n");
  return CC_REFRESH;
}

unsigned char insert_draft(EditLine* editor, wint_t) {
  el_winsertstr(editor, State::of(editor).draft.c_str());
  return CC_REFRESH;
}

unsigned char insert_paste(EditLine* editor, wint_t) {
  State& s = State::of(editor);
  std::wstring pasted;
  const std::wstring_view end = kPasteEnd;
  for (wchar_t c = 0; pasted.size() < kMaxPaste && s.next_char(c) == 1;) {
    pasted += c;
    if (c != L'~' || !std::wstring_view(pasted).ends_with(end)) continue;
    pasted.resize(pasted.size() - end.size());
    std::wstring text;
    for (size_t i = 0; i < pasted.size(); ++i) {
      const bool after_return = i > 0 && pasted[i - 1] == L'\r';
      if (pasted[i] == L'\r') {
        text += L'\n';
      } else if (pasted[i] == L'\n' ? !after_return : pasted[i] >= L' ' || pasted[i] == L'\t') {
        text += pasted[i];
      }
    }
    while (!text.empty() && text.back() == L'\n') text.pop_back();
    if (!text.empty()) el_winsertstr(editor, text.c_str());
    return CC_REFRESH;
  }
  return CC_EOF;
}

// libedit's own keys for the history keep no more than 1024 characters of the text they leave.
unsigned char older(EditLine* editor, wint_t) {
  State& s = State::of(editor);
  if (s.move_line(true)) return CC_CURSOR;
  if (s.at == 0) return CC_NORM;
  if (s.at == s.history->entries().size()) s.written = s.current();
  s.replace(wide(s.history->entries()[--s.at]));
  return CC_REFRESH;
}

unsigned char newer(EditLine* editor, wint_t) {
  State& s = State::of(editor);
  if (s.move_line(false)) return CC_CURSOR;
  if (s.at == s.history->entries().size()) return CC_NORM;
  ++s.at;
  s.replace(s.at == s.history->entries().size() ? s.written : wide(s.history->entries()[s.at]));
  return CC_REFRESH;
}

using Action = unsigned char (*)(EditLine*, wint_t);

void bind_keys(EditLine* editor) {
  struct Named {
    const wchar_t* name;
    Action action;
    std::initializer_list<const wchar_t*> keys;
  };
  for (const Named& n :
       {Named{L"end-text", end_text, {L"\\r", L"\\n"}}, Named{L"new-line", new_line, {L"\\e\\r", L"\\e\\n"}},
        Named{L"insert-paste", insert_paste, {L"\\e[200~"}}, Named{L"insert-draft", insert_draft, {kDraftKey}},
        Named{L"older", older, {L"\\e[A", L"\\eOA", L"^P"}}, Named{L"newer", newer, {L"\\e[B", L"\\eOB", L"^N"}}}) {
    el_wset(editor, EL_ADDFN, n.name, L"", n.action);
    for (const wchar_t* key : n.keys) el_wset(editor, EL_BIND, key, n.name, nullptr);
  }
  struct Usual {
    const wchar_t* key;
    const wchar_t* command;
  };
  for (const Usual& u :
       {Usual{L"\\e[3~", L"ed-delete-next-char"}, Usual{L"\\e[1~", L"ed-move-to-beg"},
        Usual{L"\\e[4~", L"ed-move-to-end"}, Usual{L"\\e[H", L"ed-move-to-beg"}, Usual{L"\\e[F", L"ed-move-to-end"},
        Usual{L"\\eOH", L"ed-move-to-beg"}, Usual{L"\\eOF", L"ed-move-to-end"}, Usual{L"\\e[1;5D", L"ed-prev-word"},
        Usual{L"\\e[1;5C", L"em-next-word"}, Usual{L"\\e[1;3D", L"ed-prev-word"}, Usual{L"\\e[1;3C", L"em-next-word"},
        Usual{L"^W", L"ed-delete-prev-word"}, Usual{L"^U", L"vi-kill-line-prev"}, Usual{L"^R", L"em-inc-search-prev"},
        Usual{kDoneKey, L"ed-newline"}}) {
    el_wset(editor, EL_BIND, u.key, u.command, nullptr);
  }
}

}  // namespace

LineEditor::LineEditor(FILE* screen, InputHistory& history, bool colours) : state_(std::make_unique<State>()) {
  use_utf8();
  State& s = *state_;
  s.screen = screen;
  s.history = &history;
  s.pastes = knows_sequences();
  s.prompt = colours ? L"\001\033[1m\001> \001\033[0m\001" : L"> ";  // \001 marks what takes no room
  s.editor = el_init("chimere", stdin, screen, screen);
  s.searched = history_winit();
  HistEventW event;
  history_w(s.searched, &event, H_SETSIZE, static_cast<int>(2 * InputHistory::kMaxEntries));
  el_wset(s.editor, EL_CLIENTDATA, static_cast<void*>(&s));
  el_wset(s.editor, EL_EDITOR, L"emacs");
  el_wset(s.editor, EL_PROMPT_ESC, get_prompt, L'\001');
  el_wset(s.editor, EL_HIST, history_w, s.searched);
  el_wset(s.editor, EL_GETCFN, get_char);
  bind_keys(s.editor);
}

LineEditor::~LineEditor() {
  if (state_->searched) history_wend(state_->searched);
  if (state_->editor) el_end(state_->editor);
}

LineEditor::Outcome LineEditor::read(std::string& text, const std::string& draft) {
  State& s = *state_;
  s.add_searched();
  s.draft = wide(draft);
  s.written.clear();
  s.at = s.history->entries().size();
  s.outcome = Outcome::end;
  s.waiting.clear();
  if (!draft.empty()) s.press(kDraftKey);
  take_interrupt();  // what came before is not meant for this text
  s.take_terminal();
  int n = 0;
  const wchar_t* line = el_wgets(s.editor, &n);
  s.bracket_pastes(false);
  text.clear();
  if (s.outcome != Outcome::text || !line || n < 1) {
    std::fputs("\n", s.screen);
    return s.outcome;
  }
  text = narrow(line, line + n - 1);  // without the end that Enter gave it
  return s.outcome;
}

}  // namespace chimere::apps
