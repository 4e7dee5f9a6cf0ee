// prefix_cache.h  Snapshots of positions in earlier prompts, in memory and on disk, for prompts that begin alike.
//
// A kept position is a point of a radix tree over token ids (prefix_tree.h). It holds the KV pages up to there, shared
// with every other holder, and a copy of the recurrent state. A model with recurrent layers can continue only from
// points; one without them can also cut a point's pages at any earlier position.
//
// Numbers: a prompt is computed in slices whose ends ("cuts") follow from its tokens alone, cached or not. find() only
// returns positions that are cuts of the prompt itself, so that the rest is computed by the same arithmetic as without
// a cache. The exception is an answer that was decoded and comes back as part of a prompt: any point inside it will do.
//
// Memory: one budget for pages and states of all points, each shared block counted once. Room is made before anything
// is allocated. Evicted first are points in the middle of a conversation at which no other branches off, then the
// least recently used. With a disk, points worth keeping are written when the engine is idle, on eviction, and at exit.
//
// Used by the engine thread alone. docs/caches.md has the whole story.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache/cache_miss.h"
#include "cache/disk_store.h"
#include "cache/prefix_tree.h"

namespace chimere {

struct CacheConfig {
  uint64_t ram_bytes = 0;  // 0: nothing is kept
  DiskConfig disk;
};

class PrefixCache {
 public:
  // `key` identifies everything that states depend on. `wake` is called on another thread when poll() has work.
  PrefixCache(Executable& executable, uint64_t key, CacheConfig config, std::function<void()> wake);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Text {
    uint64_t scope = 0;
    std::span<const int32_t> tokens;
    uint64_t owner = 0;  // who may clear() what is kept of this text
  };
  struct Found {
    int32_t length = 0;  // tokens that need not be computed
    Snapshot snapshot;   // of that position, when length > 0
    CacheMiss miss = CacheMiss::none;
    int32_t differs_at = 0;          // the first token at which every kept text differs
    bool is_loading = false;         // a longer match is being read from disk; poll() says when to ask again
    bool has_begun_loading = false;  // since this call
    uint64_t name = 0;               // of the point that the snapshot comes from, when length > 0
  };
  // The furthest position before the last token that the prompt can continue from. `cuts`: the ends of its slices,
  // ascending. With may_load, a further one on disk is requested.
  Found find(const Text& text, std::span<const int32_t> cuts, bool may_load);
  // Records that a result of find() is used: it counts as a hit and refreshes its point.
  void use(const Found& found);

  // Whether no state of this position is in memory yet.
  bool wants(const Text& text) const;
  // Makes room for that many bytes within the budget; false when they exceed all of it.
  bool make_room(uint64_t bytes);
  // Keeps the state of a position. `prefilled`: tokens before this were computed as a prompt.
  void keep(const Text& text, Snapshot snapshot, int32_t prefilled, bool is_filler);
  // Evicts points until this much memory is free, or none is left.
  void release(uint64_t bytes);
  uint64_t releasable_bytes() const;  // in blocks that only the cache holds
  bool holds(const StateBlock& block) const { return blocks_.count(&block) > 0; }

  // Forgets what is kept for an owner, or everything (on disk, of other models too). `done` is called once with what
  // was freed, here or on the disk's thread. Requests that run now are kept again when they end.
  void clear(std::optional<uint64_t> owner, std::function<void(CacheUse)> done);

  // Takes over what the disk's thread has finished; false when there was nothing.
  bool poll();
  // Writes one more point worth keeping to disk; false when none is left. Call when the engine is idle.
  bool write_some();
  // Writes every point worth keeping to disk. Blocks while the disk works, up to a limit.
  void flush();

  uint64_t ram_bytes() const { return ram_bytes_; }
  uint64_t disk_bytes() const { return disk_ ? disk_->disk_bytes() : 0; }
  uint64_t others_disk_bytes() const { return disk_ ? disk_->others_bytes() : 0; }  // of other models
  uint64_t disk_limit_bytes() const { return disk_ ? disk_->limit_bytes() : 0; }    // of these two together
  // Where it is; empty when there is none. Any thread.
  std::string disk_folder() const { return disk_ ? disk_->folder() : std::string(); }
  uint64_t queued_bytes() const { return disk_ ? disk_->queued_bytes() : 0; }
  uint64_t n_points() const { return by_name_.size(); }
  uint64_t n_lookups() const { return n_lookups_; }
  uint64_t n_hits() const { return n_hits_; }
  const std::array<uint64_t, kCacheMisses>& misses() const { return misses_; }

  // CHECKs that the sums are right and that every point is where it belongs.
  void check_integrity() const;

 private:
  struct Block {
    StateBlockPtr block;
    int holders = 0;
    std::optional<PageName> page;  // its name on the disk, once it has one
  };
  struct Place {
    uint64_t scope;
    PrefixPoint* point;
  };

  bool is_recurrent() const { return recurrent_bytes_ > 0; }
  PrefixPoint* best(const PrefixTree::Match& match, std::span<const int32_t> cuts, int32_t longest, bool in_memory,
                    int32_t& length) const;
  bool load(const Place& place);  // false: it is being read already
  void take_loaded(DiskStore::Results::Loaded& loaded);
  CacheMiss why(const Text& text, const PrefixTree::Match& match, std::span<const int32_t> cuts, int32_t length) const;
  void hold(const Snapshot& snapshot);
  void let_go(const Snapshot& snapshot);
  void set_memory(PrefixPoint& point, Snapshot snapshot);
  void drop_memory(const Place& place);
  void forget(const Place& place);
  bool is_in_the_middle(const PrefixTree& tree, const PrefixPoint& point) const;
  std::vector<Place> by_worth() const;  // points in memory, the next to evict first
  bool write(const Place& place);

  Executable& executable_;
  const PointFormat format_;
  const CacheConfig config_;
  const uint64_t recurrent_bytes_;
  std::map<uint64_t, PrefixTree> trees_;  // by scope
  std::unordered_map<uint64_t, Place> by_name_;
  std::unordered_map<const StateBlock*, Block> blocks_;
  std::map<PageName, const StateBlock*> pages_in_memory_;
  uint64_t ram_bytes_ = 0;
  uint64_t freed_bytes_ = 0;  // so far, in blocks that nobody else held
  uint64_t tick_ = 0;
  std::unordered_set<uint64_t> loading_;
  std::unordered_set<uint64_t> evicted_, bad_;  // the latest names, for why()
  std::deque<uint64_t> evicted_order_, bad_order_;
  uint64_t n_lookups_ = 0, n_hits_ = 0;
  std::array<uint64_t, kCacheMisses> misses_{};
  std::unique_ptr<DiskStore> disk_;  // last: its thread ends first
};

}  // namespace chimere
