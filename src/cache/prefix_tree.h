// prefix_tree.h  A radix tree over token ids, with points: positions whose state is kept.
//
// Plain bookkeeping: it knows nothing of memory or files. A node ends at a point, where texts diverge, or at the root;
// so a text of n tokens costs n ids once, however many points lie on it and however many texts begin with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/sequence.h"

namespace chimere {

struct PrefixNode;

// A position that a prompt can continue from.
struct PrefixPoint {
  int32_t length = 0;  // tokens before it
  uint64_t name = 0;   // prefix_hash() of them
  uint64_t owner = 0;  // whose prompt it was
  Snapshot snapshot;   // while in_memory
  bool in_memory = false;
  bool on_disk = false;    // written, or on its way: the disk's queue keeps order
  bool is_filler = false;  // kept for its distance from others, not for where it lies in a conversation
  int32_t prefilled = 0;   // tokens before this were computed as a prompt, the later ones decoded
  uint64_t last_used = 0;  // a tick of the cache's clock

 private:
  friend class PrefixTree;
  PrefixNode* node_ = nullptr;
};

class PrefixTree {
 public:
  PrefixTree();
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The point at the end of these tokens, made when there is none.
  // REQUIRES: at least one token.
  PrefixPoint& put(std::span<const int32_t> tokens);
  void erase(PrefixPoint& point);

  struct Match {
    int32_t length = 0;                 // tokens that some text here begins with
    std::vector<PrefixPoint*> on_path;  // points at or before that, shortest first
    std::vector<PrefixPoint*> beyond;   // points of texts that begin with all of them
  };
  // With `with_beyond`, also the points beyond the end of the match.
  Match match(std::span<const int32_t> tokens, bool with_beyond) const;

  std::vector<int32_t> tokens(const PrefixPoint& point) const;
  // How a point relates to others. REQUIRES: it is in this tree.
  bool has_point_before(const PrefixPoint& point) const;
  std::vector<PrefixPoint*> points_before(const PrefixPoint& point) const;
  bool is_fork(const PrefixPoint& point) const;  // texts diverge after it, before the next point on any of them
  // The points after it until texts diverge, counted up to `limit`.
  int points_behind(const PrefixPoint& point, int limit) const;

  void for_each(const std::function<void(PrefixPoint&)>& visit) const;
  bool is_empty() const;
  // CHECKs that points and nodes are where they belong.
  void check_integrity() const;

 private:
  std::unique_ptr<PrefixNode> root_;
};

}  // namespace chimere
