// document_kind.h  What kind of file some bytes are: by what they begin with, else by their name.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "documents/document.h"

namespace chimere::documents {

// By the ending of the name alone; nullopt: it says nothing.
std::optional<Kind> kind_of_name(std::string_view name);

// Refuses what is no text and no PDF: the message says what it looks like.
Result<Kind> kind_of(std::string_view bytes, std::string_view name);

}  // namespace chimere::documents
