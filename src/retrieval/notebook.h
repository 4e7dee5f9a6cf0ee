// notebook.h  What one owner accepted, ready to be asked: notes found by the words of a question, and the n-grams of
// all of them. Immutable: use it from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engram/text_ngrams.h"
#include "retrieval/note_file.h"
#include "retrieval/question.h"
#include "retrieval/word_index.h"

namespace chimere::retrieval {

// Tokens of a text.
using Encode = std::function<std::vector<int32_t>(std::string_view)>;

class Notebook : public std::enable_shared_from_this<Notebook> {
 public:
  static constexpr size_t kMaxPieceBytes = 800;  // a longer note is found and shown in pieces

  // `today`: what ages are counted from. Notes stay until they are forgotten; their n-grams age as those of tables do.
  static std::shared_ptr<const Notebook> make(const std::vector<Note>& notes, uint32_t today, const Encode& encode);
  // The same with one more.
  std::shared_ptr<const Notebook> with(Note note, uint32_t today, const Encode& encode) const;

  struct Found {
    const Note* note;
    std::string_view text;  // of the note, or the piece of it
    float score;            // 0 to 1: how much of the question it covers
  };
  // Best first, no text twice; none when nothing is about the question. Views into this notebook.
  std::vector<Found> about(std::string_view question, size_t k, const Rarity& rarity) const;

  // Shares the life of the notebook.
  std::shared_ptr<const engram::TextNgrams> ngrams() const { return {shared_from_this(), &ngrams_}; }
  size_t size() const { return notes_.size(); }
  uint64_t last_id() const { return notes_.empty() ? 0 : notes_.back()->note.id; }

 private:
  struct Entry {
    Note note;
    std::vector<std::string> pieces;
  };
  void add(Note note, uint32_t today, const Encode& encode, std::vector<std::string_view>& texts);

  std::vector<std::shared_ptr<const Entry>> notes_;
  std::vector<std::pair<uint32_t, uint32_t>> pieces_;  // by number in words_: note, and piece of it
  WordIndex words_;
  engram::TextNgrams ngrams_;
};

}  // namespace chimere::retrieval
