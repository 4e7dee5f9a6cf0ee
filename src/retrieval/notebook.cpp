#include "retrieval/notebook.h"

#include <algorithm>
#include <utility>

#include "engram/table_format.h"
#include "retrieval/passage_index.h"
#include "retrieval/question.h"

namespace chimere::retrieval {
namespace {

// A note that covers less is about something else that shares a word.
constexpr float kLeastCovered = 0.4f;
// Against the best note: one that covers much less of the question only distracts.
constexpr float kLeastOfBest = 0.85f;

}  // namespace

void Notebook::add(Note note, uint32_t today, const Encode& encode, std::vector<std::string_view>& texts) {
  ngrams_.add(encode(note.text), engram::weight_at_age(note.day, today));
  auto entry = std::make_shared<Entry>();
  entry->pieces = cut_passages(note.text, kMaxPieceBytes);
  entry->note = std::move(note);
  const auto number = static_cast<uint32_t>(notes_.size());
  for (uint32_t i = 0; i < entry->pieces.size(); ++i) {
    pieces_.emplace_back(number, i);
    texts.push_back(entry->pieces[i]);
  }
  notes_.push_back(std::move(entry));
}

std::shared_ptr<const Notebook> Notebook::make(const std::vector<Note>& notes, uint32_t today, const Encode& encode) {
  auto made = std::make_shared<Notebook>();
  std::vector<std::string_view> texts;
  for (const Note& note : notes) made->add(note, today, encode, texts);
  made->words_.add(texts);
  return made;
}

std::shared_ptr<const Notebook> Notebook::with(Note note, uint32_t today, const Encode& encode) const {
  auto made = std::make_shared<Notebook>(*this);
  std::vector<std::string_view> texts;
  made->add(std::move(note), today, encode, texts);
  made->words_.add(texts);
  return made;
}

std::vector<Notebook::Found> Notebook::about(std::string_view question, size_t k, const Rarity& rarity) const {
  std::vector<Found> found;
  if (k == 0) return found;
  // Some more than are wanted, since equal texts are found together.
  for (const WordIndex::Match& match : words_.best(asked_words(question, rarity), kLeastCovered, 4 * k + 16)) {
    const auto& [number, piece] = pieces_[match.text];
    const Entry& entry = *notes_[number];
    const std::string_view text = entry.pieces[piece];
    if (!found.empty() && match.covered < kLeastOfBest * found.front().score) continue;
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const Found& f) { return f.text == text; });
    if (!is_known) found.push_back({&entry.note, text, match.covered});
    if (found.size() == k) break;
  }
  return found;
}

}  // namespace chimere::retrieval
