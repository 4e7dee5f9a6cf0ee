// text_table.cpp  Open addressing with linear probing over the numbers of the texts.
#include "tokenizer/text_table.h"

#include <bit>

namespace chimere::tokenizer {

void TextTable::reserve(size_t n_texts, size_t n_bytes) {
  blob_.reserve(n_bytes);
  offsets_.reserve(n_texts + 1);
  if (slots_.size() < 2 * n_texts) rehash(2 * n_texts);
}

size_t TextTable::slot_of(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_text(text) & mask;
  while (slots_[slot] >= 0 && (*this)[slots_[slot]] != text) slot = (slot + 1) & mask;
  return slot;
}

int32_t TextTable::find(std::string_view text) const { return slots_.empty() ? -1 : slots_[slot_of(text)]; }

int32_t TextTable::intern(std::string_view text) {
  if (2 * offsets_.size() > slots_.size()) rehash(2 * slots_.size());
  const size_t slot = slot_of(text);
  if (slots_[slot] < 0) {
    slots_[slot] = size();
    blob_ += text;
    offsets_.push_back(blob_.size());
  }
  return slots_[slot];
}

void TextTable::rehash(size_t n_slots) {
  slots_.assign(std::bit_ceil(n_slots < 16 ? size_t{16} : n_slots), -1);
  for (int32_t i = 0; i < size(); ++i) slots_[slot_of((*this)[i])] = i;
}

}  // namespace chimere::tokenizer
