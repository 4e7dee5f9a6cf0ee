#include "tools/tool_keeper.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace chimere::tools {
namespace {

constexpr std::chrono::seconds kLookTime{30};  // for one look

}  // namespace

ToolKeeper::ToolKeeper(std::vector<Look> looks, std::chrono::milliseconds pause)
    : thread_([looks = std::move(looks), pause](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any woken;
        while (!stop.stop_requested()) {
          {
            std::unique_lock lock(mutex);
            woken.wait_for(lock, stop, pause, [] { return false; });
          }
          for (const Look& look : looks) {
            if (stop.stop_requested()) return;
            ToolContext context;
            context.deadline = std::chrono::steady_clock::now() + kLookTime;
            context.is_cancelled = [stop] { return stop.stop_requested(); };
            look(context);
          }
        }
      }) {}

}  // namespace chimere::tools
