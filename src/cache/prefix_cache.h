// prefix_cache.h  What prompts share: states of positions that were computed before, in memory and on the disk.
//
// A position of a text is kept as a point of a radix tree (prefix_tree.h): its KV pages, shared with every other
// holder, and a copy of the recurrent state there. A model with recurrent layers can go on from points alone; one
// without them can cut a point's pages at any earlier position.
//
// Numbers: a prompt is computed in slices whose ends ("cuts") follow from its tokens alone, cached or not. find() goes
// back to cuts of the prompt itself, so the rest is computed by the same arithmetic as all of it would be; only where
// an answer was decoded and comes back as prompt may it go on from any point inside that answer.
//
// Memory: one budget for pages and states of points, each shared block counted once. Room is made before anything is
// allocated. What gives way first: points in the middle of a conversation that nobody turned off at, then the least
// recently used. With a disk, what matters is written when the engine is idle, when it gives way, and at the end.
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
  // `key` stands for everything that states depend on. `wake` is called on another thread when poll() has work.
  PrefixCache(Executable& executable, uint64_t key, CacheConfig config, std::function<void()> wake);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Text {
    uint64_t scope = 0;
    std::span<const int32_t> tokens;
    uint64_t owner = 0;  // who may clear() what is kept of it
  };
  struct Found {
    int32_t length = 0;  // tokens that need not be computed
    Snapshot snapshot;   // there, when length > 0
    CacheMiss miss = CacheMiss::none;
    int32_t differs_at = 0;   // the first token that no kept text has
    bool is_loading = false;  // something longer comes from the disk; poll() tells when to ask again
    uint64_t name = 0;        // of the point that it comes from, when length > 0
  };
  // The longest position before the last token that the prompt can go on from. `cuts`: ends of the slices it is
  // computed in, ascending. With may_load, a longer one on the disk is asked for.
  Found find(const Text& text, std::span<const int32_t> cuts, bool may_load);
  // A result of find() is used now: it counts, and its point is worth keeping.
  void use(const Found& found);

  // Whether there is no state in memory for this position yet.
  bool wants(const Text& text) const;
  // Makes room for so many bytes, within the budget; false when they do not fit into it at all.
  bool make_room(uint64_t bytes);
  // Keeps the state of a position. `prefilled`: tokens before this were computed as a prompt.
  void keep(const Text& text, Snapshot snapshot, int32_t prefilled, bool is_filler);
  // Gives up points until this much memory is free again, or nothing is left to give.
  void release(uint64_t bytes);
  uint64_t releasable_bytes() const;  // held by the cache alone
  bool holds(const StateBlock& block) const { return blocks_.count(&block) > 0; }

  // Forgets what is kept for an owner, or everything, on the disk also what other models kept. `done` is called once
  // with what was given back, here or on the disk's thread. What runs now is kept when it ends.
  void clear(std::optional<uint64_t> owner, std::function<void(CacheUse)> done);

  // Takes over what the disk has done; false when it was nothing.
  bool poll();
  // One step towards having on the disk what matters; false when there is nothing to do. Call when nothing else is.
  bool write_some();
  // Everything that matters goes to the disk. Takes as long as the disk does, within limits.
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

  // The sums are right and every point is where it belongs; CHECKs otherwise.
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
  void load(const Place& place);
  void take_loaded(DiskStore::Results::Loaded& loaded);
  CacheMiss why(const Text& text, const PrefixTree::Match& match, std::span<const int32_t> cuts, int32_t length) const;
  void hold(const Snapshot& snapshot);
  void let_go(const Snapshot& snapshot);
  void set_memory(PrefixPoint& point, Snapshot snapshot);
  void drop_memory(const Place& place);
  void forget(const Place& place);
  bool is_in_the_middle(const PrefixTree& tree, const PrefixPoint& point) const;
  std::vector<Place> by_worth() const;  // in memory, what gives way first in front
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
  uint64_t freed_bytes_ = 0;  // given back so far, as nobody else held it
  uint64_t tick_ = 0;
  std::unordered_set<uint64_t> loading_;
  std::unordered_set<uint64_t> evicted_, bad_;  // names, for why(): the latest of them
  std::deque<uint64_t> evicted_order_, bad_order_;
  uint64_t n_lookups_ = 0, n_hits_ = 0;
  std::array<uint64_t, kCacheMisses> misses_{};
  std::unique_ptr<DiskStore> disk_;  // last: its thread ends first
};

}  // namespace chimere
