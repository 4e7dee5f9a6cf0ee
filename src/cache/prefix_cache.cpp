#include "cache/prefix_cache.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"

namespace chimere {
namespace {

// Names remembered to explain misses.
constexpr size_t kRemembered = 8192;
// The most points, so that eviction stays cheap however small the states are.
constexpr size_t kMaxPointsInRam = 20000;
// Memory for jobs that wait for the disk; points evicted beyond it are lost.
constexpr uint64_t kMaxQueuedBytes = uint64_t{512} << 20;
constexpr std::chrono::seconds kLongestFlush{30};

void remember(std::unordered_set<uint64_t>& names, std::deque<uint64_t>& order, uint64_t name) {
  if (!names.insert(name).second) return;
  order.push_back(name);
  if (order.size() <= kRemembered) return;
  names.erase(order.front());
  order.pop_front();
}

// The first n tokens of a snapshot of a model without recurrent layers.
Snapshot cut(const Snapshot& snapshot, int32_t n) {
  Snapshot s;
  s.length = n;
  s.recurrent = snapshot.recurrent;
  const size_t pages = std::min<size_t>(snapshot.pages.size(), (n + kPageTokens - 1) / kPageTokens);
  s.pages.assign(snapshot.pages.begin(), snapshot.pages.begin() + static_cast<std::ptrdiff_t>(pages));
  return s;
}

int32_t last_cut_at_or_before(std::span<const int32_t> cuts, int32_t at) {
  const auto after = std::upper_bound(cuts.begin(), cuts.end(), at);
  return after == cuts.begin() ? 0 : *(after - 1);
}

}  // namespace

const char* name(CacheMiss miss) {
  switch (miss) {
    case CacheMiss::none: return "none";
    case CacheMiss::empty: return "empty";
    case CacheMiss::changed: return "changed";
    case CacheMiss::no_snapshot: return "no_snapshot";
    case CacheMiss::evicted: return "evicted";
    case CacheMiss::bad_file: return "bad_file";
    case CacheMiss::scope: return "scope";
  }
  return "";
}

PrefixCache::PrefixCache(Executable& executable, uint64_t key, CacheConfig config, std::function<void()> wake)
    : executable_(executable),
      format_{key, executable.layout().page_bytes(), executable.layout().recurrent_floats() * sizeof(float)},
      config_(std::move(config)),
      recurrent_bytes_(format_.recurrent_bytes) {
  if (config_.ram_bytes == 0 || config_.disk.folder.empty() || config_.disk.quota_bytes == 0) return;
  auto found = [this](const PointRecord& record) {
    PrefixPoint& point = trees_[record.scope].put(record.tokens);
    point.name = record.name(format_.key);
    point.owner = record.owner;
    point.on_disk = true;
    point.prefilled = record.prefilled;
    point.is_filler = record.is_filler;
    point.last_used = ++tick_;
    by_name_[point.name] = {record.scope, &point};
  };
  disk_ = std::make_unique<DiskStore>(config_.disk, format_, std::move(wake), found);
}

PrefixCache::~PrefixCache() = default;

void PrefixCache::flush() {
  if (!disk_) return;
  const auto end = std::chrono::steady_clock::now() + kLongestFlush;
  std::vector<Place> places = by_worth();
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (place->point->on_disk || is_in_the_middle(trees_.at(place->scope), *place->point)) continue;
    while (!write(*place)) {
      if (std::chrono::steady_clock::now() > end) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

// A recurrent model continues from the points themselves; others from any cut before a point. Inside decoded text there
// are no cuts to respect.
PrefixPoint* PrefixCache::best(const PrefixTree::Match& match, std::span<const int32_t> cuts, int32_t longest,
                               bool in_memory, int32_t& length) const {
  PrefixPoint* best = nullptr;
  length = 0;
  auto consider = [&](PrefixPoint* point) {
    if (in_memory ? !point->in_memory : !point->on_disk && !point->in_memory) return;
    int32_t reach = std::min({point->length, match.length, longest});
    if (is_recurrent()) {
      if (reach < point->length) return;
      const bool is_decoded = point->length > point->prefilled;
      if (!is_decoded && !std::binary_search(cuts.begin(), cuts.end(), reach)) return;
    } else if (reach <= point->prefilled) {
      reach = last_cut_at_or_before(cuts, reach);
    }
    if (reach > length || (reach == length && best && point->last_used > best->last_used)) {
      best = point;
      length = reach;
    }
  };
  for (PrefixPoint* point : match.on_path) consider(point);
  for (PrefixPoint* point : match.beyond) consider(point);
  return length > 0 ? best : nullptr;
}

PrefixCache::Found PrefixCache::find(const Text& text, std::span<const int32_t> cuts, bool may_load) {
  Found found;
  const auto tree = trees_.find(text.scope);
  PrefixTree::Match match;
  const int32_t longest = static_cast<int32_t>(text.tokens.size()) - 1;
  if (tree != trees_.end()) match = tree->second.match(text.tokens, !is_recurrent());
  int32_t reach = 0, reach_anywhere = 0;
  PrefixPoint* point = best(match, cuts, longest, true, reach);
  PrefixPoint* anywhere = disk_ && may_load ? best(match, cuts, longest, false, reach_anywhere) : nullptr;
  if (anywhere && reach_anywhere > reach) {
    found.has_begun_loading = load({text.scope, anywhere});
    found.is_loading = true;
    return found;
  }
  found.differs_at = match.length;
  found.miss = why(text, match, cuts, reach);
  if (!point) return found;
  found.length = reach;
  found.snapshot = reach == point->length ? point->snapshot : cut(point->snapshot, reach);
  found.name = point->name;
  return found;
}

CacheMiss PrefixCache::why(const Text& text, const PrefixTree::Match& match, std::span<const int32_t> cuts,
                           int32_t length) const {
  if (cuts.empty() || length >= cuts.back()) return CacheMiss::none;
  // The cuts after what was found: was one of them kept earlier?
  uint64_t hash = prefix_hash(format_.key, text.scope);
  int32_t at = 0;
  CacheMiss known = CacheMiss::none;
  for (const int32_t c : cuts) {
    hash = prefix_hash(hash, text.tokens.subspan(at, c - at));
    at = c;
    if (c <= length) continue;
    if (bad_.count(hash)) known = CacheMiss::bad_file;
    if (evicted_.count(hash)) known = CacheMiss::evicted;
  }
  if (known != CacheMiss::none) return known;
  if (by_name_.empty()) return CacheMiss::empty;
  if (match.length == 0) {
    // Reported in sums only, so that nobody learns what others wrote.
    for (const auto& [scope, tree] : trees_) {
      if (scope != text.scope && tree.match(text.tokens, false).length >= cuts.front()) return CacheMiss::scope;
    }
  }
  return last_cut_at_or_before(cuts, match.length) > length ? CacheMiss::no_snapshot : CacheMiss::changed;
}

void PrefixCache::use(const Found& found) {
  ++n_lookups_;
  n_hits_ += found.length > 0;
  if (found.miss != CacheMiss::none) ++misses_[static_cast<size_t>(found.miss)];
  const auto entry = found.length > 0 ? by_name_.find(found.name) : by_name_.end();
  if (entry == by_name_.end()) return;  // nothing, or it was evicted for this very request
  PrefixPoint& used = *entry->second.point;
  const PrefixTree& tree = trees_.at(entry->second.scope);
  used.last_used = ++tick_;
  // Positions where texts diverge serve many; the others on the way were not used this time.
  for (PrefixPoint* point : tree.points_before(used)) {
    if (tree.is_fork(*point)) point->last_used = tick_;
  }
  if (disk_ && used.on_disk) disk_->touch(used.name);
}

bool PrefixCache::wants(const Text& text) const {
  if (config_.ram_bytes == 0 || text.tokens.empty()) return false;
  const auto place = by_name_.find(prefix_hash(prefix_hash(format_.key, text.scope), text.tokens));
  return place == by_name_.end() || !place->second.point->in_memory;
}

void PrefixCache::hold(const Snapshot& snapshot) {
  auto add = [&](const StateBlockPtr& block) {
    Block& held = blocks_[block.get()];
    if (held.holders++ > 0) return;
    held.block = block;
    ram_bytes_ += block->size_bytes();
  };
  for (const StateBlockPtr& page : snapshot.pages) add(page);
  if (snapshot.recurrent) add(snapshot.recurrent);
}

void PrefixCache::let_go(const Snapshot& snapshot) {
  auto remove = [&](const StateBlockPtr& block) {
    const auto held = blocks_.find(block.get());
    CHECK(held != blocks_.end());
    if (--held->second.holders > 0) return;
    ram_bytes_ -= block->size_bytes();
    if (held->second.page) pages_in_memory_.erase(*held->second.page);
    blocks_.erase(held);
    if (block.use_count() == 1) freed_bytes_ += block->size_bytes();
  };
  for (const StateBlockPtr& page : snapshot.pages) remove(page);
  if (snapshot.recurrent) remove(snapshot.recurrent);
}

void PrefixCache::set_memory(PrefixPoint& point, Snapshot snapshot) {
  hold(snapshot);
  point.snapshot = std::move(snapshot);
  point.in_memory = true;
}

void PrefixCache::keep(const Text& text, Snapshot snapshot, int32_t prefilled, bool is_filler) {
  CHECK(snapshot.length == static_cast<int32_t>(text.tokens.size()));
  if (!wants(text)) return;
  hold(snapshot);  // so that making room takes nothing of it
  if (!make_room(0)) return let_go(snapshot);
  PrefixPoint& point = trees_[text.scope].put(text.tokens);
  point.name = prefix_hash(prefix_hash(format_.key, text.scope), text.tokens);
  const auto other = by_name_.find(point.name);
  if (other != by_name_.end() && other->second.point != &point) {
    // Two texts with one name: the second is not kept.
    let_go(snapshot);
    trees_.at(text.scope).erase(point);
    return;
  }
  by_name_[point.name] = {text.scope, &point};
  point.owner = text.owner;
  point.prefilled = prefilled;
  point.is_filler = is_filler;
  point.last_used = ++tick_;
  point.snapshot = std::move(snapshot);
  point.in_memory = true;
}

bool PrefixCache::is_in_the_middle(const PrefixTree& tree, const PrefixPoint& point) const {
  if (point.is_filler) return true;
  // The first point ends what many conversations begin with; the last two are where the next turn, or a regenerated
  // last one, continues.
  return tree.has_point_before(point) && tree.points_behind(point, 3) >= 3;
}

std::vector<PrefixCache::Place> PrefixCache::by_worth() const {
  struct Ranked {
    bool matters;
    uint64_t last_used;
    Place place;
  };
  std::vector<Ranked> ranked;
  for (const auto& entry : by_name_) {
    const Place& place = entry.second;
    if (!place.point->in_memory) continue;
    ranked.push_back({!is_in_the_middle(trees_.at(place.scope), *place.point), place.point->last_used, place});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.matters != b.matters ? b.matters : a.last_used < b.last_used;
  });
  std::vector<Place> places;
  for (const Ranked& r : ranked) places.push_back(r.place);
  return places;
}

void PrefixCache::drop_memory(const Place& place) {
  PrefixPoint& point = *place.point;
  if (disk_ && !point.on_disk && !point.is_filler) write(place);
  let_go(point.snapshot);
  point.snapshot = {};
  point.in_memory = false;
  if (!point.on_disk) {
    remember(evicted_, evicted_order_, point.name);
    forget(place);
  }
}

void PrefixCache::forget(const Place& place) {
  by_name_.erase(place.point->name);
  const auto tree = trees_.find(place.scope);
  tree->second.erase(*place.point);
  if (tree->second.is_empty()) trees_.erase(tree);
}

void PrefixCache::clear(std::optional<uint64_t> owner, std::function<void(CacheUse)> done) {
  std::vector<Place> places;
  for (const auto& entry : by_name_) {
    if (!owner || entry.second.point->owner == *owner) places.push_back(entry.second);
  }
  CacheUse cleared;
  cleared.entries = places.size();
  const uint64_t before = ram_bytes_;
  for (const Place& place : places) {
    if (place.point->in_memory) let_go(place.point->snapshot);
    forget(place);
  }
  cleared.bytes = before - ram_bytes_;
  if (!disk_) return done(cleared);
  disk_->clear(owner, [cleared, done = std::move(done)](const CacheUse& on_disk) {
    done({cleared.bytes + on_disk.bytes, cleared.entries + on_disk.entries});
  });
}

bool PrefixCache::make_room(uint64_t bytes) {
  if (bytes > config_.ram_bytes) return false;
  if (ram_bytes_ + bytes <= config_.ram_bytes && by_name_.size() < kMaxPointsInRam) return true;
  // A little more than requested: scanning all points pays only if several go at a time.
  const uint64_t goal =
      config_.ram_bytes - std::max(bytes, std::min(config_.ram_bytes, bytes + config_.ram_bytes / 32));
  for (const Place& place : by_worth()) {
    if (ram_bytes_ <= goal && by_name_.size() < kMaxPointsInRam) break;
    drop_memory(place);
  }
  return ram_bytes_ + bytes <= config_.ram_bytes;
}

void PrefixCache::release(uint64_t bytes) {
  const uint64_t before = freed_bytes_;
  for (const Place& place : by_worth()) {
    if (freed_bytes_ - before >= bytes) return;
    drop_memory(place);
  }
}

uint64_t PrefixCache::releasable_bytes() const {
  uint64_t bytes = 0;
  for (const auto& entry : blocks_) {
    const Block& held = entry.second;
    if (held.block.use_count() == held.holders + 1) bytes += held.block->size_bytes();
  }
  return bytes;
}

bool PrefixCache::load(const Place& place) {
  if (!loading_.insert(place.point->name).second) return false;
  DiskStore::Read job{place.point->name, {}};
  for (const auto& page : pages_in_memory_) job.in_memory.push_back(page.first);
  disk_->read(std::move(job));
  return true;
}

void PrefixCache::take_loaded(DiskStore::Results::Loaded& loaded) {
  loading_.erase(loaded.name);
  const auto entry = by_name_.find(loaded.name);
  if (entry == by_name_.end() || entry->second.point->in_memory) return;
  const Place place = entry->second;
  PrefixPoint& point = *place.point;
  auto give_up = [&](bool is_bad) {
    if (is_bad) remember(bad_, bad_order_, point.name);
    point.on_disk = false;
    forget(place);
  };
  if (!loaded.ok) return give_up(true);
  if (trees_.at(place.scope).tokens(point) != loaded.record.tokens) return give_up(true);
  uint64_t bytes = recurrent_bytes_ + loaded.state.tail.size();
  for (const auto& page : loaded.pages) bytes += page.second.size();
  if (!make_room(bytes)) return;  // stays on the disk
  StateMemory& memory = executable_.memory();
  Snapshot s;
  s.length = point.length;
  auto block_of = [&](std::span<const std::byte> content) -> StateBlockPtr {
    auto block = StateBlock::allocate(memory, content.size());
    // A device may have less than the budget: then what is in memory gives way to what somebody waits for.
    while (!block && block.error().code == Code::exhausted) {
      const uint64_t before = freed_bytes_;
      release(content.size());
      if (freed_bytes_ == before) break;
      block = StateBlock::allocate(memory, content.size());
    }
    if (!block) return nullptr;
    memory.write((*block)->data(), content.data(), content.size());
    return std::move(*block);
  };
  std::map<PageName, StateBlockPtr> fresh;
  for (const PageName& name : loaded.record.pages) {
    StateBlockPtr page;
    if (const auto known = pages_in_memory_.find(name); known != pages_in_memory_.end()) {
      page = blocks_.at(known->second).block;
    } else if (const auto again = fresh.find(name); again != fresh.end()) {
      page = again->second;
    } else if (const auto read = loaded.pages.find(name); read != loaded.pages.end()) {
      page = fresh[name] = block_of(read->second);
    }
    if (!page) return;  // evicted meanwhile, or no memory: the file is still there
    s.pages.push_back(std::move(page));
  }
  if (!loaded.state.tail.empty()) s.pages.push_back(block_of(loaded.state.tail));
  if (recurrent_bytes_ > 0) s.recurrent = block_of(loaded.state.recurrent);
  if ((!s.pages.empty() && !s.pages.back()) || (recurrent_bytes_ > 0 && !s.recurrent)) return;
  set_memory(point, std::move(s));
  point.last_used = ++tick_;
  for (const auto& [name, block] : fresh) {
    blocks_.at(block.get()).page = name;
    pages_in_memory_[name] = block.get();
  }
}

bool PrefixCache::poll() {
  if (!disk_) return false;
  DiskStore::Results results = disk_->take_results();
  for (const PointRecord& record : results.written) {
    const auto entry = by_name_.find(record.name(format_.key));
    if (entry == by_name_.end() || !entry->second.point->in_memory) continue;
    const Snapshot& snapshot = entry->second.point->snapshot;
    for (size_t i = 0; i < record.pages.size() && i < snapshot.pages.size(); ++i) {
      blocks_.at(snapshot.pages[i].get()).page = record.pages[i];
      pages_in_memory_[record.pages[i]] = snapshot.pages[i].get();
    }
  }
  for (const uint64_t name : results.lost) {
    const auto entry = by_name_.find(name);
    if (entry == by_name_.end()) continue;
    entry->second.point->on_disk = false;
    if (entry->second.point->in_memory) continue;
    remember(evicted_, evicted_order_, name);
    forget(Place(entry->second));
  }
  for (DiskStore::Results::Loaded& loaded : results.loaded) take_loaded(loaded);
  return !results.written.empty() || !results.lost.empty() || !results.loaded.empty();
}

bool PrefixCache::write(const Place& place) {
  PrefixPoint& point = *place.point;
  const Snapshot& s = point.snapshot;
  if (disk_->queued_bytes() > 0 && disk_->queued_bytes() + s.size_bytes() > kMaxQueuedBytes) return false;
  DiskStore::Write job;
  job.record.scope = place.scope;
  job.record.owner = point.owner;
  job.record.tokens = trees_.at(place.scope).tokens(point);
  job.record.prefilled = point.prefilled;
  job.record.is_filler = point.is_filler;
  auto bytes_of = [](const StateBlockPtr& block) {
    std::vector<std::byte> bytes(block->size_bytes());
    block->read(bytes.data());
    return bytes;
  };
  job.record.pages.resize(format_.n_pages(point.length));
  for (size_t i = 0; i < job.record.pages.size(); ++i) {
    const Block& held = blocks_.at(s.pages[i].get());
    if (held.page) {
      job.record.pages[i] = *held.page;
    } else {
      job.new_pages.push_back({i, bytes_of(s.pages[i])});
    }
  }
  if (format_.has_tail(point.length)) job.state.tail = bytes_of(s.pages.back());
  if (s.recurrent) job.state.recurrent = bytes_of(s.recurrent);
  disk_->write(std::move(job));
  point.on_disk = true;
  return true;
}

bool PrefixCache::write_some() {
  if (!disk_ || disk_->queued_bytes() > 0) return false;
  std::vector<Place> places = by_worth();
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (!place->point->on_disk && !is_in_the_middle(trees_.at(place->scope), *place->point)) return write(*place);
  }
  return false;
}

void PrefixCache::check_integrity() const {
  size_t n = 0;
  std::unordered_map<const StateBlock*, int> holders;
  uint64_t bytes = 0;
  for (const auto& [scope, tree] : trees_) {
    tree.check_integrity();
    CHECK(!tree.is_empty());
    const uint64_t tree_scope = scope;
    tree.for_each([&](PrefixPoint& point) {
      ++n;
      const auto place = by_name_.find(point.name);
      CHECK(place != by_name_.end() && place->second.point == &point && place->second.scope == tree_scope);
      CHECK(point.in_memory || point.on_disk);
      CHECK(point.in_memory || (point.snapshot.pages.empty() && !point.snapshot.recurrent));
      auto hold = [&](const StateBlockPtr& block) {
        if (holders[block.get()]++ == 0) bytes += block->size_bytes();
      };
      for (const StateBlockPtr& page : point.snapshot.pages) hold(page);
      if (point.snapshot.recurrent) hold(point.snapshot.recurrent);
    });
  }
  CHECK(n == by_name_.size() && bytes == ram_bytes_ && holders.size() == blocks_.size());
  for (const auto& [block, count] : holders) CHECK(blocks_.at(block).holders == count);
  CHECK(ram_bytes_ <= config_.ram_bytes);
}

}  // namespace chimere
