// scanners.h  One scanner for each regular expression of the published pre-tokenizers.
//
// In the expressions below \s is White_Space and L, N, M, P, S are general categories. CONTR stands for
// 's|'t|'re|'ve|'m|'ll|'d and SPACES for  \s*[\r\n]+|\s+(?!\S)|\s+
#pragma once

#include <cstddef>
#include <string_view>

namespace chimere::tokenizer {

// (?i:CONTR)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|SPACES
size_t scan_qwen35(std::string_view text, size_t pos);
// (?i:CONTR)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|SPACES
size_t scan_qwen2(std::string_view text, size_t pos);
// The same with \p{N}{1,3}.
size_t scan_llama3(std::string_view text, size_t pos);
// With U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and W = [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
// [^\r\n\p{L}\p{N}]?U*W+(?i:CONTR)?|[^\r\n\p{L}\p{N}]?U+W*(?i:CONTR)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|SPACES
size_t scan_gpt4o(std::string_view text, size_t pos);
// The same without contractions and with \p{N}.
size_t scan_tekken(std::string_view text, size_t pos);
// CONTR| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t scan_gpt2(std::string_view text, size_t pos);
// [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|SPACES
size_t scan_deepseek3(std::string_view text, size_t pos);

size_t scan_number(std::string_view text, size_t pos);              // \p{N}
size_t scan_numbers(std::string_view text, size_t pos);             // \p{N}+
size_t scan_three_numbers(std::string_view text, size_t pos);       // \p{N}{1,3}
size_t scan_three_ascii_digits(std::string_view text, size_t pos);  // [0-9][0-9][0-9]
size_t scan_han_kana(std::string_view text, size_t pos);            // [一-龥぀-ゟ゠-ヿ]+
size_t scan_asian(std::string_view text, size_t pos);               // [一-龥ࠀ-一가-퟿]+
size_t scan_newline(std::string_view text, size_t pos);             // [\r\n]
size_t scan_letters(std::string_view text, size_t pos);             // \s?\p{L}+
size_t scan_punctuation(std::string_view text, size_t pos);         // \s?\p{P}+
size_t scan_cased_letters(std::string_view text, size_t pos);     // \s?[A-Za-zµÀ-ÖØ-öø-ƺ...]+: cased_letters.cpp
size_t scan_wide_punctuation(std::string_view text, size_t pos);  // \s?[!-/:-~！-／：-～‘-‟　-。]+
size_t scan_last_spaces(std::string_view text, size_t pos);       // \s+$
size_t scan_falcon_punctuation(std::string_view text, size_t pos);  // [\p{P}\$\+<=>\^~\|`]+
size_t scan_plain_punctuation(std::string_view text, size_t pos);   // [\p{P}\$\+<=>\^~\|]+

}  // namespace chimere::tokenizer
