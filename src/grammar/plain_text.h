// plain_text.h  Characters that mean nothing special anywhere: all from the space on, without the quote, the backslash
// and the delete character.
//
// Most tokens of a vocabulary are made of these, and most places of a structured text where much may follow (a string
// of JSON above all) take any number of them. Such places need not look at those tokens one by one.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/automaton.h"

namespace chimere::grammar {

inline bool is_plain_ascii(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

// Number of characters of a text that is plain throughout and valid UTF-8; nothing for other texts.
std::optional<int> count_plain(std::string_view text);

// The bytes that plain characters begin with.
ByteSet plain_first_bytes();

// Sets State::is_plain_loop.
void mark_plain_loops(Automaton& automaton);

}  // namespace chimere::grammar
