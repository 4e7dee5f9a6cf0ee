// notes_bench.cpp  What it costs to find the notes that a question is about, and to add one more, from 10^3 to 10^4.
//
//   notes_bench        notes of twelve made-up words; medians over 51 questions, of processor time
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/hash.h"
#include "retrieval/notebook.h"

namespace {

using chimere::retrieval::Note;
using chimere::retrieval::Notebook;

// A few words are in many notes and most in few, as in language.
std::string word(uint64_t seed) {
  const uint64_t noise = chimere::hash_mix(seed + 1);
  uint64_t number = (noise & 0xffff) % (1 + ((noise >> 16) & 0x3fff) % (1 + ((noise >> 32) & 0x3fff)));
  std::string text;
  for (int i = 0; i < 5; ++i, number /= 26) text += static_cast<char>('a' + number % 26);
  return text;
}

Note note(uint64_t i) {
  Note made;
  made.id = i + 1;
  made.source = "accepted";
  for (uint64_t j = 0; j < 12; ++j) made.text += word(i * 16 + j) + " ";
  return made;
}

std::vector<int32_t> encode(std::string_view text) { return {text.begin(), text.end()}; }

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

double us_since(std::clock_t start) { return static_cast<double>(std::clock() - start) * 1e6 / CLOCKS_PER_SEC; }

}  // namespace

int main() {
  std::printf("%10s %14s %14s\n", "notes", "us a question", "us a note more");
  for (const size_t n : {1000, 2000, 5000, 10000}) {
    std::vector<Note> notes;
    for (uint64_t i = 0; i < n; ++i) notes.push_back(note(i));
    const auto notebook = Notebook::make(notes, 0, encode);
    std::vector<double> asked, added;
    for (uint64_t q = 0; q < 51; ++q) {
      const std::string question = note(q * 37 % n).text + note(~q).text;
      std::clock_t start = std::clock();
      const size_t found = notebook->about(question, 3, [](std::string_view) { return 1.0f; }).size();
      asked.push_back(us_since(start));
      start = std::clock();
      const auto more = notebook->with(note(n + q), 0, encode);
      added.push_back(us_since(start));
      if (found == 0 || more->size() != n + 1) return 1;
    }
    std::printf("%10zu %14.1f %14.1f\n", n, median(asked), median(added));
  }
  return 0;
}
