#include "engine/embedding.h"

#include <algorithm>
#include <cmath>

namespace chimere::engine {
namespace {

// Texts that did not fit into a batch before no more are looked at: each of them has its turn soon.
constexpr int kMaxPassedOver = 64;

uint64_t state_bytes(const StateLayout& layout, size_t n_tokens) {
  const uint64_t pages = (n_tokens + kPageTokens - 1) / kPageTokens;
  return pages * layout.page_bytes() + layout.recurrent_floats() * sizeof(float);
}

// Each window is a hop with the one after it, where there is one. sums: [hops, d]
std::vector<float> at_length_one(const std::vector<double>& sums, size_t d) {
  const size_t n_hops = sums.size() / d;
  std::vector<float> out;
  std::vector<double> window(d);
  for (size_t hop = 0; hop < std::max<size_t>(n_hops - 1, 1); ++hop) {
    double squares = 0;
    for (size_t j = 0; j < d; ++j) {
      window[j] = sums[hop * d + j] + (n_hops > 1 ? sums[(hop + 1) * d + j] : 0);
      squares += window[j] * window[j];
    }
    const double norm = squares > 0 ? std::sqrt(squares) : 1.0;
    for (const double s : window) out.push_back(static_cast<float>(s / norm));
  }
  return out;
}

}  // namespace

EmbedQueue::EmbedQueue(models::Model& model, int slice_tokens)
    : model_(model), slice_tokens_(model.is_encoder() ? model.executable().max_rows() : slice_tokens) {}

void EmbedQueue::add(RequestId id, EmbedRequest request, std::shared_ptr<Channel<Result<Vectors>>> result) {
  auto job = std::make_shared<Job>();
  job->id = id;
  job->request = std::move(request);
  job->result = std::move(result);
  job->n_left = job->request.texts.size();
  job->vectors.resize(job->n_left);
  std::deque<Text>& texts = texts_[job->request.owner];
  for (size_t i = 0; i < job->n_left; ++i) {
    Text& text = texts.emplace_back();
    text.job = job;
    text.index = i;
  }
  jobs_.push_back(std::move(job));
}

void EmbedQueue::cancel(RequestId id) {
  for (auto& job : jobs_) {
    if (job->id == id) fail(*job, {Code::cancelled, "cancelled"});
  }
  remove_ended();
}

void EmbedQueue::end_late(std::chrono::steady_clock::time_point now) {
  for (auto& job : jobs_) {
    if (job->request.deadline <= now) fail(*job, {Code::exhausted, "the request's time is over"});
  }
  remove_ended();
}

void EmbedQueue::end_all(const Error& error) {
  for (auto& job : jobs_) fail(*job, error);
  remove_ended();
  held_bytes_ = 0;  // also of what was in a batch that never came back
}

void EmbedQueue::fail(Job& job, const Error& error) {
  if (job.result) job.result->put(error);
  job.result.reset();
}

void EmbedQueue::remove_ended() {
  for (auto& [owner, texts] : texts_) {
    for (Text& text : texts) {
      if (!text.job->result) held_bytes_ -= std::exchange(text.bytes, 0);
    }
    std::erase_if(texts, [](const Text& text) { return !text.job->result; });
  }
  std::erase_if(texts_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(jobs_, [](const auto& job) { return !job->result; });
}

int EmbedQueue::next_slice(const Text& text) const {
  const size_t at = text.sequence ? static_cast<size_t>(text.sequence->length()) : 0;
  return static_cast<int>(std::min(text.tokens().size() - at, static_cast<size_t>(slice_tokens_)));
}

Status EmbedQueue::start(Text& text) {
  TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
  text.sequence.emplace(std::move(sequence));
  const auto hop = static_cast<size_t>(text.job->request.hop_tokens);
  const size_t n_hops = hop == 0 ? 1 : (text.tokens().size() + hop - 1) / hop;
  text.sum.assign(n_hops * static_cast<size_t>(model_.d_model()), 0.0);
  return Ok{};
}

Result<Slice> EmbedQueue::begin(Text& text, int n_tokens) {
  if (!text.sequence) TRY(start(text));
  return text.sequence->begin(n_tokens);
}

// It begins anew when there is room: where it is cut follows from itself alone.
void EmbedQueue::give_back(Text& text) {
  text.sequence.reset();
  held_bytes_ -= std::exchange(text.bytes, 0);
}

void EmbedQueue::add_to_batch(Batch& batch, Text& text, int n_tokens, Slice slice) {
  const int first = batch.n_rows(), at = text.sequence->length();
  slice.first_row = first;
  if (!text.job->request.second_at.empty()) slice.second_kind_at = text.job->request.second_at[text.index] - at;
  batch.slices.push_back(slice);
  const auto begin = text.tokens().begin() + at;
  batch.tokens.insert(batch.tokens.end(), begin, begin + n_tokens);
  const bool is_last = static_cast<size_t>(at + n_tokens) == text.tokens().size();
  switch (text.job->request.pooling) {
    case Pooling::mean:
      for (int i = 0; i < n_tokens; ++i) batch.logit_rows.push_back(first + i);
      break;
    case Pooling::first:
    case Pooling::score:
      if (at == 0) batch.logit_rows.push_back(first);
      break;
    case Pooling::last:
      if (is_last) batch.logit_rows.push_back(first + n_tokens - 1);
      break;
  }
  text.rows_in_batch = n_tokens;
}

// Adds up the states of this text that the batch gave, as add_to_batch() asked for them.
void EmbedQueue::take_states(Text& text, const float*& states) {
  const int at = text.sequence->length(), n = text.rows_in_batch;
  int n_states = n;
  switch (text.job->request.pooling) {
    case Pooling::mean: break;
    case Pooling::first:
    case Pooling::score: n_states = at == 0 ? 1 : 0; break;
    case Pooling::last: n_states = static_cast<size_t>(at + n) == text.tokens().size() ? 1 : 0; break;
  }
  const int hop = text.job->request.hop_tokens;
  const auto d = static_cast<size_t>(model_.d_model());
  for (int i = 0; i < n_states; ++i) {
    double* sum = text.sum.data() + (hop == 0 ? 0 : static_cast<size_t>((at + i) / hop) * d);
    for (size_t j = 0; j < d; ++j) sum[j] += *states++;
  }
}

void EmbedQueue::finish(Text& text) {
  Job& job = *text.job;
  if (job.request.pooling == Pooling::score) {
    const std::vector<float> state(text.sum.begin(), text.sum.end());
    job.vectors[text.index] = {model_.executable().program().score(state)};
  } else {
    job.vectors[text.index] = at_length_one(text.sum, static_cast<size_t>(model_.d_model()));
  }
  held_bytes_ -= std::exchange(text.bytes, 0);
  if (--job.n_left > 0 || !job.result) return;
  job.result->put(std::move(job.vectors));
  job.result.reset();
}

void EmbedQueue::fill(Batch& batch, std::deque<Text>& texts, int max_rows,
                      const std::function<bool(uint64_t)>& make_room, const std::function<Refused(uint64_t)>& refused,
                      std::vector<Text>& chosen) {
  std::deque<Text> passed_over;
  while (!texts.empty() && batch.n_rows() < max_rows && passed_over.size() < kMaxPassedOver) {
    Text text = std::move(texts.front());
    texts.pop_front();
    const int n = next_slice(text);
    const uint64_t bytes = text.sequence ? 0 : state_bytes(model_.executable().layout(), text.tokens().size());
    if (batch.n_rows() + n > max_rows || (bytes > 0 && !make_room(bytes))) {
      passed_over.push_back(std::move(text));
      continue;
    }
    held_bytes_ += bytes;
    text.bytes += bytes;
    Result<Slice> slice = begin(text, n);
    Refused what = Refused::ask_again;
    while (!slice && slice.error().code == Code::exhausted && what == Refused::ask_again) {
      what = refused(text.bytes);
      if (what == Refused::ask_again) slice = begin(text, n);
    }
    if (slice) {
      add_to_batch(batch, text, n, *slice);
      chosen.push_back(std::move(text));
      continue;
    }
    const bool is_alone = held_bytes_ == text.bytes;
    give_back(text);
    if (slice.error().code != Code::exhausted || (what == Refused::fail && is_alone)) {
      fail(*text.job, slice.error());
    } else {
      passed_over.push_back(std::move(text));
    }
  }
  texts.insert(texts.begin(), std::make_move_iterator(passed_over.begin()), std::make_move_iterator(passed_over.end()));
}

Status EmbedQueue::step(const std::function<bool(uint64_t)>& make_room, const std::function<Refused(uint64_t)>& refused,
                        const std::function<void(int)>& count) {
  Executable& executable = model_.executable();
  std::set<OwnerId> owners;
  for (const auto& entry : texts_) owners.insert(entry.first);
  shares_.set_active(owners);
  std::vector<OwnerId> order(owners.begin(), owners.end());
  std::stable_sort(order.begin(), order.end(), [&](OwnerId a, OwnerId b) { return shares_.time(a) < shares_.time(b); });
  Batch batch;
  std::vector<Text> chosen;
  int max_rows = executable.max_rows();
  for (const OwnerId owner : order) {
    const bool is_first = batch.n_rows() == 0;
    fill(batch, texts_[owner], max_rows, make_room, refused, chosen);
    if (is_first && batch.n_rows() > 0) max_rows = std::min(max_rows, rows_with_others(batch.n_rows()));
  }
  Status ran = Ok{};
  if (!batch.slices.empty()) {
    hidden_.resize(std::max<size_t>(1, batch.logit_rows.size()) * static_cast<size_t>(model_.d_model()));
    ran = executable.run(batch, {.hidden = hidden_.data()});
    if (ran) count(batch.n_rows());
  }
  const float* states = hidden_.data();
  for (Text& text : chosen) {
    shares_.charge(text.job->request.owner, static_cast<uint64_t>(text.rows_in_batch));
    if (ran) {
      take_states(text, states);
      ran = text.sequence->commit(text.rows_in_batch);
    }
    if (ran && static_cast<size_t>(text.sequence->length()) == text.tokens().size()) {
      finish(text);
    } else {
      texts_[text.job->request.owner].push_back(std::move(text));
    }
  }
  remove_ended();
  return ran;
}

}  // namespace chimere::engine
