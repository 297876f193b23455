// Kernels on headers of the CUDA toolkit: parts of words, 128-bit integers, hints for caches, pipelines, barriers, atomic references.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda_pipeline.h>

extern "C" __global__ void parts_of_words(const unsigned* a, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = a[(i + 1) % n];
    unsigned* to = out + 10 * i;
    to[0] = __vadd4(x, y), to[1] = __vabsdiffu4(x, y), to[2] = __vmaxs2(x, y), to[3] = __vcmpgtu4(x, y), to[4] = __vsadu4(x, y);
    to[5] = __vavgu2(x, y), to[6] = __vsubss2(x, y), to[7] = __vminu4(x, y), to[8] = __vimax3_s32(x, y, 3);
    to[9] = __vimin_s16x2_relu(x, y);
}

extern "C" __global__ void quotients_of_128_bits(const unsigned long long* a, unsigned long long* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    unsigned __int128 p = (unsigned __int128)a[i] * a[(i + 1) % n] + a[i];
    p /= a[(i + 2) % n] | 1;
    out[2 * i] = (unsigned long long)p, out[2 * i + 1] = (unsigned long long)(p >> 64);
}

extern "C" __global__ void cache_hints(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = __ldcs(a + i) + __ldcg(a + i) + __ldca(a + i) + __ldlu(a + i) + __ldcv(a + i) + __ldg(a + i);
    __stcs(out + i, x), __stwt(out + i, x + 1), __stcg(out + i, x + 2), __stwb(out + i, x + 3);
}

// Two tiles; of later ones, the last four bytes of each element are filled with zeros.
extern "C" __global__ void pipeline(const float4* a, float4* out, int n) {
    __shared__ float4 tile[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], a + t, 16);
    __pipeline_commit();
    for (int s = 0; s < n; s++) {
        if (s + 1 < n) __pipeline_memcpy_async(&tile[(s + 1) & 1][t], a + (s + 1) * 64 + t, 16, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[s * 64 + t] = tile[s & 1][63 - t];
        __syncthreads();
    }
}

extern "C" __global__ void group_copy(const int* a, int* out) {
    namespace cg = cooperative_groups;
    __shared__ int tile[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, a, sizeof(int) * 256);
    cg::wait(block);
    auto warp = cg::tiled_partition<32>(block);
    int value = tile[255 - threadIdx.x];
    out[threadIdx.x] = cg::inclusive_scan(warp, value, cg::plus<int>());
    out[256 + threadIdx.x] = cg::reduce(warp, value, cg::greater<int>());
}

extern "C" __global__ void barriers(int* out) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier bar;
    __shared__ int data[64];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        data[threadIdx.x] = threadIdx.x * 10 + round;
        auto token = bar.arrive();
        bar.wait(std::move(token));
        out[round * 64 + threadIdx.x] = data[63 - threadIdx.x];
        bar.arrive_and_wait();
    }
}

extern "C" __global__ void atomic_references(int* counter, int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*counter);
    int old = ref.fetch_add(2, cuda::memory_order_relaxed);
    ref.fetch_max(1, cuda::memory_order_acq_rel);
    int seen = ref.load(cuda::memory_order_acquire);
    out[blockIdx.x * blockDim.x + threadIdx.x] = old >= 0 && seen > old;
    int wanted = ref.load();
    while (!ref.compare_exchange_weak(wanted, wanted + 1)) {}
}

// Addresses of local memory, and bytes at odd places of shared memory.
extern "C" __global__ void odd_addresses(const int* a, unsigned long long* out, int n) {
    extern __shared__ unsigned char raw[];
    int scratch[64];
    for (int j = 0; j < 64; j++) scratch[(j * 7 + threadIdx.x) & 63] = a[(threadIdx.x + j) % n];
    for (int j = threadIdx.x; j < 57; j += blockDim.x) raw[j] = a[j % n] ^ 0x5a;
    __syncthreads();
    const int* p = threadIdx.x & 1 ? scratch : scratch + 8;
    unsigned long long sum = 0;
    for (int j = 0; j < 32; j++) sum += (unsigned)p[j] * (j + 1ull);
    for (int j = 0; j + 8 <= 57; j++) { unsigned long long word; memcpy(&word, raw + j, 8); sum += word * (threadIdx.x + 1); }
    out[threadIdx.x] = sum;
}
