// persistent_probe.cu  How fast could one persistent kernel decode Qwen3.5-35B-A3B?
//
// A probe, not an engine: it moves the bytes of a decode step (IQ3_S experts in their wide form), makes every stage
// wait for the row of the stage before, and does a chosen number of integer operations for 16 bytes of weights. No
// result of it means anything but its time. docs/decisions/0004-no-persistent-kernel.md has what it decided.
//
//   nvcc -std=c++20 -O3 -arch=sm_90a bench/kernels/persistent_probe.cu -o persistent_probe && ./persistent_probe
//
// One block of 16 warps an SM stays for all tokens. Each warp has two rings of slots in shared memory, filled by bulk
// copies that it sends for itself: one for weights whose place is known from the start, which runs ahead over the
// stages, and one for experts, which can only be sent for once the router has spoken. Stages of a layer:
//
//   projections -> delta rule -> output projection -> router -> experts up -> experts down -> next layer
//
// An arrow is an exchange: a warp that has done its rows writes values, each in one 8-byte store beside the number of
// the exchange, and every block reads all it needs until the numbers are right. There is no other barrier.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

#define CHECK_CUDA(call)                                                          \
  do {                                                                            \
    const cudaError_t status = (call);                                            \
    if (status != cudaSuccess) {                                                  \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

constexpr int kWarps = 16, kThreads = kWarps * 32;
constexpr int kUnit = 1536;  // bytes of one copy: 48 a lane
constexpr int kLayers = 40, kExperts = 256, kUsed = 8;
constexpr int kMaxPackets = 6144;
enum Stage { proj, delta, out, router, up, down, n_stages };

struct StageShape {
  int units;    // of kUnit bytes, over all warps
  int packets;  // that the stage writes
  bool whole;   // every block reads all of them, or its share
};

struct Step {
  StageShape layer[2][n_stages];  // layers with the delta rule, and with attention
  StageShape head;
  const char* weights;
  uint64_t pool_units;
  uint2* packets;  // [n_stages + 1][kMaxPackets]: value, number of the exchange
  float* states;
  int n_tokens, dense_slots, expert_slots, work;
  bool exchange;  // false: nobody waits for a row, which is what the copies alone could do
  int* sink;
};

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

struct Ring {
  char* slots;
  uint64_t* full;
  int n_slots;
  int room;       // slots that may be sent for
  int next = 0;   // slot to send to
  int first = 0;  // slot to take
  uint32_t parity = 0;

  __device__ void init() {
    for (int i = 0; i < n_slots; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(full + i)));
    }
  }
  // REQUIRES: lane 0, room > 0.
  __device__ void send(const char* from) {
    const int slot = next;
    next = next + 1 == n_slots ? 0 : next + 1;
    --room;
    const uint32_t bar = shared_address(full + slot);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(kUnit) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(slots + slot * kUnit)),
                 "l"(from), "r"(kUnit), "r"(bar)
                 : "memory");
  }
  __device__ const uint4* wait() {
    const uint32_t bar = shared_address(full + first);
    uint32_t done = 0;
    while (!done) {
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(bar), "r"(parity)
                   : "memory");
    }
    return reinterpret_cast<const uint4*>(slots + first * kUnit);
  }
  __device__ void release() {
    ++room;
    if (++first == n_slots) {
      first = 0;
      parity ^= 1;
    }
  }
};

// Units of each stage that are a warp's: [layers with the delta rule, with attention][stage], and of the head.
struct Share {
  int layer[2][n_stages];
  int head;
};

__device__ int units_of(const StageShape& s, int warp, int n_warps) {
  return s.units / n_warps + (warp < s.units % n_warps ? 1 : 0);
}

__device__ bool is_attention(int layer) { return layer % 4 == 3; }

// Where a warp's dense ring is: which token, layer, stage, and how many units of it were sent.
struct DenseCursor {
  int token = 0, layer = 0, stage = proj, unit = 0;
  uint64_t at;  // of the pool, in units
};

__device__ const StageShape& shape_at(const Step& s, int layer, int stage) {
  return layer == kLayers ? s.head : s.layer[is_attention(layer)][stage];
}

__device__ void send_ahead(const Step& s, const Share& share, Ring& ring, DenseCursor& c, int warp, int n_warps) {
  while (c.token < s.n_tokens && ring.room > 0) {
    const int mine = c.layer == kLayers ? share.head : share.layer[is_attention(c.layer)][c.stage];
    if (c.stage < up && c.unit < mine) {
      ring.send(s.weights + ((c.at + c.unit * n_warps + warp) & (s.pool_units - 1)) * kUnit);
      ++c.unit;
      continue;
    }
    c.at += shape_at(s, c.layer, c.stage).units;
    c.unit = 0;
    if (c.layer == kLayers) {
      c.layer = 0;
      ++c.token;
    } else if (++c.stage == n_stages) {
      c.stage = proj;
      ++c.layer;
    }
  }
}

__device__ int multiply(const uint4* unit, const int* x, int lane, int work) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kUnit / 512; ++i) {
    const uint4 w = unit[i * 32 + lane];
    const int a = x[(i * 32 + lane) & 2047];
    for (int k = 0; k < work; k += 4) {
      sum = __dp4a(static_cast<int>(w.x), a + k, sum);
      sum = __dp4a(static_cast<int>(w.y), a + k, sum);
      sum = __dp4a(static_cast<int>(w.z), a + k, sum);
      sum = __dp4a(static_cast<int>(w.w), a + k, sum);
    }
  }
  return __reduce_add_sync(~0u, sum);
}

__device__ uint4 read_packets(const uint4* from) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// All reads of a thread are under way together; those that came too early are done again.
__device__ void take_packets(const uint2* from, uint32_t number, int n, int first, int* to) {
  constexpr int kReads = 3;
  const auto* p = reinterpret_cast<const uint4*>(from + (first & ~1));
  uint4 v[kReads];
#pragma unroll
  for (int k = 0; k < kReads; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (2 * i < n) v[k] = read_packets(p + i);
  }
#pragma unroll
  for (int k = 0; k < kReads; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (2 * i >= n) continue;
    while (v[k].y != number || v[k].w != number) v[k] = read_packets(p + i);
    to[(2 * i) & 2047] = static_cast<int>(v[k].x);
    to[(2 * i + 1) & 2047] = static_cast<int>(v[k].z);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads, 1) probe_kernel(Step s) {
  extern __shared__ __align__(128) char memory[];
  __shared__ uint64_t bars[kWarps][32];
  __shared__ Share shares[kWarps];
  __shared__ int row[2048];
  __shared__ int logits[2048];
  const int lane = threadIdx.x % 32, in_block = threadIdx.x / 32, n_warps = gridDim.x * kWarps;
  const int warp = in_block * gridDim.x + blockIdx.x;
  const int n_slots = s.dense_slots + s.expert_slots;
  Ring dense{memory + in_block * n_slots * kUnit, bars[in_block], s.dense_slots};
  Ring experts{dense.slots + s.dense_slots * kUnit, bars[in_block] + s.dense_slots, s.expert_slots};
  dense.room = s.dense_slots;
  experts.room = s.expert_slots;
  DenseCursor cursor{.at = 0};
  if (lane == 0) {
    for (int a = 0; a < 2; ++a) {
      for (int i = 0; i < n_stages; ++i) shares[in_block].layer[a][i] = units_of(s.layer[a][i], warp, n_warps);
    }
    shares[in_block].head = units_of(s.head, warp, n_warps);
  }
  __syncwarp();
  const Share& share = shares[in_block];
  for (int i = threadIdx.x; i < 2048; i += kThreads) row[i] = logits[i] = i;
  if (lane == 0) {
    dense.init();
    experts.init();
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    send_ahead(s, share, dense, cursor, warp, n_warps);
  }
  __syncthreads();

  int all = 0;
  uint32_t number = 0;
  for (int token = 0; token < s.n_tokens; ++token) {
    for (int layer = 0; layer <= kLayers; ++layer) {
      uint64_t chosen = 0;
      int expert_sent = 0;
      for (int stage = proj; stage < (layer == kLayers ? 1 : n_stages); ++stage) {
        const StageShape& shape = shape_at(s, layer, stage);
        // What the stage before wrote.
        if (number > 0 && s.exchange) {
          const int from = layer == 0 && stage == proj ? n_stages : (stage + n_stages - 1) % n_stages;
          const StageShape& before = from == n_stages ? s.head : shape_at(s, stage == proj ? layer - 1 : layer, from);
          const int share = before.whole ? before.packets : before.packets / gridDim.x & ~1;
          take_packets(s.packets + from * kMaxPackets, number, share, before.whole ? 0 : blockIdx.x * share,
                       stage == up ? logits : row);
        }
        const int mine = layer == kLayers ? share.head : share.layer[is_attention(layer)][stage];
        int value = 0;
        if (layer == kLayers || stage < up) {
          for (int u = 0; u < mine; ++u) {
            const uint4* unit = dense.wait();
            value += multiply(unit, row, lane, s.work);
            __syncwarp();
            dense.release();
            if (lane == 0) send_ahead(s, share, dense, cursor, warp, n_warps);
          }
          if (stage == delta && layer < kLayers) {  // states go back
            auto* to = reinterpret_cast<float4*>(s.states) + static_cast<int64_t>(warp) * 2 * 96 + lane;
            for (int u = 0; u < mine * 3; ++u) to[u * 32] = make_float4(value, 0, 0, 0);
          }
        } else {
          if (stage == up) {  // eight best of 256, every warp for itself
            int best[8];
            for (int i = 0; i < 8; ++i) best[i] = (logits[lane * 8 + i] & 0xffff) << 8 | (lane * 8 + i);
            for (int k = 0; k < kUsed; ++k) {
              int most = best[0];
              for (int i = 1; i < 8; ++i) most = max(most, best[i]);
              most = __reduce_max_sync(~0u, most);
              for (int i = 0; i < 8; ++i) best[i] = best[i] == most ? -1 : best[i];
              if (k == warp % kUsed) chosen = static_cast<uint64_t>(most & 255);  // a warp works for one of them
            }
          }
          // Experts: up and down of the layer are one list, so that down's copies are under way while up is computed.
          const int n_all = share.layer[0][up] + share.layer[0][down];
          const auto send_experts = [&] {
            while (expert_sent < n_all && experts.room > 0) {
              const uint64_t at = (layer * kExperts + chosen) * 1152 + expert_sent * n_warps + warp;
              experts.send(s.weights + (at & (s.pool_units - 1)) * kUnit);
              ++expert_sent;
            }
          };
          if (lane == 0) send_experts();
          for (int u = 0; u < mine; ++u) {
            const uint4* unit = experts.wait();
            value += multiply(unit, row, lane, s.work);
            __syncwarp();
            experts.release();
            if (lane == 0) send_experts();
          }
        }
        all += value;
        // The row was read by all warps of the block before the next stage overwrites it.
        ++number;
        uint2* to = s.packets + (layer == kLayers ? static_cast<int>(n_stages) : stage) * kMaxPackets;
        for (int i = warp + n_warps * lane; i < shape.packets; i += n_warps * 32) {
          asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(to + i), "r"(value), "r"(number) : "memory");
        }
        __syncthreads();
      }
    }
  }
  if (all == 0x1234567) *s.sink = all;
}

float median_ms(const Step& s, int n_sms, size_t shared) {
  cudaEvent_t began, ended;
  CHECK_CUDA(cudaEventCreate(&began));
  CHECK_CUDA(cudaEventCreate(&ended));
  std::vector<float> times;
  for (int r = 0; r < 7; ++r) {
    CHECK_CUDA(cudaMemset(s.packets, 0, (n_stages + 1) * kMaxPackets * sizeof(uint2)));
    CHECK_CUDA(cudaEventRecord(began));
    probe_kernel<<<n_sms, kThreads, shared>>>(s);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaEventRecord(ended));
    CHECK_CUDA(cudaEventSynchronize(ended));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, began, ended));
    times.push_back(ms / s.n_tokens);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  int n_sms = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, 0));
  const auto units = [](double megabytes) { return static_cast<int>(megabytes * 1e6 / kUnit); };
  Step s{};
  // A packet carries two values of a row as f16, but for the router's, which stay float.
  const StageShape rule[n_stages] = {{units(17.3), 6144, false}, {units(2.2), 2048, true},  {units(5.9), 1024, true},
                                     {units(2.1), 256, true},    {units(10.3), 2304, true}, {units(5.2), 1024, true}};
  const StageShape attention[n_stages] = {{units(12.0), 4608, false}, {0, 2048, true},
                                          {units(5.9), 1024, true},   {units(2.1), 256, true},
                                          {units(10.3), 2304, true},  {units(5.2), 1024, true}};
  std::copy(rule, rule + n_stages, s.layer[0]);
  std::copy(attention, attention + n_stages, s.layer[1]);
  s.head = {units(417), 1024, true};
  s.pool_units = uint64_t{1} << 23;
  s.n_tokens = 20;
  s.exchange = true;
  char* weights = nullptr;
  CHECK_CUDA(cudaMalloc(&weights, s.pool_units * kUnit));
  CHECK_CUDA(cudaMemset(weights, 1, s.pool_units * kUnit));
  s.weights = weights;
  CHECK_CUDA(cudaMalloc(&s.packets, (n_stages + 1) * kMaxPackets * sizeof(uint2)));
  CHECK_CUDA(cudaMalloc(&s.states, size_t{64} << 20));
  CHECK_CUDA(cudaMalloc(&s.sink, sizeof(int)));
  CHECK_CUDA(cudaFuncSetAttribute(probe_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kWarps * 8 * kUnit));

  double bytes = 417e6;
  for (int l = 0; l < kLayers; ++l) {
    for (const StageShape& stage : l % 4 == 3 ? s.layer[1] : s.layer[0]) bytes += double{kUnit} * stage.units;
  }
  std::printf("%d SMs, %.3f GB a token\n", n_sms, bytes / 1e9);
  for (const auto [dense, experts] : {std::pair{5, 3}, std::pair{4, 4}, std::pair{3, 5}, std::pair{2, 6}}) {
    for (const int work : {4, 16, 32, 48}) {
      s.dense_slots = dense;
      s.expert_slots = experts;
      s.work = work;
      const float ms = median_ms(s, n_sms, size_t{kWarps} * (dense + experts) * kUnit);
      std::printf("slots a warp %d + %d, %2d operations for 4 bytes: %.3f ms, %4.0f tok/s, %.2f TB/s\n", dense, experts,
                  work / 4, ms, 1e3 / ms, bytes / ms / 1e9);
    }
  }
  s.dense_slots = 5;
  s.expert_slots = 3;
  s.work = 4;
  const auto tell = [&](const char* what, const Step& step) {
    const float ms = median_ms(step, n_sms, size_t{kWarps} * 8 * kUnit);
    std::printf("%s: %.3f ms, %.2f us a stage\n", what, ms, ms * 1e3 / (kLayers * n_stages + 1));
  };
  Step variant = s;
  variant.exchange = false;
  tell("copies alone", variant);
  variant = s;
  for (auto& layer : variant.layer) layer[up].units = layer[down].units = 0;
  tell("without the bytes of experts", variant);
  for (auto& layer : variant.layer) {
    for (StageShape& stage : layer) stage.units = 0;
  }
  tell("the head alone, and all exchanges", variant);
  variant.head.units = 0;
  tell("exchanges alone", variant);
  CHECK_CUDA(cudaDeviceSynchronize());
  return 0;
}
