// note_file.h  The texts that one owner accepted, in a file: one JSON object a line, oldest first.
//
//   {"id":1,"source":"accepted","day":20773,"score":5.0,"text":"The capital of Zubrovia is Lutzhaven."}
//
// A text more is a line more. Only forgetting writes the file anew, and in one step. It is readable by its owner alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::retrieval {

struct Note {
  uint64_t id = 0;     // of this file; never given twice while the newest note stays
  std::string source;  // name under which it can be forgotten
  uint32_t day = 0;    // since 1970-01-01
  float score = 0;     // 0 to 5
  std::string text;
};

struct NoteFile {
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  // a larger one is not ours

  std::vector<Note> notes;
  size_t n_damaged = 0;  // lines that are no notes and were passed over
};

// Empty when there is no file.
Result<NoteFile> read_notes(const std::string& path);
// The line of a note, without its end.
std::string note_line(const Note& note);
// Those that `keeps` keeps stay; gives how many went. A file of which nothing is left goes too.
Result<size_t> keep_notes(const std::string& path, const std::function<bool(const Note&)>& keeps);

}  // namespace chimere::retrieval
