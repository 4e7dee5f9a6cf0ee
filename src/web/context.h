// context.h  How long work for one question may take, and whether anybody still wants it.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/result.h"

namespace chimere::web {

struct WebContext {
  using Clock = std::chrono::steady_clock;

  Clock::time_point deadline = Clock::time_point::max();
  std::function<bool()> is_cancelled;  // any thread; empty: never

  bool cancelled() const { return is_cancelled && is_cancelled(); }
  std::chrono::milliseconds left() const {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return std::chrono::milliseconds(0);
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
  }
  // The same with an earlier end.
  WebContext within(std::chrono::milliseconds time) const {
    return {std::min(deadline, Clock::now() + std::min<Clock::duration>(time, std::chrono::hours(24))), is_cancelled};
  }
  // With this part of the time that is left.
  WebContext share(double part) const {
    return deadline == Clock::time_point::max()
               ? *this
               : within(std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(left().count()) * part)));
  }
  Status check(const char* what) const {
    if (cancelled()) return Error{Code::cancelled, std::string(what) + ": cancelled"};
    if (Clock::now() >= deadline) return Error{Code::exhausted, std::string(what) + ": no time is left"};
    return Ok{};
  }
};

}  // namespace chimere::web
