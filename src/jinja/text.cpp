// text.cpp  Marked strings: appending and slicing keep the marks.
#include "jinja/text.h"

#include <algorithm>

namespace chimere::jinja {

void Text::append(std::string_view bytes, bool is_input) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    runs_.clear();
    input_ = is_input;
    bytes_.append(bytes);
    return;
  }
  const size_t old_size = bytes_.size();
  bytes_.append(bytes);
  if (runs_.empty()) {
    if (input_ == is_input) return;
    runs_.push_back({old_size, input_});
    runs_.push_back({bytes_.size(), is_input});
    return;
  }
  if (runs_.back().is_input == is_input) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), is_input});
  }
}

void Text::append(const Text& other, size_t begin, size_t end) {
  if (begin >= end) return;
  const std::string_view bytes(other.bytes_);
  if (other.runs_.empty()) {
    append(bytes.substr(begin, end - begin), other.input_);
    return;
  }
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                              [](size_t pos, const Run& r) { return pos < r.end; });
  for (; begin < end; ++run) {
    const size_t stop = std::min(run->end, end);
    append(bytes.substr(begin, stop - begin), run->is_input);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text result;
  result.append(*this, begin, end);
  return result;
}

std::vector<Span> Text::spans() const {
  std::vector<Span> result;
  if (bytes_.empty()) return result;
  if (runs_.empty()) return {{0, bytes_.size(), input_}};
  size_t begin = 0;
  for (const Run& run : runs_) {
    result.push_back({begin, run.end, run.is_input});
    begin = run.end;
  }
  return result;
}

}  // namespace chimere::jinja
