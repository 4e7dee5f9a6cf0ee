// emulator_test.cpp  The emulator against plain loops: what kernel tests stand on.
#include "backend/cuda/simt/emulator.h"

#include <gtest/gtest.h>

#include <cmath>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {
namespace {

using simt::for_both_schedules;
using simt::launch;

__global__ void index_kernel(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + simt::thread_id()]++;
}

TEST(Emulator, RunsEveryThreadOnce) {
  for_both_schedules([] {
    std::vector<int> out(3 * 2 * 2 * 8 * 4 * 3, 0);
    ASSERT_TRUE(launch(index_kernel, {dim3(3, 2, 2), dim3(8, 4, 3), 0, Stream()}, out.data()));
    for (int n : out) EXPECT_EQ(n, 1);
  });
}

__global__ void block_sum_kernel(const float* x, float* sum, float* top, int n) {
  float v = 0, m = -1e30f;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    v += x[i];
    m = fmaxf(m, x[i]);
  }
  sum[threadIdx.x] = simt::block_sum(v);
  top[threadIdx.x] = simt::block_max(m);
}

TEST(Emulator, ReducesABlock) {
  std::vector<float> x(1000);
  std::iota(x.begin(), x.end(), 1.0f);
  for (unsigned threads : {32u, 96u, 256u, 1024u}) {
    for_both_schedules([&] {
      std::vector<float> sum(threads), top(threads);
      ASSERT_TRUE(launch(block_sum_kernel, {1, threads, 0, Stream()}, x.data(), sum.data(), top.data(), 1000));
      for (float s : sum) EXPECT_EQ(s, 500500.0f);
      for (float t : top) EXPECT_EQ(t, 1000.0f);
    });
  }
}

__global__ void transpose_kernel(const float* in, float* out, int n) {
  SIMT_SHARED(float, tile, 32 * 33);
  float* dynamic = simt::dynamic_shared<float>();
  const int bx = static_cast<int>(blockIdx.x) * 32, by = static_cast<int>(blockIdx.y) * 32;
  const int x = static_cast<int>(threadIdx.x);
  for (int y = static_cast<int>(threadIdx.y); y < 32; y += static_cast<int>(blockDim.y)) {
    if (bx + x < n && by + y < n) tile[y * 33 + x] = in[(by + y) * n + bx + x];
    dynamic[y * 32 + x] = 1.0f;
  }
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < 32; y += static_cast<int>(blockDim.y)) {
    if (by + x < n && bx + y < n) out[(bx + y) * n + by + x] = tile[x * 33 + y] * dynamic[x * 32 + y];
  }
}

TEST(Emulator, TransposesThroughSharedMemory) {
  const int n = 70;
  std::vector<float> in(n * n), out(n * n);
  std::iota(in.begin(), in.end(), 0.0f);
  for_both_schedules([&] {
    std::fill(out.begin(), out.end(), 0.0f);
    ASSERT_TRUE(launch(transpose_kernel, {dim3(3, 3), dim3(32, 8), 4096, Stream()}, in.data(), out.data(), n));
    for (int y = 0; y < n; y++) {
      for (int x = 0; x < n; x++) ASSERT_EQ(out[x * n + y], in[y * n + x]);
    }
  });
}

__global__ void uninitialised_kernel(float* out) {
  SIMT_SHARED(float, scratch, 4);
  out[0] = scratch[3];
}

__global__ void alignment_kernel(uintptr_t* rests) {
  SIMT_SHARED(uint16_t, small, 3);
  SIMT_SHARED(float, middle, 3);
  SIMT_SHARED(uint4, large, 3);
  rests[0] = reinterpret_cast<uintptr_t>(small) % 32;
  rests[1] = reinterpret_cast<uintptr_t>(middle) % 32;
  rests[2] = reinterpret_cast<uintptr_t>(large) % 32;
}

// What reads more at once than the type of an array is aligned to then fails, as on a card.
TEST(Emulator, SharedMemoryIsAlignedNoBetterThanItsType) {
  uintptr_t rests[3];
  ASSERT_TRUE(launch(alignment_kernel, {1, 1, 0, Stream()}, rests));
  EXPECT_EQ(rests[0], 2u);
  EXPECT_EQ(rests[1], 4u);
  EXPECT_EQ(rests[2], 16u);
}

TEST(Emulator, SharedMemoryBeginsAsNan) {
  float out = 0;
  ASSERT_TRUE(launch(uninitialised_kernel, {1, 32, 0, Stream()}, &out));
  EXPECT_TRUE(std::isnan(out));
}

__global__ void shuffle_kernel(int* out) {
  const int lane = simt::lane_id();
  int* o = out + lane;
  o[0 * 32] = __shfl_sync(0xFFFFFFFFu, lane, 5);
  o[1 * 32] = __shfl_sync(0xFFFFFFFFu, lane, 3, 8);
  o[2 * 32] = __shfl_xor_sync(0xFFFFFFFFu, lane, 4);
  o[3 * 32] = __shfl_down_sync(0xFFFFFFFFu, lane, 3, 16);
  o[4 * 32] = __shfl_up_sync(0xFFFFFFFFu, lane, 2);
  o[5 * 32] = static_cast<int>(__ballot_sync(0xFFFFFFFFu, lane % 3 == 0));
  o[6 * 32] = static_cast<int>(__match_any_sync(0xFFFFFFFFu, lane / 10));
  o[7 * 32] = __reduce_max_sync(0xFFFFFFFFu, 100 - lane);
  // Two halves of the warp go their own ways.
  if (lane < 16) {
    o[8 * 32] = __reduce_add_sync(0x0000FFFFu, lane);
  } else {
    o[8 * 32] = __shfl_xor_sync(0xFFFF0000u, lane, 1);
  }
  __syncwarp();
  o[9 * 32] = simt::warp_sum<8>(lane);
  o[10 * 32] = static_cast<int>(__shfl_sync(0xFFFFFFFFu, 1.5 * lane, 31 - lane) * 2.0);
  o[11 * 32] = __shfl_xor_sync(0xFFFFFFFFu, lane, 8, 8);
}

TEST(Emulator, WarpCollectives) {
  for_both_schedules([] {
    std::vector<int> out(12 * 32);
    ASSERT_TRUE(launch(shuffle_kernel, {1, 32, 0, Stream()}, out.data()));
    uint32_t thirds = 0;
    for (int lane = 0; lane < 32; lane += 3) thirds |= 1u << lane;
    for (int lane = 0; lane < 32; lane++) {
      const int* o = out.data() + lane;
      EXPECT_EQ(o[0 * 32], 5);
      EXPECT_EQ(o[1 * 32], lane / 8 * 8 + 3);
      EXPECT_EQ(o[2 * 32], lane ^ 4);
      EXPECT_EQ(o[3 * 32], lane % 16 + 3 < 16 ? lane + 3 : lane);
      EXPECT_EQ(o[4 * 32], lane >= 2 ? lane - 2 : lane);
      EXPECT_EQ(static_cast<uint32_t>(o[5 * 32]), thirds);
      uint32_t same = 0;
      for (int j = 0; j < 32; j++) same |= (j / 10 == lane / 10 ? 1u : 0u) << j;
      EXPECT_EQ(static_cast<uint32_t>(o[6 * 32]), same);
      EXPECT_EQ(o[7 * 32], 100);
      EXPECT_EQ(o[8 * 32], lane < 16 ? 120 : lane ^ 1);
      EXPECT_EQ(o[9 * 32], lane / 8 * 64 + 28);
      EXPECT_EQ(o[10 * 32], 3 * (31 - lane));
      // A segment may be read from a later one only: the others keep their own value.
      EXPECT_EQ(o[11 * 32], lane & 8 ? lane ^ 8 : lane);
    }
  });
}

__global__ void vote_kernel(int* out, unsigned* counter, float* sum) {
  const int i = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(i % 3 == 0);
  const int any = __syncthreads_or(i == 70);
  const int all = __syncthreads_and(i != 70);
  out[i] = count * 4 + any * 2 + all;
  atomicAdd(counter, 1u);
  atomicAdd(sum, 0.5f);
  atomicMax(out + blockDim.x, i);
}

TEST(Emulator, VotesAndAtomics) {
  std::vector<int> out(97, 0);
  unsigned counter = 0;
  float sum = 0;
  ASSERT_TRUE(launch(vote_kernel, {1, 96, 0, Stream()}, out.data(), &counter, &sum));
  for (int i = 0; i < 96; i++) EXPECT_EQ(out[i], 32 * 4 + 2);
  EXPECT_EQ(out[96], 95);
  EXPECT_EQ(counter, 96u);
  EXPECT_EQ(sum, 48.0f);
}

// a [16, 16] and b [16, 8] row-major in global memory; fragments by the layout the PTX ISA draws.
template <bool kBf16>
__global__ void mma_kernel(const uint16_t* a, const uint16_t* b, float* d) {
  const int lane = simt::lane_id(), g = lane / 4, t = lane % 4;
  auto pack = [](uint16_t lo, uint16_t hi) { return lo | static_cast<uint32_t>(hi) << 16; };
  const uint32_t fa[4] = {pack(a[g * 16 + 2 * t], a[g * 16 + 2 * t + 1]),
                          pack(a[(g + 8) * 16 + 2 * t], a[(g + 8) * 16 + 2 * t + 1]),
                          pack(a[g * 16 + 2 * t + 8], a[g * 16 + 2 * t + 9]),
                          pack(a[(g + 8) * 16 + 2 * t + 8], a[(g + 8) * 16 + 2 * t + 9])};
  const uint32_t fb[2] = {pack(b[2 * t * 8 + g], b[(2 * t + 1) * 8 + g]),
                          pack(b[(2 * t + 8) * 8 + g], b[(2 * t + 9) * 8 + g])};
  float fd[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  if (kBf16) {
    simt::mma_bf16(fd, fa, fb);
  } else {
    simt::mma_f16(fd, fa, fb);
  }
  d[g * 8 + 2 * t] = fd[0];
  d[g * 8 + 2 * t + 1] = fd[1];
  d[(g + 8) * 8 + 2 * t] = fd[2];
  d[(g + 8) * 8 + 2 * t + 1] = fd[3];
}

// The same through shared memory, cp.async and ldmatrix: a as it is, b transposed on the way.
__global__ void ldmatrix_mma_kernel(const uint16_t* a, const uint16_t* b, float* d) {
  SIMT_SHARED(uint4, a_rows, 16 * 16 / 8);
  SIMT_SHARED(uint4, b_rows, 16 * 8 / 8);
  auto *sa = reinterpret_cast<uint16_t*>(a_rows), *sb = reinterpret_cast<uint16_t*>(b_rows);
  const int lane = simt::lane_id(), g = lane / 4, t = lane % 4;
  simt::cp_async16(sa + 8 * lane, a + 8 * lane);
  simt::cp_async_commit();
  if (lane < 16) simt::cp_async16(sb + 8 * lane, b + 8 * lane);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  __syncwarp();
  uint32_t fa[4], fb[2];
  simt::ldmatrix_x4(fa, sa + (lane % 16) * 16 + lane / 16 * 8);
  simt::ldmatrix_x2_trans(fb, sb + (lane % 16) * 8);
  float fd[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  simt::mma_f16(fd, fa, fb);
  for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = fd[i];
}

TEST(Emulator, TensorCoreHalves) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
  for (const bool bf16 : {false, true}) {
    alignas(16) uint16_t a[256], b[128];
    for (uint16_t& x : a) x = bf16 ? f32_to_bf16(uniform(rng)) : f32_to_f16(uniform(rng));
    for (uint16_t& x : b) x = bf16 ? f32_to_bf16(uniform(rng)) : f32_to_f16(uniform(rng));
    auto value = [&](uint16_t x) { return double{bf16 ? bf16_to_f32(x) : f16_to_f32(x)}; };
    for_both_schedules([&] {
      float d[128], e[128];
      ASSERT_TRUE(launch(bf16 ? mma_kernel<true> : mma_kernel<false>, {1, 32, 0, Stream()}, a, b, d));
      ASSERT_TRUE(launch(ldmatrix_mma_kernel, {1, 32, 0, Stream()}, a, b, e));
      for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 8; column++) {
          double sum = 1.0;
          for (int k = 0; k < 16; k++) sum += value(a[row * 16 + k]) * value(b[k * 8 + column]);
          EXPECT_EQ(d[row * 8 + column], static_cast<float>(sum));
          if (!bf16) {
            EXPECT_EQ(e[row * 8 + column], static_cast<float>(sum));
          }
        }
      }
    });
  }
}

__global__ void mma_s8_kernel(const int8_t* a, const int8_t* b, int32_t* d) {
  const int lane = simt::lane_id(), g = lane / 4, t = lane % 4;
  uint32_t fa[4], fb[2] = {0, 0};
  for (int r = 0; r < 4; r++) std::memcpy(&fa[r], a + (g + 8 * (r % 2)) * 32 + 4 * t + 16 * (r / 2), 4);
  for (int r = 0; r < 2; r++) {
    for (int i = 0; i < 4; i++) {
      fb[r] |= static_cast<uint32_t>(static_cast<uint8_t>(b[(4 * t + i + 16 * r) * 8 + g])) << (8 * i);
    }
  }
  int32_t fd[4] = {7, 7, 7, 7};
  simt::mma_s8(fd, fa, fb);
  for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = fd[i];
}

TEST(Emulator, TensorCoreBytes) {
  std::mt19937 rng(2);
  int8_t a[512], b[256];
  for (int8_t& x : a) x = static_cast<int8_t>(rng());
  for (int8_t& x : b) x = static_cast<int8_t>(rng());
  int32_t d[128];
  ASSERT_TRUE(launch(mma_s8_kernel, {1, 32, 0, Stream()}, a, b, d));
  for (int row = 0; row < 16; row++) {
    for (int column = 0; column < 8; column++) {
      int32_t sum = 7;
      for (int k = 0; k < 32; k++) sum += a[row * 32 + k] * b[k * 8 + column];
      EXPECT_EQ(d[row * 8 + column], sum);
    }
  }
}

__global__ void too_early_kernel(const float4* in, float* out) {
  SIMT_SHARED(float4, buffer, 64);
  simt::cp_async16(buffer + threadIdx.x, in + threadIdx.x);
  simt::cp_async_commit();
  simt::cp_async16(buffer + 32 + threadIdx.x, in, false);
  simt::cp_async_commit();
  simt::cp_async_wait<1>();
  out[threadIdx.x] = buffer[threadIdx.x].x + buffer[32 + threadIdx.x].x;
}

TEST(Emulator, CopiesComeAsLateAsTheyMay) {
  std::vector<float4> in(32, make_float4(3, 3, 3, 3));
  std::vector<float> out(32);
  simt::set_schedule(simt::Schedule::backward);
  ASSERT_TRUE(launch(too_early_kernel, {1, 32, 0, Stream()}, in.data(), out.data()));
  EXPECT_EQ(out[0], 3.0f);  // the second group happened to be there: zeros
  simt::set_schedule(simt::Schedule::forward);
  ASSERT_TRUE(launch(too_early_kernel, {1, 32, 0, Stream()}, in.data(), out.data()));
  EXPECT_TRUE(std::isnan(out[0]));  // it was not waited for
}

__global__ void divergent_kernel() {
  if (threadIdx.x < 40) __syncthreads();
}

__global__ void lost_lane_kernel() {
  if (threadIdx.x == 7) return;
  __syncwarp();
}

__global__ void foreign_lane_kernel(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0x0000FFFFu, 1, 16);
}

__global__ void half_warp_kernel(int* out) { out[0] = simt::warp_sum(1); }

__global__ void mixed_collectives_kernel(int* out) {
  if (threadIdx.x < 16) {
    out[0] = __shfl_sync(0xFFFFFFFFu, 1, 0);
  } else {
    __syncwarp();
  }
}

using EmulatorDeathTest = ::testing::Test;

TEST(EmulatorDeathTest, TellsWhoMissedABarrier) {
  int out[32];
  EXPECT_DEATH((void)launch(divergent_kernel, {1, 64, 0, Stream()}),
               "emulator_test.cpp.*threads 0-39 waiting at __syncthreads, 40-63 exited");
  EXPECT_DEATH((void)launch(lost_lane_kernel, {2, 32, 0, Stream()}),
               "0-6 waiting in a warp collective, 7-7 exited, 8-31 waiting");
  EXPECT_DEATH((void)launch(foreign_lane_kernel, {1, 32, 0, Stream()}, out), "a lane outside its mask");
  EXPECT_DEATH((void)launch(half_warp_kernel, {1, 16, 0, Stream()}, out), "a lane that the block does not have");
  EXPECT_DEATH((void)launch(mixed_collectives_kernel, {1, 32, 0, Stream()}, out), "different collectives");
}

__global__ void waiting_kernel(int* out, int waits) {
  if (threadIdx.x == 0 && waits) simt::wait_for_previous();
  if (threadIdx.x == 0) atomicAdd(out, 1);
}

TEST(EmulatorDeathTest, ADependentGridWaits) {
  int out = 0;
  EXPECT_TRUE(launch(waiting_kernel, {2, 32, 0, Stream(), true}, &out, 1));
  EXPECT_TRUE(launch(waiting_kernel, {2, 32, 0, Stream(), false}, &out, 0));
  EXPECT_EQ(out, 4);
  EXPECT_DEATH((void)launch(waiting_kernel, {2, 32, 0, Stream(), true}, &out, 0), "no thread of the grid calls wait");
}

// Two runs through one slot; `parity` of the second should be 1.
__global__ void turns_kernel(const uint4* from, uint32_t* out, uint32_t parity) {
  SIMT_SHARED(uint64_t, arrived, 1);
  SIMT_SHARED(uint4, slot, 2);
  for (uint32_t turn = 0; turn < 2; ++turn) {
    if (threadIdx.x == 0) {
      turn == 0 ? simt::bulk_begin(arrived) : simt::bulk_again(arrived);
      simt::bulk_copy(slot, from + 2 * turn, 32, arrived);
      simt::bulk_end(arrived);
    }
    __syncthreads();
    simt::bulk_wait(arrived, turn == 0 ? 0 : parity);
    if (threadIdx.x < 2) out[2 * turn + threadIdx.x] = slot[threadIdx.x].w;
    __syncthreads();
  }
}

TEST(EmulatorDeathTest, BulkCopiesTakeTurns) {
  std::vector<uint4> from(4);
  for (uint32_t i = 0; i < 4; ++i) from[i].w = i + 7;
  std::vector<uint32_t> out(4);
  simt::for_both_schedules([&] {
    EXPECT_TRUE(launch(turns_kernel, {1, 64, 0, Stream()}, from.data(), out.data(), 1u));
    EXPECT_EQ(out, (std::vector<uint32_t>{7, 8, 9, 10}));
  });
  EXPECT_DEATH((void)launch(turns_kernel, {1, 64, 0, Stream()}, from.data(), out.data(), 0u), "another turn");
}

__global__ void bytes_from_kernel(const uint32_t* a, const uint32_t* b, int32_t* out) {
  const int lane = simt::lane_id();
  const uint32_t whole[4] = {a[lane], a[32 + lane], a[64 + lane], a[96 + lane]}, columns[2] = {b[lane], b[32 + lane]};
  int32_t all[4], lower[4], upper[4];
  simt::mma_s8_from(5, all, whole, columns);
  simt::mma_s8_half_from(2, lower, {whole[0], whole[1]}, columns[0]);
  simt::mma_s8_half_from(3, upper, {whole[2], whole[3]}, columns[1]);
  for (int i = 0; i < 4; ++i) out[4 * lane + i] = all[i] - lower[i] - upper[i];
}

TEST(Emulator, ProductsOfBytesInHalves) {
  std::vector<uint32_t> a(128), b(64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint32_t>(i * 2654435761u);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint32_t>((i + 9) * 2246822519u);
  std::vector<int32_t> out(128, 1);
  EXPECT_TRUE(launch(bytes_from_kernel, {1, 32, 0, Stream()}, a.data(), b.data(), out.data()));
  EXPECT_EQ(out, std::vector<int32_t>(128, 0));
}

TEST(Emulator, RefusesWhatNoDeviceTakes) {
  int out = 0;
  EXPECT_FALSE(launch(index_kernel, {1, 2048, 0, Stream()}, &out));
  EXPECT_FALSE(launch(index_kernel, {0, 32, 0, Stream()}, &out));
  const Status refused = launch(index_kernel, {1, 32, 200 << 10, Stream()}, &out);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("at most 101376 shared bytes"), std::string::npos);
  EXPECT_NE(std::string(refused.error().file).find("emulator_test.cpp"), std::string::npos);
}

TEST(Emulator, ScalarIntrinsics) {
  EXPECT_EQ(__dp4a(static_cast<int>(0x80FF0102u), 0x01010203, 10), -128 - 1 + 2 + 6 + 10);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7052u), 0x77005522u);
  EXPECT_EQ(__byte_perm(0x00008000u, 0u, 0x9991u), 0x80808080u);
  EXPECT_EQ(__vsub4(0x00010203u, 0x01010101u), 0xFF000102u);
  EXPECT_EQ(__vsubss4(0x80000000u, 0x01000000u), 0x80000000u);
  EXPECT_EQ(__vcmpne4(0x01020304u, 0x01000300u), 0x00FF00FFu);
  EXPECT_EQ(__funnelshift_r(0x00000001u, 0x00000001u, 1), 0x80000000u);
  EXPECT_EQ(__brev(1u), 0x80000000u);
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__umulhi(0x80000000u, 6u), 3u);
}

TEST(Emulator, HalvesRoundOnce) {
  // 2048 + 1 lies between two halves; a little more breaks the tie, though a float would have lost it.
  EXPECT_EQ(__half2float(__hfma(half(2048.0f), half(1.0f), half(1.0f))), 2048.0f);
  EXPECT_EQ(__half2float(half(2049.0 + 1e-12)), 2050.0f);
  EXPECT_EQ(__half2float(half(1.0f) / half(3.0f)), f16_to_f32(f32_to_f16(1.0f / 3.0f)));
  EXPECT_EQ(__bfloat162float(__float2bfloat16(1.00390625f)), 1.0f);  // a tie to even
  const float2 f = __half22float2(__hmul2(__floats2half2_rn(1.5f, -2.0f), __float2half2_rn(2.0f)));
  EXPECT_EQ(f.x, 3.0f);
  EXPECT_EQ(f.y, -4.0f);
  EXPECT_EQ(sizeof(half2), 4u);
  EXPECT_EQ(alignof(float4), 16u);
}

TEST(EmulatedMath, ConvertsNumbersThatAreNoIntegersAsCudaDoes) {
  EXPECT_EQ(__float2int_rn(std::nanf("")), 0);
  EXPECT_EQ(__float2int_rn(1e20f), std::numeric_limits<int>::max());
  EXPECT_EQ(__float2int_rn(-1e20f), std::numeric_limits<int>::min());
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2uint_rz(-3.0f), 0u);
}

}  // namespace
}  // namespace chimere::cuda
