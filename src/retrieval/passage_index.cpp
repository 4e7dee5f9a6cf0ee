#include "retrieval/passage_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "base/platform/file_lock.h"
#include "base/platform/mapped_file.h"

namespace chimere::retrieval {
namespace {

Error corrupt(const std::string& name, const std::string& what) { return {Code::corrupt, name + ": " + what}; }

bool is_finite(std::span<const float> vector) {
  return std::all_of(vector.begin(), vector.end(), [](float x) { return std::isfinite(x); });
}

Result<uint32_t> take_u32(std::span<const std::byte>& bytes, const std::string& name) {
  uint32_t value = 0;
  if (bytes.size() < sizeof value) return corrupt(name, "a passage ends beyond the file");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

Result<std::string> take_text(std::span<const std::byte>& bytes, size_t n, size_t most, const std::string& name) {
  if (n > most || n > bytes.size())
    return corrupt(name, "a text of " + std::to_string(n) + " bytes ends beyond its limit");
  std::string text(reinterpret_cast<const char*>(bytes.data()), n);
  bytes = bytes.subspan(n);
  return text;
}

Result<PassageHeader> read_header(std::span<const std::byte> bytes, const std::string& name) {
  PassageHeader header;
  const PassageHeader expected;
  if (bytes.size() < sizeof header)
    return corrupt(name, "expected a file of passages, found " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != expected.magic || header.version != expected.version) {
    return corrupt(name, "expected a file of passages, version " + std::to_string(expected.version));
  }
  const std::span<const std::byte> body = bytes.subspan(sizeof header);
  if (header.n_passages > PassageIndex::kMaxPassages || header.dimensions == 0 || header.dimensions > (1u << 20) ||
      header.n_passages * header.dimensions > body.size() / sizeof(float) ||
      header.n_passages * header.dimensions * sizeof(float) + header.text_bytes != body.size()) {
    return corrupt(name, "its header does not agree with its size of " + std::to_string(bytes.size()) + " bytes");
  }
  if (hash64(body) != header.checksum) return corrupt(name, "its checksum is wrong");
  return header;
}

}  // namespace

PassageIndex::PassageIndex(uint64_t model, int dimensions)
    : model_(model), dimensions_(dimensions), search_(dimensions) {}

Result<PassageIndex> PassageIndex::open(const std::string& path, uint64_t model, int dimensions) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  return parse(file.bytes(), path, model, dimensions);
}

Result<PassageIndex> PassageIndex::parse(std::span<const std::byte> bytes, const std::string& name, uint64_t model,
                                         int dimensions) {
  TRY_ASSIGN(const PassageHeader header, read_header(bytes, name));
  if (header.model != model || header.dimensions != static_cast<uint32_t>(dimensions)) {
    return Error{Code::invalid_argument, name + ": was made with another model (" + std::to_string(header.dimensions) +
                                             " dimensions, expected " + std::to_string(dimensions) + ")"};
  }
  PassageIndex index(model, dimensions);
  const size_t n_floats = header.n_passages * header.dimensions;
  std::vector<float> vectors(n_floats);
  if (n_floats > 0) std::memcpy(vectors.data(), bytes.data() + sizeof header, n_floats * sizeof(float));
  if (!is_finite(vectors)) return corrupt(name, "a vector holds a value that is not finite");
  std::span<const std::byte> rest = bytes.subspan(sizeof header + n_floats * sizeof(float));
  for (uint64_t i = 0; i < header.n_passages; ++i) {
    TRY_ASSIGN(const uint32_t source_bytes, take_u32(rest, name));
    TRY_ASSIGN(const uint32_t text_bytes, take_u32(rest, name));
    Passage passage;
    TRY_ASSIGN(passage.source, take_text(rest, source_bytes, kMaxSourceBytes, name));
    TRY_ASSIGN(passage.text, take_text(rest, text_bytes, kMaxTextBytes, name));
    index.passages_.push_back(std::move(passage));
  }
  if (!rest.empty()) return corrupt(name, "something follows the last passage");
  index.search_.add(vectors);
  return Result<PassageIndex>{std::move(index)};
}

Status PassageIndex::save(const std::string& path) const {
  std::string body;
  const std::span<const float> vectors = search_.vectors();
  body.append(reinterpret_cast<const char*>(vectors.data()), vectors.size_bytes());
  const size_t text_at = body.size();
  const auto append_u32 = [&](size_t n) {
    const auto value = static_cast<uint32_t>(n);
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const Passage& passage : passages_) {
    append_u32(passage.source.size());
    append_u32(passage.text.size());
    body += passage.source;
    body += passage.text;
  }
  PassageHeader header;
  header.model = model_;
  header.dimensions = static_cast<uint32_t>(dimensions_);
  header.n_passages = passages_.size();
  header.text_bytes = body.size() - text_at;
  header.checksum = hash64(body);
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(std::as_bytes(std::span(&header, 1))));
  TRY(file.write(std::as_bytes(std::span(body.data(), body.size()))));
  return file.commit();
}

Status PassageIndex::add(Passage passage, std::span<const float> vector) {
  CHECK(vector.size() == static_cast<size_t>(dimensions_));
  if (passage.source.empty() || passage.source.size() > kMaxSourceBytes) {
    return Error{Code::invalid_argument, "source: expected a name of 1 to " + std::to_string(kMaxSourceBytes) +
                                             " bytes, found one of " + std::to_string(passage.source.size())};
  }
  if (passage.text.empty() || passage.text.size() > kMaxTextBytes) {
    return Error{Code::invalid_argument, "source '" + passage.source + "': expected passages of 1 to " +
                                             std::to_string(kMaxTextBytes) + " bytes, found one of " +
                                             std::to_string(passage.text.size())};
  }
  if (!is_finite(vector)) {
    return Error{Code::invalid_argument,
                 "source '" + passage.source + "': its embedding holds a value that is not finite"};
  }
  if (passages_.size() >= kMaxPassages) {
    return Error{Code::exhausted, "expected at most " + std::to_string(kMaxPassages) + " passages"};
  }
  passages_.push_back(std::move(passage));
  search_.add(vector);
  return Ok{};
}

size_t PassageIndex::forget(const std::string& source) {
  std::vector<Passage> kept;
  VectorSearch search(dimensions_);
  const auto d = static_cast<size_t>(dimensions_);
  for (size_t i = 0; i < passages_.size(); ++i) {
    if (passages_[i].source == source) continue;
    search.add(search_.vectors().subspan(i * d, d));
    kept.push_back(std::move(passages_[i]));
  }
  const size_t removed = passages_.size() - kept.size();
  passages_ = std::move(kept);
  search_ = std::move(search);
  return removed;
}

std::vector<PassageIndex::Match> PassageIndex::nearest(std::span<const float> query, size_t k) const {
  std::vector<Match> matches;
  for (const Neighbour& n : search_.nearest(query, k)) matches.push_back({&passages_[n.index], n.score});
  return matches;
}

Result<PassageHeader> passage_header(const std::string& path) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  return read_header(file.bytes(), path);
}

Status edit_passages(const std::string& path, uint64_t model, int dimensions,
                     const std::function<Status(PassageIndex&)>& edit) {
  TRY_ASSIGN(const FileLock lock, FileLock::acquire(path + ".lock"));
  PassageIndex index(model, dimensions);
  if (std::filesystem::exists(path)) {
    TRY_ASSIGN(index, PassageIndex::open(path, model, dimensions));
  }
  TRY(edit(index));
  return index.save(path);
}

std::vector<std::string> cut_passages(std::string_view text, size_t max_bytes) {
  std::vector<std::string> passages;
  const auto add = [&](std::string_view part) {
    const size_t first = part.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return;
    passages.emplace_back(part.substr(first, part.find_last_not_of(" \t\r\n") - first + 1));
  };
  while (!text.empty()) {
    const size_t blank = text.find("\n\n");
    std::string_view paragraph = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 2);
    while (paragraph.size() > max_bytes) {
      const std::string_view head = paragraph.substr(0, max_bytes);
      size_t end = head.rfind(". ");
      end = end == std::string_view::npos ? head.rfind(' ') : end + 1;
      if (end == std::string_view::npos || end == 0) {
        for (end = max_bytes; end > 1 && (static_cast<uint8_t>(paragraph[end]) & 0xC0) == 0x80;) --end;
      }
      add(paragraph.substr(0, end));
      paragraph.remove_prefix(end);
    }
    add(paragraph);
  }
  return passages;
}

}  // namespace chimere::retrieval
