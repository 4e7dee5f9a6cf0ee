#include "engram/record.h"

#include <algorithm>

#include "engram/table_format.h"

namespace chimere::engram {

int compare_keys(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin());
  if (x == a.end()) return 0;
  return *x < *y ? -1 : 1;
}

MergedRecords::MergedRecords(std::vector<MergeInput> inputs) {
  for (MergeInput& input : inputs) heads_.push_back({std::move(input), {}, false});
}

Status MergedRecords::advance(Head& head) {
  const std::vector<uint32_t> before(head.record.key.begin(), head.record.key.end());
  TRY_ASSIGN(const bool found, head.input.stream->next(head.record));
  head.is_at_end = !found;
  if (found && !before.empty() && compare_keys(before, head.record.key) >= 0) {
    return Error{Code::corrupt, "table: expected records in ascending order, found one out of its place"};
  }
  return Ok{};
}

Status MergedRecords::add_entries(const Head& head) {
  for (const uint64_t word : head.record.entries) {
    Entry entry = Entry::unpack(word);
    if (entry.source >= head.input.source_map.size()) {
      return Error{Code::corrupt, "table: an entry names source " + std::to_string(entry.source) + " of " +
                                      std::to_string(head.input.source_map.size())};
    }
    entry.source = head.input.source_map[entry.source];
    if (entry.source != MergeInput::kForgotten) entries_.push_back(entry.pack());
  }
  return Ok{};
}

// Adds up what the same source says about the same token, and puts the most frequent first.
void MergedRecords::combine() {
  const auto by_token = [](uint64_t a, uint64_t b) {
    const Entry x = Entry::unpack(a), y = Entry::unpack(b);
    return x.token != y.token ? x.token < y.token : x.source < y.source;
  };
  std::sort(entries_.begin(), entries_.end(), by_token);
  size_t n = 0;
  for (const uint64_t word : entries_) {
    const Entry entry = Entry::unpack(word);
    if (n > 0) {
      Entry last = Entry::unpack(entries_[n - 1]);
      if (last.token == entry.token && last.source == entry.source) {
        last.count += entry.count;
        entries_[n - 1] = last.pack();
        continue;
      }
    }
    entries_[n++] = word;
  }
  entries_.resize(n);
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](uint64_t a, uint64_t b) { return Entry::unpack(a).count > Entry::unpack(b).count; });
  uint64_t total = 0;
  for (const uint64_t word : entries_) total += Entry::unpack(word).count;
  total_ = static_cast<uint32_t>(std::min<uint64_t>(total, UINT32_MAX));
}

Result<bool> MergedRecords::next(Record& record) {
  if (!started_) {
    started_ = true;
    for (Head& head : heads_) TRY(advance(head));
  }
  while (true) {
    const Head* first = nullptr;
    for (const Head& head : heads_) {
      if (!head.is_at_end && (!first || compare_keys(head.record.key, first->record.key) < 0)) first = &head;
    }
    if (!first) return false;
    key_.assign(first->record.key.begin(), first->record.key.end());
    entries_.clear();
    for (Head& head : heads_) {
      if (head.is_at_end || compare_keys(head.record.key, key_) != 0) continue;
      TRY(add_entries(head));
      TRY(advance(head));
    }
    if (entries_.empty()) continue;
    combine();
    record = {key_, total_, entries_};
    return true;
  }
}

}  // namespace chimere::engram
