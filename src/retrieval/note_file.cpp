#include "retrieval/note_file.h"

#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "base/platform/atomic_file.h"
#include "text/json.h"

namespace chimere::retrieval {
namespace {

bool parse_note(const std::string& line, Note& note) {
  const auto parsed = parse_json(line);
  if (!parsed || !parsed->is_object()) return false;
  const Json& json = *parsed;
  const auto has = [&](const char* name, bool (Json::*is)() const noexcept) {
    const auto found = json.find(name);
    return found != json.end() && ((*found).*is)();
  };
  if (!has("id", &Json::is_number_unsigned) || !has("source", &Json::is_string) ||
      !has("day", &Json::is_number_unsigned) || !has("score", &Json::is_number) || !has("text", &Json::is_string)) {
    return false;
  }
  note.id = json["id"].get<uint64_t>();
  note.source = json["source"].get<std::string>();
  note.day = json["day"].get<uint32_t>();
  note.score = json["score"].get<float>();
  note.text = json["text"].get<std::string>();
  return true;
}

}  // namespace

Result<NoteFile> read_notes(const std::string& path) {
  NoteFile file;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Result<NoteFile>{std::move(file)};
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{Code::io, path + ": expected a file of notes, found something else"};
  }
  if (const uintmax_t bytes = std::filesystem::file_size(path, error); error || bytes > NoteFile::kMaxBytes) {
    return Error{Code::corrupt, path + ": expected at most " + std::to_string(NoteFile::kMaxBytes) +
                                    " bytes of notes, found " + std::to_string(bytes)};
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    Note note;
    if (parse_note(line, note)) {
      file.notes.push_back(std::move(note));
    } else {
      ++file.n_damaged;
    }
  }
  return Result<NoteFile>{std::move(file)};
}

std::string note_line(const Note& note) {
  const Json json{
      {"id", note.id}, {"source", note.source}, {"day", note.day}, {"score", note.score}, {"text", note.text}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<size_t> keep_notes(const std::string& path, const std::function<bool(const Note&)>& keeps) {
  TRY_ASSIGN(const NoteFile file, read_notes(path));
  std::string lines;
  size_t removed = 0;
  for (const Note& note : file.notes) {
    if (keeps(note)) {
      lines += note_line(note) + "\n";
    } else {
      ++removed;
    }
  }
  if (removed == 0) return removed;
  if (lines.empty()) {
    std::error_code error;
    if (!std::filesystem::remove(path, error)) return Error{Code::io, path + ": can not be removed"};
    return removed;
  }
  TRY_ASSIGN(AtomicFile out, AtomicFile::create(path, Readers::owner));
  TRY(out.write(std::as_bytes(std::span(lines))));
  TRY(out.commit());
  return removed;
}

}  // namespace chimere::retrieval
