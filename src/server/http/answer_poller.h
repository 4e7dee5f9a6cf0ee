// answer_poller.h  How the I/O thread learns that an answer has something new.
//
// To wake a sleeping thread costs the one that does it some tens of microseconds: too much for every token of a small
// model. So while answers flow the I/O thread looks by itself, twice a millisecond, and those who have news only set a
// flag. After a few looks that found nothing it sleeps, and the next one who has news wakes it. Tokens that come faster
// than it looks travel together.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <set>

namespace chimere::server {

// Set by those who have news, taken by the poller.
using NewsFlag = std::atomic<bool>;

// Somebody who waits for news. On the I/O thread.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual NewsFlag& news() = 0;
  virtual void wake() = 0;
};

class AnswerPoller {
 public:
  // Kept alive by every Wake, so that a late one finds an io_context to post to.
  AnswerPoller() : nap_(io) {}

  boost::asio::io_context io{1};

  // On the I/O thread.
  void add(Waiting* waiting) {
    waiting_.insert(waiting);
    if (waiting->news().load()) ring();
  }
  void remove(Waiting* waiting) { waiting_.erase(waiting); }

  // From any thread, after a flag was set. Only the first ring after a sleep has to wake the I/O thread.
  //
  // No news is lost: a ringer sets its flag, then reads `is_looking_`; the poller clears `is_looking_`, then reads the
  // flags. In one order of all four, either the ringer sees that nobody looks, or the poller sees the flag.
  void ring() {
    if (is_looking_.exchange(true)) return;
    // A handler runs inside io.run(), which does not outlive us; one that never runs must not keep us alive.
    boost::asio::post(io, [this] { look(); });
  }

  // Nobody looks any more; lets io.run() end.
  void stop() {
    stopped_ = true;
    nap_.cancel();
  }

 private:
  static constexpr std::chrono::microseconds kNap{500};
  static constexpr int kEmptyLooks = 8;

  void look() {
    if (stopped_) return;
    empty_looks_ = deliver() ? 0 : empty_looks_ + 1;
    if (empty_looks_ > kEmptyLooks || waiting_.empty()) {
      is_looking_ = false;
      empty_looks_ = 0;
      if (!has_news() || is_looking_.exchange(true)) return;
      deliver();
    }
    nap_.expires_after(kNap);
    nap_.async_wait([this](boost::system::error_code ec) {
      if (!ec) look();
    });
  }

  bool deliver() {
    bool any = false;
    for (Waiting* waiting : waiting_) {
      if (!waiting->news().exchange(false)) continue;
      waiting->wake();
      any = true;
    }
    return any;
  }

  bool has_news() const {
    for (Waiting* waiting : waiting_) {
      if (waiting->news().load()) return true;
    }
    return false;
  }

  boost::asio::steady_timer nap_;
  std::set<Waiting*> waiting_;
  std::atomic<bool> is_looking_{false};
  int empty_looks_ = 0;
  bool stopped_ = false;
};

}  // namespace chimere::server
