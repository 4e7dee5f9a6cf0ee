#include "odo/branch.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <utility>

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using orchestrator::ChatStream;

// How long a cancelled run may go unnoticed.
constexpr std::chrono::milliseconds kLookAtBranches{20};
// Where a step ends. A blank behind a sentence belongs to the next word, so that the model reads the tokens it would write.
constexpr std::array<std::pair<const char*, const char*>, 4> kBorders = {
    {{"\n", "\n"}, {". ", "."}, {"! ", "!"}, {"? ", "?"}}};

const char* border_end(const std::string& stop) {
  const auto found =
      std::find_if(kBorders.begin(), kBorders.end(), [&](const auto& border) { return stop == border.first; });
  return found == kBorders.end() ? nullptr : found->second;
}

// Rung by other threads, also after those who wait are gone.
struct Bell {
  std::mutex mutex;
  std::condition_variable rings;
  bool has_rung = false;

  void ring() {
    {
      const std::lock_guard lock(mutex);
      has_rung = true;
    }
    rings.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex);
    rings.wait_for(lock, kLookAtBranches, [&] { return has_rung; });
    has_rung = false;
  }
};

void add(Piece& piece, ChatChunk chunk) {
  piece.reasoning += chunk.reasoning;
  piece.content += chunk.content;
  piece.tokens.insert(piece.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
  if (chunk.is_terminal()) piece.last = std::move(chunk);
}

}  // namespace

double Piece::logprob_sum() const {
  double sum = 0;
  for (const orchestrator::TokenInfo& token : tokens) sum += static_cast<double>(token.token.logprob);
  return sum;
}

std::vector<Piece> read_pieces(orchestrator::ChatService& chat, std::vector<std::pair<ChatRequest, int>> requests,
                               RunTeller& teller, int step, bool& wants_answer) {
  const auto bell = std::make_shared<Bell>();
  std::vector<std::unique_ptr<ChatStream>> streams;
  for (auto& [request, n] : requests) {
    for (auto& stream : chat.start(std::move(request), n, [bell] { bell->ring(); }))
      streams.push_back(std::move(stream));
  }
  std::vector<Piece> pieces(streams.size());
  size_t n_open = streams.size();
  for (bool is_cancelled = false; n_open > 0;) {
    if (!is_cancelled && teller.is_cancelled()) {
      is_cancelled = true;
      for (auto& stream : streams) {
        if (stream) stream->cancel();
      }
    }
    if (teller.wants_answer_now()) {
      wants_answer = true;
      for (auto& stream : streams) {
        if (stream) stream->stop_thinking();
      }
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      while (streams[i]) {
        std::optional<ChatChunk> chunk = streams[i]->poll();
        if (!chunk) break;
        teller.works_on(streams[i]->engine_id());
        add(pieces[i], std::move(*chunk));
        if (pieces[i].last.is_terminal()) {
          teller.add_tokens(step, pieces[i].last.usage);
          streams[i].reset();
          --n_open;
        }
      }
    }
    if (n_open > 0) bell->wait();
  }
  return pieces;
}

ChatRequest going_on(const ChatRequest& asked, const Branch& branch, const StepCuts& cuts, bool to_border,
                     uint64_t seed) {
  ChatRequest request = asked;
  request.seed = seed;
  request.logprobs = true;
  const int32_t left = asked.max_tokens < 0 ? INT32_MAX : std::max(1, asked.max_tokens - branch.n_tokens);
  if (asked.max_tokens >= 0) request.max_tokens = left;
  if (to_border) {
    for (const auto& [stop, end] : kBorders) request.stop.emplace_back(stop);
    if (!cuts.thought_close.empty()) request.stop.push_back(cuts.thought_close);
    request.max_tokens = std::min(cuts.max_tokens, left);
  }
  if (!branch.has_text()) return request;
  chat::Message said;
  said.role = "assistant";
  if (branch.phase == Branch::Phase::thinks || branch.phase == Branch::Phase::thought) {
    said.reasoning_content = branch.reasoning;
    said.content = "";
    // The thought has ended: its end is written for the model, and the answer follows.
    if (branch.phase == Branch::Phase::thought) request.thinking_budget = 0;
  } else {
    said.content = branch.content;
    if (!branch.reasoning.empty()) said.reasoning_content = branch.reasoning;
  }
  request.messages.push_back(std::move(said));
  request.goes_on = true;
  return request;
}

Branch grown(const Branch& branch, const Piece& piece, const ChatRequest& asked, const StepCuts& cuts, bool to_border) {
  using Phase = Branch::Phase;
  Branch after = branch;
  after.last = piece.last;
  after.n_tokens += piece.last.usage.completion_tokens;
  after.logprob_sum += piece.logprob_sum();
  after.tokens.insert(after.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  if (branch.phase != Phase::thought) after.reasoning += piece.reasoning;
  after.content += piece.content;
  const bool is_thinking = branch.phase == Phase::thinks && piece.content.empty() && !after.reasoning.empty();
  const std::string& stop = piece.last.stop_text;
  const bool is_callers = std::find(asked.stop.begin(), asked.stop.end(), stop) != asked.stop.end();
  const char* end = to_border && !is_callers ? border_end(stop) : nullptr;
  const bool is_full = asked.max_tokens >= 0 && after.n_tokens >= asked.max_tokens;
  const bool is_cut = to_border && piece.last.finish == orchestrator::Finish::length && !is_full;
  if (piece.has_failed() || is_full || piece.last.finish == orchestrator::Finish::cancelled) {
    after.phase = Phase::done;
  } else if (to_border && !stop.empty() && stop == cuts.thought_close && !is_callers) {
    after.phase = Phase::thought;
  } else if (end != nullptr && !after.has_text()) {
    after.phase = branch.phase;  // a blank line before all words
  } else if (end != nullptr) {
    (is_thinking ? after.reasoning : after.content) += end;
    after.phase = is_thinking ? Phase::thinks : Phase::answers;
  } else if (is_cut) {
    after.phase = is_thinking ? Phase::thinks : Phase::answers;
  } else {
    after.phase = Phase::done;
  }
  return after;
}

std::string step_text(const Branch& before, const Branch& after) {
  return after.reasoning.substr(std::min(before.reasoning.size(), after.reasoning.size())) +
         after.content.substr(std::min(before.content.size(), after.content.size()));
}

}  // namespace chimere::odo
