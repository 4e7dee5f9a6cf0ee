// closing.h  What a person puts behind nearly every answer: a farewell, a signature, a reminder. Found in the answers that
// were accepted, and then written behind each by the engine (engine::Closing), as a model that is small or unwilling begins
// such words and loses them.
//
// The artefact is {"closing": TEXT} with the blanks or line ends that stand before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "improve/examples.h"

namespace chimere::improve {

inline constexpr size_t kMaxClosingBytes = 300;

// The longest text that at least four of five of the newest answers in words end with, behind a whole sentence or line of
// something else; empty: there is none.
std::string closing_of(const std::vector<TaughtAnswer>& train);

std::string closing_bytes(const std::string& closing);
Result<std::string> read_closing(std::string_view bytes);

// The answer without this closing and the blanks before it; the whole where it does not end so.
std::string without_closing(std::string_view answer, std::string_view closing);

}  // namespace chimere::improve
