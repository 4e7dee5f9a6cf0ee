// signals.h  What a person's keys and the terminal tell by signals, as flags that are asked for between two steps.
#pragma once

namespace chimere::apps {

// From here on Ctrl-C ends no process, and a request to end (SIGTERM, SIGHUP) is a flag.
void catch_signals();

// Each true once after its signal.
bool take_interrupt();  // Ctrl-C
bool take_resize();     // the terminal has another size
bool take_continue();   // the process was stopped and goes on
// True for ever after its signal.
bool asked_to_end();

}  // namespace chimere::apps
