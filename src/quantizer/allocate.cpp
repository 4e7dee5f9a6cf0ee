#include "quantizer/allocate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace chimere::quantizer {
namespace {

// Options of an item that none other beats in both, cheapest first; and those of them on the lower convex hull.
struct Front {
  std::vector<size_t> order;  // into the item's options
  std::vector<size_t> hull;   // into `order`
};

Front front_of(const std::vector<Option>& options) {
  Front front;
  std::vector<size_t> all(options.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::sort(all.begin(), all.end(), [&](size_t a, size_t b) {
    return options[a].cost != options[b].cost ? options[a].cost < options[b].cost : options[a].value < options[b].value;
  });
  for (const size_t i : all) {
    if (front.order.empty() || options[i].value < options[front.order.back()].value) front.order.push_back(i);
  }
  for (size_t k = 0; k < front.order.size(); ++k) {
    const Option& c = options[front.order[k]];
    while (front.hull.size() >= 2) {
      const Option& a = options[front.order[front.hull[front.hull.size() - 2]]];
      const Option& b = options[front.order[front.hull.back()]];
      // b lies on or above the line from a to c.
      if ((b.value - a.value) * (c.cost - a.cost) < (c.value - a.value) * (b.cost - a.cost)) break;
      front.hull.pop_back();
    }
    front.hull.push_back(k);
  }
  return front;
}

struct Problem {
  Items items;
  double limit;
  std::vector<Front> fronts;

  const Option& option(size_t item, size_t choice) const { return items[item][choice]; }
};

Result<Problem> make_problem(Items items, double limit) {
  Problem p{items, limit, {}};
  double least = 0;
  for (const auto& options : items) {
    CHECK(!options.empty());
    p.fronts.push_back(front_of(options));
    least += options[p.fronts.back().order.front()].cost;
  }
  if (least > limit) {
    return Error{Code::invalid_argument,
                 "the smallest possible is " + std::to_string(least) + ", the limit is " + std::to_string(limit)};
  }
  return Result<Problem>{std::move(p)};
}

Allocation summed(const Problem& p, std::vector<size_t> chosen) {
  Allocation a;
  for (size_t i = 0; i < chosen.size(); ++i) {
    a.value += p.option(i, chosen[i]).value;
    a.cost += p.option(i, chosen[i]).cost;
  }
  a.chosen = std::move(chosen);
  return a;
}

// Single upgrades along the fronts, best drop per cost first, until none fits.
Allocation filled(const Problem& p, std::vector<size_t> chosen) {
  std::vector<size_t> at(chosen.size());  // place of the choice in its front; what is not in it is exchanged for better
  double cost = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto& order = p.fronts[i].order;
    size_t k = 0;
    while (k + 1 < order.size() && p.option(i, order[k + 1]).cost <= p.option(i, chosen[i]).cost) ++k;
    at[i] = k;
    cost += p.option(i, order[k]).cost;
  }
  for (;;) {
    size_t best = chosen.size();
    double best_rate = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const auto& order = p.fronts[i].order;
      if (at[i] + 1 >= order.size()) continue;
      const Option &now = p.option(i, order[at[i]]), &next = p.option(i, order[at[i] + 1]);
      if (cost + next.cost - now.cost > p.limit) continue;
      const double rate = (now.value - next.value) / (next.cost - now.cost);
      if (rate > best_rate) {
        best_rate = rate;
        best = i;
      }
    }
    if (best == chosen.size()) break;
    const auto& order = p.fronts[best].order;
    cost += p.option(best, order[at[best] + 1]).cost - p.option(best, order[at[best]]).cost;
    ++at[best];
  }
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = p.fronts[i].order[at[i]];
  return summed(p, std::move(chosen));
}

std::vector<size_t> cheapest(const Problem& p) {
  std::vector<size_t> chosen;
  for (const Front& f : p.fronts) chosen.push_back(f.order.front());
  return chosen;
}

// The price at which the relaxed problem just meets the limit, and the whole steps taken before it.
struct Relaxed {
  double price = 0;
  std::vector<size_t> chosen;
};

Relaxed relax(const Problem& p) {
  struct Step {
    double rate, cost;
    size_t item, to;
  };
  std::vector<Step> steps;
  Relaxed r{0, cheapest(p)};
  double cost = 0;
  for (size_t i = 0; i < p.fronts.size(); ++i) {
    const Front& f = p.fronts[i];
    cost += p.option(i, r.chosen[i]).cost;
    for (size_t h = 1; h < f.hull.size(); ++h) {
      const Option &a = p.option(i, f.order[f.hull[h - 1]]), &b = p.option(i, f.order[f.hull[h]]);
      steps.push_back({(a.value - b.value) / (b.cost - a.cost), b.cost - a.cost, i, f.order[f.hull[h]]});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.rate > b.rate; });
  for (const Step& s : steps) {
    if (cost + s.cost > p.limit) {
      r.price = s.rate;
      break;
    }
    cost += s.cost;
    r.chosen[s.item] = s.to;
  }
  return r;
}

// A partial choice: sums so far and where it came from.
struct State {
  double cost, value, lost;  // lost: how much the choices so far exceed the bound's
  uint32_t parent, choice;
};

struct Step {
  uint32_t parent, choice;
};

class Programme {
 public:
  Programme(const Problem& p, const Relaxed& relaxed, Allocation incumbent, size_t max_states);
  Allocation run();

 private:
  void reduce();
  std::vector<State> grow(const std::vector<State>& from, size_t place);
  void thin(std::vector<State>& states) const;
  void look_for_better(const std::vector<State>& states, size_t place);
  std::vector<size_t> path(size_t place, uint32_t state) const;
  // What is still good enough to become a better solution.
  double most_lost() const { return best_.value - bound_ - 1e-12 * std::fabs(best_.value); }

  const Problem& p_;
  const double price_;
  Allocation best_;
  const size_t max_states_;
  double bound_ = 0;
  std::vector<double> base_;                                 // [items] least value + price * cost
  std::vector<size_t> base_choice_;                          // [items]
  std::vector<std::vector<size_t>> left_;                    // [items] options that are still possible
  std::vector<size_t> order_;                                // items with more than one of them, hardest last
  std::vector<double> rest_least_, rest_base_, rest_value_;  // [order_ + 1] of the places behind: costs and values
  std::vector<std::vector<Step>> steps_;                     // [places done][states]
};

Programme::Programme(const Problem& p, const Relaxed& relaxed, Allocation incumbent, size_t max_states)
    : p_(p), price_(relaxed.price), best_(std::move(incumbent)), max_states_(max_states) {
  bound_ = -price_ * p.limit;
  for (size_t i = 0; i < p.items.size(); ++i) {
    double least = INFINITY;
    size_t at = 0;
    for (const size_t j : p.fronts[i].order) {
      const double priced = p.option(i, j).value + price_ * p.option(i, j).cost;
      if (priced < least) {
        least = priced;
        at = j;
      }
    }
    base_.push_back(least);
    base_choice_.push_back(at);
    bound_ += least;
  }
}

void Programme::reduce() {
  left_.clear();
  order_.clear();
  for (size_t i = 0; i < p_.items.size(); ++i) {
    std::vector<size_t> left;
    for (const size_t j : p_.fronts[i].order) {
      const double lost = p_.option(i, j).value + price_ * p_.option(i, j).cost - base_[i];
      if (lost < most_lost() || j == base_choice_[i]) left.push_back(j);
    }
    left_.push_back(std::move(left));
    if (left_.back().size() > 1) order_.push_back(i);
  }
  // Large steps of cost first: the small ones behind them then fill what is left in many ways, which finds good solutions
  // early, and those prune.
  const auto spread = [&](size_t i) {
    return p_.option(i, left_[i].back()).cost - p_.option(i, left_[i].front()).cost;
  };
  std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return spread(a) > spread(b); });
  rest_least_.assign(order_.size() + 1, 0);
  rest_base_ = rest_value_ = rest_least_;
  for (size_t k = order_.size(); k-- > 0;) {
    const size_t i = order_[k];
    rest_least_[k] = rest_least_[k + 1] + p_.option(i, left_[i].front()).cost;
    rest_base_[k] = rest_base_[k + 1] + p_.option(i, base_choice_[i]).cost;
    rest_value_[k] = rest_value_[k + 1] + p_.option(i, base_choice_[i]).value;
  }
}

std::vector<State> Programme::grow(const std::vector<State>& from, size_t place) {
  const size_t item = order_[place];
  std::vector<State> states;
  for (size_t s = 0; s < from.size(); ++s) {
    for (const size_t j : left_[item]) {
      const Option& o = p_.option(item, j);
      State next{from[s].cost + o.cost, from[s].value + o.value, from[s].lost + o.value + price_ * o.cost - base_[item],
                 static_cast<uint32_t>(s), static_cast<uint32_t>(j)};
      if (next.cost + rest_least_[place + 1] > p_.limit || next.lost >= most_lost()) continue;
      states.push_back(next);
    }
  }
  std::sort(states.begin(), states.end(),
            [](const State& a, const State& b) { return a.cost != b.cost ? a.cost < b.cost : a.value < b.value; });
  size_t n = 0;
  for (const State& s : states) {
    if (n == 0 || s.value < states[n - 1].value) states[n++] = s;
  }
  states.resize(n);
  return states;
}

// Keeps the least lost of each few neighbours in cost.
void Programme::thin(std::vector<State>& states) const {
  const size_t most = std::max<size_t>(16, max_states_ / std::max<size_t>(1, order_.size()));
  if (states.size() <= most) return;
  const size_t group = (states.size() + most - 1) / most;
  size_t n = 0;
  for (size_t at = 0; at < states.size(); at += group) {
    const auto from = states.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = states.begin() + static_cast<std::ptrdiff_t>(std::min(at + group, states.size()));
    states[n++] = *std::min_element(from, to, [](const State& a, const State& b) { return a.lost < b.lost; });
  }
  states.resize(n);
}

// Completed with what the price would choose, a state may already be the best solution.
void Programme::look_for_better(const std::vector<State>& states, size_t place) {
  const State* found = nullptr;
  double value = best_.value;
  for (const State& s : states) {
    if (s.cost + rest_base_[place] <= p_.limit && s.value + rest_value_[place] < value) {
      value = s.value + rest_value_[place];
      found = &s;
    }
  }
  if (!found) return;
  Allocation better = summed(p_, path(place, static_cast<uint32_t>(found - states.data())));
  if (better.cost <= p_.limit && better.value < best_.value) best_ = std::move(better);
}

std::vector<size_t> Programme::path(size_t place, uint32_t state) const {
  std::vector<size_t> chosen = base_choice_;
  for (size_t k = place; k-- > 0;) {
    chosen[order_[k]] = steps_[k][state].choice;
    state = steps_[k][state].parent;
  }
  return chosen;
}

Allocation Programme::run() {
  bool proven = true;
  if (most_lost() > 0) {
    reduce();
    State start{0, 0, 0, 0, 0};
    for (size_t i = 0; i < p_.items.size(); ++i) {
      if (left_[i].size() > 1) continue;
      start.cost += p_.option(i, base_choice_[i]).cost;
      start.value += p_.option(i, base_choice_[i]).value;
    }
    std::vector<State> states = {start};
    for (size_t place = 0; place < order_.size() && !states.empty(); ++place) {
      states = grow(states, place);
      const size_t whole = states.size();
      thin(states);
      proven = proven && states.size() == whole;
      std::vector<Step> steps;
      steps.reserve(states.size());
      for (const State& s : states) steps.push_back({s.parent, s.choice});
      steps_.push_back(std::move(steps));
      look_for_better(states, place + 1);
    }
  }
  best_.bound = proven ? best_.value : bound_;
  best_.proven = proven;
  return std::move(best_);
}

}  // namespace

Result<Allocation> allocate(Items items, double limit, size_t max_states) {
  TRY_ASSIGN(const Problem p, make_problem(items, limit));
  const Relaxed relaxed = relax(p);
  Programme programme(p, relaxed, filled(p, relaxed.chosen), max_states);
  return Result<Allocation>{programme.run()};
}

Result<Allocation> allocate_greedy(Items items, double limit) {
  TRY_ASSIGN(const Problem p, make_problem(items, limit));
  return Result<Allocation>{filled(p, cheapest(p))};
}

namespace {

// splitmix64
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Downgrades items at random until the costs are within the limit.
Allocation repaired(const Problem& p, std::vector<size_t> genes, Dice& dice) {
  Allocation a = summed(p, std::move(genes));
  while (a.cost > p.limit) {
    const size_t i = dice.below(a.chosen.size());
    const size_t least = p.fronts[i].order.front();
    a.cost += p.option(i, least).cost - p.option(i, a.chosen[i]).cost;
    a.value += p.option(i, least).value - p.option(i, a.chosen[i]).value;
    a.chosen[i] = least;
  }
  return a;
}

}  // namespace

Result<Allocation> allocate_by_evolution(Items items, double limit, uint64_t seed) {
  constexpr size_t kPopulation = 128, kGenerations = 200, kElite = kPopulation / 8;
  constexpr double kCrossover = 0.3, kMutation = 0.15;
  TRY_ASSIGN(const Problem p, make_problem(items, limit));
  Dice dice(seed);
  const auto any = [&](size_t i) { return p.fronts[i].order[dice.below(p.fronts[i].order.size())]; };
  std::vector<Allocation> population;
  for (size_t n = 0; n < kPopulation; ++n) {
    std::vector<size_t> genes;
    for (size_t i = 0; i < items.size(); ++i) genes.push_back(any(i));
    population.push_back(repaired(p, std::move(genes), dice));
  }
  const auto better = [](const Allocation& a, const Allocation& b) { return a.value < b.value; };
  for (size_t g = 0; g < kGenerations; ++g) {
    std::stable_sort(population.begin(), population.end(), better);
    for (size_t n = kElite; n < kPopulation; ++n) {
      std::vector<size_t> genes = population[dice.below(kElite)].chosen;
      const std::vector<size_t>& other = population[dice.below(kElite)].chosen;
      const bool crosses = dice.share() < kCrossover;
      for (size_t i = 0; i < genes.size(); ++i) {
        if (crosses && dice.below(2) == 0) genes[i] = other[i];
        if (!crosses && dice.share() < kMutation) genes[i] = any(i);
      }
      population[n] = repaired(p, std::move(genes), dice);
    }
  }
  const auto best = std::min_element(population.begin(), population.end(), better);
  return Result<Allocation>{filled(p, best->chosen)};
}

}  // namespace chimere::quantizer
