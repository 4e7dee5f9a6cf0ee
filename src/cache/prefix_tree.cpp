#include "cache/prefix_tree.h"

#include <algorithm>

#include "base/check.h"

namespace chimere {

struct PrefixNode {
  std::vector<int32_t> edge;  // from the parent to here; empty for the root alone
  int32_t depth = 0;          // tokens from the root
  PrefixNode* parent = nullptr;
  std::map<int32_t, std::unique_ptr<PrefixNode>> children;  // by the first token of their edge
  std::unique_ptr<PrefixPoint> point;
};

namespace {

size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin());
}

// Cuts the edge to `node` after n tokens and returns the new node in between.
PrefixNode* split(PrefixNode& node, size_t n) {
  PrefixNode& parent = *node.parent;
  std::unique_ptr<PrefixNode>& place = parent.children.at(node.edge.front());
  auto middle = std::make_unique<PrefixNode>();
  middle->edge.assign(node.edge.begin(), node.edge.begin() + n);
  middle->depth = parent.depth + static_cast<int32_t>(n);
  middle->parent = &parent;
  node.edge.erase(node.edge.begin(), node.edge.begin() + n);
  node.parent = middle.get();
  middle->children[node.edge.front()] = std::move(place);
  place = std::move(middle);
  return place.get();
}

// A node without a point and with one child becomes a part of the edge to that child.
void join_with_child(PrefixNode& node) {
  std::unique_ptr<PrefixNode> child = std::move(node.children.begin()->second);
  child->edge.insert(child->edge.begin(), node.edge.begin(), node.edge.end());
  child->parent = node.parent;
  std::unique_ptr<PrefixNode>& place = node.parent->children.at(node.edge.front());
  place = std::move(child);
}

void visit_all(const PrefixNode& from, const std::function<void(PrefixNode&)>& visit) {
  std::vector<const PrefixNode*> open = {&from};
  while (!open.empty()) {
    const PrefixNode* node = open.back();
    open.pop_back();
    for (const auto& child : node->children) open.push_back(child.second.get());
    visit(const_cast<PrefixNode&>(*node));
  }
}

}  // namespace

PrefixTree::PrefixTree() : root_(std::make_unique<PrefixNode>()) {}

PrefixTree::~PrefixTree() {
  // Leaves first, so that a long chain of nodes causes no deep recursion.
  std::vector<std::unique_ptr<PrefixNode>> open;
  open.push_back(std::move(root_));
  while (!open.empty()) {
    std::unique_ptr<PrefixNode> node = std::move(open.back());
    open.pop_back();
    for (auto& child : node->children) open.push_back(std::move(child.second));
  }
}

PrefixPoint& PrefixTree::put(std::span<const int32_t> tokens) {
  CHECK(!tokens.empty());
  PrefixNode* node = root_.get();
  size_t at = 0;
  while (at < tokens.size()) {
    const auto rest = tokens.subspan(at);
    const auto found = node->children.find(rest.front());
    if (found == node->children.end()) {
      auto leaf = std::make_unique<PrefixNode>();
      leaf->edge.assign(rest.begin(), rest.end());
      leaf->depth = static_cast<int32_t>(tokens.size());
      leaf->parent = node;
      node = (node->children[rest.front()] = std::move(leaf)).get();
      break;
    }
    PrefixNode& child = *found->second;
    const size_t common = common_length(child.edge, rest);
    node = common == child.edge.size() ? &child : split(child, common);
    at += common;
  }
  if (!node->point) {
    node->point = std::make_unique<PrefixPoint>();
    node->point->length = node->depth;
    node->point->node_ = node;
  }
  return *node->point;
}

void PrefixTree::erase(PrefixPoint& point) {
  PrefixNode* node = point.node_;
  node->point.reset();
  if (node->children.empty()) {
    PrefixNode* parent = node->parent;
    parent->children.erase(node->edge.front());
    node = parent;
  }
  if (node != root_.get() && !node->point && node->children.size() == 1) join_with_child(*node);
}

PrefixTree::Match PrefixTree::match(std::span<const int32_t> tokens, bool with_beyond) const {
  Match match;
  const PrefixNode* node = root_.get();
  const PrefixNode* end = node;  // the last node that the match reached into
  size_t at = 0;
  while (at < tokens.size()) {
    const auto found = node->children.find(tokens[at]);
    if (found == node->children.end()) break;
    end = found->second.get();
    const size_t common = common_length(end->edge, tokens.subspan(at));
    at += common;
    if (common < end->edge.size()) break;
    node = end;
    if (node->point) match.on_path.push_back(node->point.get());
  }
  match.length = static_cast<int32_t>(at);
  if (with_beyond && at > 0) {
    visit_all(*end, [&](PrefixNode& n) {
      if (n.point && n.depth > match.length) match.beyond.push_back(n.point.get());
    });
  }
  return match;
}

std::vector<int32_t> PrefixTree::tokens(const PrefixPoint& point) const {
  std::vector<int32_t> all(point.length);
  for (const PrefixNode* node = point.node_; node->parent; node = node->parent) {
    std::copy(node->edge.begin(), node->edge.end(), all.begin() + node->parent->depth);
  }
  return all;
}

bool PrefixTree::has_point_before(const PrefixPoint& point) const {
  for (const PrefixNode* node = point.node_->parent; node; node = node->parent) {
    if (node->point) return true;
  }
  return false;
}

std::vector<PrefixPoint*> PrefixTree::points_before(const PrefixPoint& point) const {
  std::vector<PrefixPoint*> points;
  for (const PrefixNode* node = point.node_->parent; node; node = node->parent) {
    if (node->point) points.push_back(node->point.get());
  }
  return points;
}

bool PrefixTree::is_fork(const PrefixPoint& point) const {
  const PrefixNode* node = point.node_;
  while (node->children.size() == 1) {
    node = node->children.begin()->second.get();
    if (node->point) return false;
  }
  return node->children.size() > 1;
}

int PrefixTree::points_behind(const PrefixPoint& point, int limit) const {
  int n = 0;
  const PrefixNode* node = point.node_;
  while (node->children.size() == 1 && n < limit) {
    node = node->children.begin()->second.get();
    if (node->point) ++n;
  }
  return n;
}

void PrefixTree::for_each(const std::function<void(PrefixPoint&)>& visit) const {
  visit_all(*root_, [&](PrefixNode& node) {
    if (node.point) visit(*node.point);
  });
}

bool PrefixTree::is_empty() const { return root_->children.empty(); }

void PrefixTree::check_integrity() const {
  CHECK(!root_->point && root_->edge.empty());
  visit_all(*root_, [&](PrefixNode& node) {
    for (const auto& [first, child] : node.children) {
      CHECK(child->parent == &node && !child->edge.empty() && child->edge.front() == first);
      CHECK(child->depth == node.depth + static_cast<int32_t>(child->edge.size()));
      CHECK(child->point || child->children.size() > 1);
      if (child->point) CHECK(child->point->length == child->depth && child->point->node_ == child.get());
    }
  });
}

}  // namespace chimere
