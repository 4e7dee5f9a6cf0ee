// emulator.cpp  Blocks, warps and threads of the emulator: who may run, who waits for whom, and what shared memory
// holds.
#include "backend/cuda/simt/emulator.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/simt/fiber.h"
#include "backend/cuda/simt/simt.h"
#include "base/check.h"

namespace chimere::cuda::simt {

namespace {

constexpr size_t kSharedBytes = 256 << 10;  // more than any device has
constexpr size_t kStaticSharedBytes = 48 << 10;

enum class State : uint8_t { ready, at_barrier, in_collective, at_counter, done };

struct PendingCopy {
  void* to;
  const void* from;
  int bytes;  // of to
  bool valid;
};

void make(const PendingCopy& copy) {
  if (copy.valid) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  } else {
    std::memset(copy.to, 0, copy.bytes);
  }
}

struct Thread {
  Thread() : fiber(&Thread::body) {}
  static void body();

  Fiber fiber;
  uint3 index{};
  int id = 0;
  State state = State::done;
  // Of the collective it waits in.
  uint32_t mask = 0;
  Complete complete = nullptr;
  void* arg = nullptr;
  const uint64_t* counter = nullptr;  // that it waits for
  // Copies issued and not yet made: a null `to` closes a group.
  std::deque<PendingCopy> copies;
};

struct StaticArray {
  const void* tag;
  void* memory;
};

// Everything of the grid being run by this OS thread.
struct Emulator {
  std::vector<std::unique_ptr<Thread>> threads;  // grow to the largest block, then serve every launch
  int n_threads = 0;                             // of the block
  Thread* current = nullptr;
  const std::function<void()>* kernel = nullptr;
  Place place{"", 0, false};
  bool waited = false;  // some thread of the grid called wait_for_previous()

  int n_at_barrier = 0;
  int votes = 0;
  int last_votes = 0;
  uint32_t in_collective[32] = {};  // of each warp, the lanes that wait

  std::unique_ptr<std::byte[]> shared_memory;
  std::byte* shared = nullptr;  // [kSharedBytes], 1024-byte aligned: dynamic memory first, static arrays after it
  size_t dynamic_bytes = 0;
  size_t shared_used = 0;
  std::vector<StaticArray> arrays;
  std::vector<std::pair<const uint64_t*, PendingCopy>> bulk_copies;

  Schedule schedule = Schedule::forward;
  size_t shared_limit = 99 << 10;
};

Emulator& emulator() {
  thread_local Emulator instance;
  return instance;
}

void Thread::body() {
  for (;;) {
    Emulator& e = emulator();
    (*e.kernel)();
    for (const PendingCopy& copy : e.current->copies) {
      if (copy.to) make(copy);
    }
    e.current->copies.clear();
    e.current->state = State::done;
    e.current->fiber.leave();
  }
}

std::string triple(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

const char* name(State state) {
  switch (state) {
    case State::ready: return "running";
    case State::at_barrier: return "waiting at __syncthreads";
    case State::in_collective: return "waiting in a warp collective";
    case State::at_counter: return "waiting for bulk copies that nobody ends";
    case State::done: return "exited";
  }
  return "";
}

[[noreturn]] void fail(const std::string& what) {
  const Emulator& e = emulator();
  const std::string message = "kernel launched here, block " + triple(blockIdx.x, blockIdx.y, blockIdx.z) + ": " + what;
  check_failed(message.c_str(), e.place.file, e.place.line);
}

// Nobody can run and not everybody is done.
[[noreturn]] void fail_stuck() {
  const Emulator& e = emulator();
  std::string who;
  for (int i = 0; i < e.n_threads;) {  // ranges of threads in the same state
    int end = i + 1;
    while (end < e.n_threads && e.threads[end]->state == e.threads[i]->state) end++;
    who += (who.empty() ? "threads " : ", ") + std::to_string(i) + "-" + std::to_string(end - 1) + " " +
           name(e.threads[i]->state);
    i = end;
  }
  fail("a barrier or collective is not reached by all its threads: " + who);
}

void run(Thread& thread) {
  Emulator& e = emulator();
  e.current = &thread;
  threadIdx = thread.index;
  thread.fiber.resume();
  e.current = nullptr;
}

// Runs the threads of one warp until none of them can. Returns whether any could.
bool run_warp(int first) {
  Emulator& e = emulator();
  const int last = std::min(first + 32, e.n_threads) - 1;
  bool ran = false;
  for (bool again = true; again;) {
    again = false;
    for (int i = first; i <= last; i++) {
      Thread& thread = *e.threads[e.schedule == Schedule::forward ? i : first + last - i];
      if (thread.state != State::ready) continue;
      run(thread);
      ran = again = true;
    }
  }
  return ran;
}

void run_block() {
  Emulator& e = emulator();
  e.shared_used = (e.dynamic_bytes + 1023) / 1024 * 1024;
  std::memset(e.shared, 0xFF, e.shared_used);
  e.bulk_copies.clear();
  e.arrays.clear();
  e.n_at_barrier = e.votes = 0;
  for (uint32_t& lanes : e.in_collective) lanes = 0;
  for (int i = 0; i < e.n_threads; i++) e.threads[i]->state = State::ready;
  const int n_warps = (e.n_threads + 31) / 32;
  for (;;) {
    bool ran = false;
    for (int w = 0; w < n_warps; w++) {
      ran |= run_warp(32 * (e.schedule == Schedule::forward ? w : n_warps - 1 - w));
    }
    if (ran) continue;
    for (int i = 0; i < e.n_threads; i++) {
      if (e.threads[i]->state != State::done) fail_stuck();
    }
    return;
  }
}

bool in_shared(const void* p, size_t bytes) {
  const Emulator& e = emulator();
  const std::byte* b = static_cast<const std::byte*>(p);
  return b >= e.shared && b + bytes <= e.shared + e.shared_used;
}

// Fragments as matrices. a [16][k], b [k][8]; d is spread over lanes as {row g, g + 8} x {column 2 t, 2 t + 1} with
// g = lane / 4, t = lane % 4.
template <class D>
struct MmaArg {
  D* d;
  const uint32_t* a;
  const uint32_t* b;
};

template <class D, class Sum, int kDepth, class Element>
void multiply(void* const* args, Element element) {
  constexpr int kPerRegister = kDepth / 8;  // elements of a register: 2 halves or 4 bytes
  Sum a[16][kDepth], b[kDepth][8];
  for (int lane = 0; lane < 32; lane++) {
    const auto& arg = *static_cast<const MmaArg<D>*>(args[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < kPerRegister; i++) {
      for (int r = 0; r < 4; r++) {
        a[g + 8 * (r % 2)][t * kPerRegister + i + kDepth / 2 * (r / 2)] = element(arg.a[r], i);
      }
      for (int r = 0; r < 2; r++) b[t * kPerRegister + i + kDepth / 2 * r][g] = element(arg.b[r], i);
    }
  }
  Sum d[16][8];
  auto for_each_result = [&](auto&& body) {
    for (int lane = 0; lane < 32; lane++) {
      const auto& arg = *static_cast<const MmaArg<D>*>(args[lane]);
      for (int r = 0; r < 4; r++) body(arg.d[r], d[lane / 4 + 8 * (r / 2)][lane % 4 * 2 + r % 2]);
    }
  };
  for_each_result([](const D& from, Sum& to) { to = static_cast<Sum>(from); });
  for (int row = 0; row < 16; row++) {
    for (int k = 0; k < kDepth; k++) {
      for (int column = 0; column < 8; column++) d[row][column] += a[row][k] * b[k][column];
    }
  }
  for_each_result([](D& to, Sum from) { to = static_cast<D>(from); });
}

struct LdmatrixArg {
  uint32_t* out;
  const void* row;
  int n_matrices;
  bool transposed;
};

void load_matrices(uint32_t, void* const* args) {
  for (int lane = 0; lane < 32; lane++) {
    const auto& arg = *static_cast<const LdmatrixArg*>(args[lane]);
    for (int m = 0; m < arg.n_matrices; m++) {
      uint16_t pair[2];
      for (int i = 0; i < 2; i++) {
        const int row = arg.transposed ? lane % 4 * 2 + i : lane / 4;
        const int column = arg.transposed ? lane / 4 : lane % 4 * 2 + i;
        const void* from = static_cast<const LdmatrixArg*>(args[8 * m + row])->row;
        if (reinterpret_cast<uintptr_t>(from) % 16 != 0) misuse("ldmatrix: a row is not 16-byte aligned");
        if (!in_shared(from, 16)) misuse("ldmatrix: a row is not in shared memory");
        std::memcpy(&pair[i], static_cast<const std::byte*>(from) + 2 * column, 2);
      }
      arg.out[m] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
    }
  }
}

}  // namespace

void set_schedule(Schedule schedule) { emulator().schedule = schedule; }

void set_shared_limit(size_t bytes) { emulator().shared_limit = bytes; }

size_t shared_limit() { return emulator().shared_limit; }

bool has_bulk_copy() { return true; }

void misuse(const char* what) { fail(what + (" by thread " + triple(threadIdx.x, threadIdx.y, threadIdx.z))); }

void run_grid(const Place& place, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread) {
  Emulator& e = emulator();
  CHECK(!e.kernel && "a kernel launches a kernel");
  e.place = place;
  e.waited = false;
  e.kernel = &thread;
  e.n_threads = static_cast<int>(block.x * block.y * block.z);
  e.dynamic_bytes = shared_bytes;
  if (!e.shared) {
    e.shared_memory = std::make_unique<std::byte[]>(kSharedBytes + 1024);
    e.shared = e.shared_memory.get() + (1024 - reinterpret_cast<uintptr_t>(e.shared_memory.get()) % 1024);
  }
  while (static_cast<int>(e.threads.size()) < e.n_threads) e.threads.push_back(std::make_unique<Thread>());
  for (int i = 0; i < e.n_threads; i++) {
    const unsigned id = static_cast<unsigned>(i);
    e.threads[i]->id = i;
    e.threads[i]->index = {id % block.x, id / block.x % block.y, id / block.x / block.y};
  }
  gridDim = grid;
  blockDim = block;
  const uint64_t n_blocks = uint64_t{grid.x} * grid.y * grid.z;
  for (uint64_t i = 0; i < n_blocks; i++) {
    const uint64_t id = e.schedule == Schedule::forward ? i : n_blocks - 1 - i;
    blockIdx = {static_cast<unsigned>(id % grid.x), static_cast<unsigned>(id / grid.x % grid.y),
                static_cast<unsigned>(id / grid.x / grid.y)};
    run_block();
  }
  e.kernel = nullptr;
  if (place.dependent && !e.waited) fail("launched as dependent, but no thread of the grid calls wait_for_previous()");
}

void wait_for_previous() { emulator().waited = true; }

int block_barrier(bool vote) {
  Emulator& e = emulator();
  Thread& self = *e.current;
  e.votes += vote;
  if (++e.n_at_barrier == e.n_threads) {
    for (int i = 0; i < e.n_threads; i++) e.threads[i]->state = State::ready;
    e.last_votes = e.votes;
    e.n_at_barrier = e.votes = 0;
  } else {
    self.state = State::at_barrier;
    self.fiber.leave();
  }
  return e.last_votes;  // the next barrier cannot complete before this thread reaches it
}

void warp_collective(uint32_t mask, Complete complete, void* arg) {
  Emulator& e = emulator();
  Thread& self = *e.current;
  const int first = self.id / 32 * 32, lane = self.id % 32;
  if (!(mask >> lane & 1u)) misuse("the mask of a warp collective leaves out its own lane");
  if (first + 32 > e.n_threads && mask >> (e.n_threads - first)) {
    misuse("the mask of a warp collective names a lane that the block does not have");
  }
  self.mask = mask;
  self.complete = complete;
  self.arg = arg;
  uint32_t& waiting = e.in_collective[first / 32];
  waiting |= 1u << lane;
  void* args[32] = {};
  bool all = (waiting & mask) == mask;
  for (int i = 0; all && i < 32; i++) {
    if (!(mask >> i & 1u)) continue;
    const Thread& other = *e.threads[first + i];
    if (other.mask != mask || other.complete != complete) {
      // It may have a smaller circle to finish first; but two that name each other have to agree.
      if (other.mask >> lane & 1u) misuse("lanes of one warp wait in different collectives or with different masks");
      all = false;
    }
    args[i] = other.arg;
  }
  if (!all) {
    self.state = State::in_collective;
    self.fiber.leave();
    return;
  }
  complete(mask, args);
  waiting &= ~mask;
  for (int i = 0; i < 32; i++) {
    if (mask >> i & 1u) e.threads[first + i]->state = State::ready;
  }
}

void* static_shared(const void* tag, size_t bytes, size_t alignment) {
  Emulator& e = emulator();
  for (const StaticArray& array : e.arrays) {
    if (array.tag == tag) return array.memory;
  }
  const size_t apart = alignment % 128;
  void* memory = e.shared + e.shared_used + apart;
  e.shared_used += (apart + bytes + 127) / 128 * 128;
  const size_t dynamic = (e.dynamic_bytes + 1023) / 1024 * 1024;
  if (e.shared_used - dynamic > kStaticSharedBytes) misuse("more than 48 KiB of SIMT_SHARED arrays");
  if (e.shared_used - dynamic + e.dynamic_bytes > e.shared_limit) {
    misuse("static and dynamic shared memory exceed shared_limit()");
  }
  std::memset(memory, 0xFF, bytes);
  e.arrays.push_back({tag, memory});
  return memory;
}

void* dynamic_shared_bytes() { return emulator().shared; }

void cp_async_issue(void* to, const void* from, int bytes, bool valid) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || (valid && reinterpret_cast<uintptr_t>(from) % bytes != 0)) {
    misuse("cp.async: an address is not aligned to the size of the copy");
  }
  if (!in_shared(to, bytes)) misuse("cp.async: the destination is not in shared memory");
  const PendingCopy copy{to, from, bytes, valid};
  if (emulator().schedule == Schedule::backward) {
    make(copy);
  } else {
    emulator().current->copies.push_back(copy);
  }
}

constexpr uint64_t kBulkOpen = 1, kBulkClosed = 2, kBulkState = 3, kBulkTurn = 4;

void bulk_open(uint64_t* arrived) { *arrived = kBulkOpen; }

void bulk_reopen(uint64_t* arrived) {
  if ((*arrived & kBulkState) != kBulkClosed) misuse("bulk copy: begun again before it ended");
  auto& copies = emulator().bulk_copies;
  for (const auto& [counter, copy] : copies) {
    if (counter == arrived && copy.to) misuse("bulk copy: begun again before anybody waited");
  }
  std::erase_if(copies, [](const auto& copy) { return copy.second.to == nullptr; });
  *arrived = (*arrived & ~kBulkState) + kBulkTurn + kBulkOpen;
}

void bulk_close(uint64_t* arrived) {
  if ((*arrived & kBulkState) != kBulkOpen) misuse("bulk copy: ended before it began");
  *arrived = (*arrived & ~kBulkState) + kBulkClosed;
  Emulator& e = emulator();
  for (int i = 0; i < e.n_threads; i++) {
    Thread& thread = *e.threads[i];
    if (thread.state == State::at_counter && thread.counter == arrived) thread.state = State::ready;
  }
}

void bulk_copy_emulated(void* to, const void* from, uint32_t bytes, uint64_t* arrived) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0 || bytes % 16 != 0) {
    misuse("bulk copy: addresses and size have to be multiples of 16");
  }
  if (!in_shared(to, bytes)) misuse("bulk copy: the destination is not in shared memory");
  if ((*arrived & kBulkState) != kBulkOpen) misuse("bulk copy: outside of begin and end");
  const PendingCopy copy{to, from, static_cast<int>(bytes), true};
  if (emulator().schedule == Schedule::backward) {
    make(copy);
  } else {
    emulator().bulk_copies.push_back({arrived, copy});
  }
}

void bulk_check(const uint64_t* arrived, uint32_t parity) {
  if ((*arrived & kBulkState) == kBulkOpen) {
    Thread& thread = *emulator().current;
    thread.counter = arrived;
    thread.state = State::at_counter;
    thread.fiber.leave();
  }
  if ((*arrived & kBulkState) != kBulkClosed) misuse("bulk copy: a thread waits for what was not begun");
  if ((*arrived / kBulkTurn) % 2 != parity) misuse("bulk copy: a thread waits for another turn");
  for (auto& [counter, copy] : emulator().bulk_copies) {
    if (counter != arrived || !copy.to) continue;
    make(copy);
    copy.to = nullptr;
  }
}

void cp_async_close_group() { emulator().current->copies.push_back({}); }

void cp_async_drain(int pending_groups) {
  // The latest groups may stay open, and so may copies that no group holds yet.
  std::deque<PendingCopy>& copies = emulator().current->copies;
  int n_groups = 0;
  for (const PendingCopy& copy : copies) n_groups += copy.to == nullptr;
  while (!copies.empty() && n_groups > pending_groups) {
    if (copies.front().to) {
      make(copies.front());
    } else {
      n_groups--;
    }
    copies.pop_front();
  }
}

void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  MmaArg<float> arg{d, a, b};
  warp_collective(
      kAllLanes,
      [](uint32_t, void* const* args) {
        multiply<float, double, 16>(args,
                                    [](uint32_t r, int i) { return f16_to_f32(static_cast<uint16_t>(r >> (16 * i))); });
      },
      &arg);
}

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  MmaArg<float> arg{d, a, b};
  warp_collective(
      kAllLanes,
      [](uint32_t, void* const* args) {
        multiply<float, double, 16>(
            args, [](uint32_t r, int i) { return bf16_to_f32(static_cast<uint16_t>(r >> (16 * i))); });
      },
      &arg);
}

void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  MmaArg<int32_t> arg{d, a, b};
  warp_collective(
      kAllLanes,
      [](uint32_t, void* const* args) {
        multiply<int32_t, int32_t, 32>(args, [](uint32_t r, int i) { return static_cast<int8_t>(r >> (8 * i)); });
      },
      &arg);
}

void ldmatrix_emulated(uint32_t* out, const void* row, int n_matrices, bool transposed) {
  LdmatrixArg arg{out, row, n_matrices, transposed};
  warp_collective(kAllLanes, load_matrices, &arg);
}

}  // namespace chimere::cuda::simt
