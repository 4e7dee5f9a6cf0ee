#include "improve/mezo/run_state.h"

#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/philox.h"

namespace chimere::improve {
namespace {

template <class T>
uint64_t mixed(uint64_t h, const T& value) {
  return hash64(std::as_bytes(std::span(&value, 1)), h);
}

}  // namespace

uint64_t run_identity(models::Model& model, std::span<const Example> examples, const TrainOptions& o) {
  uint64_t h = hash64("learning 1");
  h = mixed(h, model.fingerprint());
  h = mixed(h, static_cast<int>(model.backend()));
  for (const int n : {static_cast<int>(o.method), o.rank, o.steps, o.batch, o.directions, o.own_text,
                      static_cast<int>(o.train_a), static_cast<int>(o.schedule)}) {
    h = mixed(h, n);
  }
  for (const float f : {o.alpha, o.learning_rate, o.eps, o.momentum, o.decay, o.keep}) h = mixed(h, f);
  h = mixed(h, o.seed);
  h = hash64(o.start, hash64(o.targets, h));
  for (const Example& e : examples) {
    h = hash64(std::as_bytes(std::span(e.tokens)), h);
    h = mixed(h, e.answer_from);
    h = mixed(h, e.weight);
    h = mixed(h, static_cast<int>(e.is_kept));
  }
  return h;
}

double scheduled(RateSchedule schedule, int step, int steps) {
  const double done = static_cast<double>(step) / std::max(1, steps);
  switch (schedule) {
    case RateSchedule::constant: return 1;
    case RateSchedule::linear: return 1 - done;
    case RateSchedule::cosine: return 0.5 + 0.5 * std::cos(done * 3.14159265358979323846);
  }
  return 1;
}

size_t Shuffle::operator()(uint64_t at) {
  const uint64_t round = at / n_;
  if (round != round_) {
    round_ = round;
    order_.resize(n_);
    std::iota(order_.begin(), order_.end(), 0u);
    for (size_t i = n_; i > 1; --i) {
      const PhiloxWords words = philox(hash_mix(seed_), round, i);
      std::swap(order_[i - 1], order_[words[0] % i]);
    }
  }
  return order_[at % n_];
}

}  // namespace chimere::improve
