#include "terminal/signals.h"

#include <signal.h>

#include <initializer_list>

namespace chimere::apps {
namespace {

// A signal handler has nothing else to write to.
volatile sig_atomic_t g_interrupt = 0, g_resize = 0, g_continue = 0, g_end = 0;

void on_signal(int number) {
  switch (number) {
    case SIGINT: g_interrupt = 1; break;
    case SIGWINCH: g_resize = 1; break;
    case SIGCONT: g_continue = 1; break;
    default: g_end = 1;
  }
}

bool take(volatile sig_atomic_t& flag) {
  const bool was_set = flag != 0;
  flag = 0;
  return was_set;
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: waiting for a key ends
  for (const int number : {SIGINT, SIGWINCH, SIGCONT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool take_interrupt() { return take(g_interrupt); }
bool take_resize() { return take(g_resize); }
bool take_continue() { return take(g_continue); }
bool asked_to_end() { return g_end != 0; }

}  // namespace chimere::apps
