// masking.h  Secrets and personal data of a text, replaced by what they are: what is kept to learn from has none.
//
// Found are e-mail addresses, telephone numbers, card numbers (by their check digit), IBANs (by theirs), keys of the
// kinds that services give out, private keys, tokens of sessions, and what stands behind "password:" and its like.
// Plain numbers stay: sums are worth learning. It is a net and not a wall: a name or an address in words passes.
#pragma once

#include <string>
#include <string_view>

namespace chimere::store {

// "write to ann@example.org" -> "write to [email]"; takes time in proportion to the text.
std::string masked(std::string_view text);

}  // namespace chimere::store
