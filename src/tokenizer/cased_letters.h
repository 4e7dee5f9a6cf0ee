// cased_letters.h  The letters with upper and lower case as DeepSeek-LLM's pre-tokenizer lists them.
#pragma once

namespace chimere::tokenizer {

bool is_cased_letter(char32_t code);

}  // namespace chimere::tokenizer
