// Kernels in CUDA C, for the check that the simulator executes compilers' PTX. Each uses another part of the language.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + b[i];
}

// A sum by shuffles, shared memory and one atomic operation of a block.
extern "C" __global__ void block_sum(const float* a, float* out, int n) {
    __shared__ float parts[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

extern "C" __global__ void transpose(const float* a, float* out, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

// A product of matrices with tiles in dynamic shared memory and four results for each thread.
extern __shared__ __align__(16) unsigned char dynamic[];
extern "C" __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    float(*left)[16] = reinterpret_cast<float(*)[16]>(dynamic);
    float(*right)[32] = reinterpret_cast<float(*)[32]>(dynamic + 32 * 16 * sizeof(float));
    float sums[4] = {0, 0, 0, 0};
    int row = blockIdx.y * 32, column = blockIdx.x * 32, thread = threadIdx.y * 32 + threadIdx.x;
    for (int first = 0; first < k; first += 16) {
        for (int at = thread; at < 32 * 16; at += 256) {
            int i = at / 16, j = at % 16;
            left[i][j] = row + i < m && first + j < k ? a[(row + i) * k + first + j] : 0.0f;
        }
        for (int at = thread; at < 16 * 32; at += 256) {
            int i = at / 32, j = at % 32;
            right[i][j] = first + i < k && column + j < n ? b[(first + i) * n + column + j] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < 16; j++)
            for (int r = 0; r < 4; r++) sums[r] = fmaf(left[threadIdx.y * 4 + r][j], right[j][threadIdx.x], sums[r]);
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        int i = row + threadIdx.y * 4 + r, j = column + threadIdx.x;
        if (i < m && j < n) c[i * n + j] = sums[r];
    }
}

extern "C" __global__ void histogram(const unsigned char* a, unsigned* out, int n) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[a[i]], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// Other atomic operations.
extern "C" __global__ void atomics(volatile int* results, unsigned long long* wide, double* real, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* out = const_cast<int*>(results);
    atomicMax(&out[0], i * 7 % 101);
    atomicMin(&out[1], i * 7 % 101 - 50);
    atomicOr(&out[2], 1 << (i % 31));
    atomicXor(&out[3], i);
    atomicAnd(&out[4], ~(1 << (i % 13)));
    atomicInc((unsigned*)&out[5], 9);
    atomicSub(&out[6], i);
    atomicAdd(&wide[0], (unsigned long long)i << 20);
    atomicAdd(&real[0], 0.5 * i);
    int old = results[7], seen;
    do { seen = old; old = atomicCAS(&out[7], seen, seen * 3 + 1); } while (old != seen);
}

// A tensor-core product through the wmma interface.
extern "C" __global__ void wmma_product(const half* a, const half* b, float* c, int m, int n, int k) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sums;
    fill_fragment(sums, 0.0f);
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int first = 0; first < k; first += 16) {
        load_matrix_sync(left, a + row * k + first, k);
        load_matrix_sync(right, b + first * n + column, n);
        mma_sync(sums, left, right, sums);
    }
    for (int i = 0; i < sums.num_elements; i++) sums.x[i] *= 0.5f;
    store_matrix_sync(c + row * n + column, sums, n, mem_row_major);
}

extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 32, 8, 16, __nv_bfloat16, col_major> left;
    fragment<matrix_b, 32, 8, 16, __nv_bfloat16, col_major> right;
    fragment<accumulator, 32, 8, 16, float> sums;
    load_matrix_sync(sums, c, 8, mem_row_major);
    load_matrix_sync(left, a, 32);
    load_matrix_sync(right, b, 16);
    mma_sync(sums, left, right, sums);
    __syncwarp();
    store_matrix_sync(c, sums, 32, mem_col_major);
}

extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* c) {
    using namespace nvcuda::wmma;
    __shared__ signed char tile[8 * 16];
    tile[threadIdx.x] = a[threadIdx.x]; tile[threadIdx.x + 32] = a[threadIdx.x + 32];
    tile[threadIdx.x + 64] = a[threadIdx.x + 64]; tile[threadIdx.x + 96] = a[threadIdx.x + 96];
    __syncwarp();
    fragment<matrix_a, 8, 32, 16, signed char, row_major> left;
    fragment<matrix_b, 8, 32, 16, signed char, col_major> right;
    fragment<accumulator, 8, 32, 16, int> sums;
    fill_fragment(sums, 3);
    load_matrix_sync(left, tile, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sums, left, right, sums);
    store_matrix_sync(c, sums, 32, mem_row_major);
}

extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> left;
    fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> right;
    fragment<accumulator, 16, 16, 8, float> sums;
    fill_fragment(sums, 0.0f);
    load_matrix_sync(left, a, 8);
    load_matrix_sync(right, b, 8);
    for (int i = 0; i < left.num_elements; i++) left.x[i] = __float_to_tf32(left.x[i]);
    for (int i = 0; i < right.num_elements; i++) right.x[i] = __float_to_tf32(right.x[i]);
    mma_sync(sums, left, right, sums);
    store_matrix_sync(c, sums, 16, mem_row_major);
}

extern "C" __global__ void wmma_f64(const double* a, const double* b, double* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 8, 8, 4, double, row_major> left;
    fragment<matrix_b, 8, 8, 4, double, col_major> right;
    fragment<accumulator, 8, 8, 4, double> sums;
    fill_fragment(sums, 0.0);
    for (int first = 0; first < 16; first += 4) {
        load_matrix_sync(left, a + first, 16);
        load_matrix_sync(right, b + first, 16);
        mma_sync(sums, left, right, sums);
    }
    store_matrix_sync(c, sums, 8, mem_col_major);
}

extern "C" __global__ void wmma_half_sums(const half* a, const half* b, half* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 8, 32, 16, half, col_major> left;
    fragment<matrix_b, 8, 32, 16, half, row_major> right;
    fragment<accumulator, 8, 32, 16, half> sums;
    fill_fragment(sums, __float2half(1.0f));
    load_matrix_sync(left, a, 8);
    load_matrix_sync(right, b, 32);
    mma_sync(sums, left, right, sums);
    store_matrix_sync(c, sums, 32, mem_row_major);
}

// mma.sync by inline assembly, operands by ldmatrix, tiles by cp.async in two stages.
extern "C" __global__ void mma_pipeline(const half* a, const half* b, float* c, int k) {
    __shared__ __align__(16) half left[2][16][16];
    __shared__ __align__(16) half right[2][16][8];
    int lane = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    auto fetch = [&](int stage, int first) {
        __pipeline_memcpy_async(&left[stage][lane / 2][lane % 2 * 8], a + lane / 2 * k + first + lane % 2 * 8, 16);
        if (lane < 16) __pipeline_memcpy_async(&right[stage][lane][0], b + (first + lane) * 8, 16);
        __pipeline_commit();
    };
    fetch(0, 0);
    for (int first = 0, stage = 0; first < k; first += 16, stage ^= 1) {
        if (first + 16 < k) fetch(stage ^ 1, first + 16); else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        unsigned x[4], y[2];
        unsigned at = (unsigned)__cvta_generic_to_shared(&left[stage][lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
        at = (unsigned)__cvta_generic_to_shared(&right[stage][lane % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1]) : "r"(at) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        __syncthreads();
    }
    int row = lane / 4, column = lane % 4 * 2;
    c[row * 8 + column] = d[0], c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2], c[(row + 8) * 8 + column + 1] = d[3];
}

// Votes, matches, reductions of a warp by single instructions.
extern "C" __global__ void votes(const int* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = a[i];
    unsigned ballot = __ballot_sync(0xffffffff, value & 1);
    unsigned sum = __reduce_add_sync(0xffffffff, (unsigned)value);
    unsigned match = __match_any_sync(0xffffffff, value % 5);
    int same;
    __match_all_sync(0xffffffff, value, &same);
    unsigned all = __all_sync(0xffffffff, value >= 0), any = __any_sync(0xffffffff, value > 95);
    unsigned active = 0;
    if (value & 1) active = __popc(__activemask()) == __popc(ballot);
    int count = __syncthreads_count(value > 50), both = __syncthreads_and(value >= 0), either = __syncthreads_or(value == 7);
    unsigned* to = out + i * 10;
    to[0] = ballot, to[1] = sum, to[2] = match, to[3] = same, to[4] = all, to[5] = any, to[6] = active;
    to[7] = count, to[8] = both, to[9] = either;
}

// An array that is indexed by data lies in local memory.
extern "C" __global__ void local_sort(const double* a, double* out) {
    double list[16];
    int i = threadIdx.x;
    for (int j = 0; j < 16; j++) list[j] = a[i * 16 + j];
    for (int j = 1; j < 16; j++)
        for (int k = j; k > 0 && list[k - 1] > list[k]; k--) { double t = list[k]; list[k] = list[k - 1]; list[k - 1] = t; }
    for (int j = 0; j < 16; j++) out[i * 16 + j] = list[(j + i) % 16];
}

extern "C" __global__ void double_math(const double* a, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i];
    double* to = out + i * 12;
    to[0] = exp(x), to[1] = log(fabs(x)), to[2] = sin(x), to[3] = cos(x * 1e6), to[4] = pow(fabs(x), 1.7), to[5] = tanh(x);
    to[6] = erf(x), to[7] = sqrt(fabs(x)), to[8] = 1.0 / x, to[9] = fmod(x, 0.3), to[10] = floor(x), to[11] = cbrt(x);
}

extern "C" __global__ void float_math(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    float* to = out + i * 14;
    to[0] = expf(x), to[1] = logf(fabsf(x)), to[2] = sinf(x), to[3] = cosf(x * 1e5f), to[4] = powf(fabsf(x), 1.7f), to[5] = tanhf(x);
    to[6] = erff(x), to[7] = sqrtf(fabsf(x)), to[8] = 1.0f / x, to[9] = fmodf(x, 0.3f), to[10] = rintf(x), to[11] = rsqrtf(fabsf(x));
    to[12] = __expf(x), to[13] = x / (x + 3.0f);
}

__constant__ float weights[8] = {0.125f, -1.5f, 2.0f, 3.25f, -4.0f, 0.5f, 6.0f, 7.0f};
__constant__ int2 pairs[2] = {{1, -2}, {3, 4}};
__device__ float scale = 2.5f;
__device__ const char letters[] = "tensor";
extern "C" __global__ void constants(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * weights[i & 7] * scale + pairs[i & 1].y + letters[i % 6];
}

// A dense switch becomes a table of branches.
extern "C" __global__ void switches(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = i;
    switch (x % 9) {
        case 0: y = y * 3 + 1; break;
        case 1: y ^= 0x55; break;
        case 2: y = y / 3; break;
        case 3: y = __popc(y) + 2; // falls through
        case 4: y -= 17; break;
        case 5: for (int j = 0; j < (x & 7); j++) y = y * 5 + j; break;
        case 6: y = y % 7; break;
        case 7: y = __clz(y); break;
        default: y = -y;
    }
    out[i] = y;
}

__device__ __noinline__ float polynomial(float x, const float* c, int n) {
    float y = 0;
    for (int i = n - 1; i >= 0; i--) y = fmaf(y, x, c[i]);
    return y;
}
struct Pair { float first; int second; double third; };
__device__ __noinline__ Pair split(float x) {
    Pair pair; pair.first = x - floorf(x); pair.second = (int)floorf(x); pair.third = (double)x * x; return pair;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void calls(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float c[5] = {1.0f, -0.5f, a[i], 0.25f, 2.0f};
    Pair pair = split(a[i]);
    out[i * 6] = polynomial(a[i], c, 5);
    out[i * 6 + 1] = pair.first, out[i * 6 + 2] = pair.second, out[i * 6 + 3] = (float)pair.third;
    out[i * 6 + 4] = fibonacci(i % 9);
    out[i * 6 + 5] = i & 1 ? polynomial(-a[i], c + 1, 2) : pair.first;
}

// Integer arithmetic of every width.
extern "C" __global__ void integers(const int* a, const long long* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = a[(i + 1) % n];
    long long p = b[i], q = b[(i + 1) % n];
    long long* to = out + i * 16;
    to[0] = x / (y | 1), to[1] = x % (y | 1), to[2] = p / (q | 1), to[3] = p % (q | 1);
    to[4] = __mulhi(x, y), to[5] = __mul64hi(p, q), to[6] = __brev(x), to[7] = __ffsll(p), to[8] = __clzll(q);
    to[9] = (signed char)x + (unsigned short)y, to[10] = __byte_perm(x, y, 0x3715), to[11] = __funnelshift_l(x, y, i);
    to[12] = (unsigned long long)p / ((unsigned)x | 1u), to[13] = __dp4a(x, y, 5), to[14] = __sad(x, y, 3u), to[15] = p >> (i & 63);
}

extern "C" __global__ void halves(const half2* a, const __nv_bfloat162* b, half2* out, __nv_bfloat162* other, float* wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half2 x = a[i];
    out[i] = __hfma2(x, x, __hadd2(x, __float2half2_rn(0.5f)));
    other[i] = __hmax2(b[i], __hmul2(b[i], b[i]));
    wide[i] = __half2float(hexp(__low2half(x))) + __bfloat162float(__high2bfloat16(b[i])) + (__hgt(x.x, x.y) ? 1.0f : 0.0f)
        + __half2int_rn(x.x) + __half2float(hsqrt(__habs(x.y)));
}

// Cooperative groups: tiles of eight lanes, and a scan.
extern "C" __global__ void groups(const int* a, int* out) {
    namespace cg = cooperative_groups;
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = block.thread_rank(), value = a[i];
    int sum = cg::reduce(tile, value, cg::plus<int>());
    int scan = value;
    for (int step = 1; step < 8; step *= 2) { int below = tile.shfl_up(scan, step); if (tile.thread_rank() >= step) scan += below; }
    __shared__ int shared[128];
    shared[i] = scan;
    block.sync();
    out[i] = sum * 1000 + shared[(i + 8) % 128];
    if (value % 3 == 0) {
        auto active = cg::coalesced_threads();
        out[128 + i] = active.size() * 100 + active.thread_rank();
    } else out[128 + i] = -1;
}

// The last block adds what the others stored: fences and volatile accesses.
__device__ unsigned arrived = 0;
extern "C" __global__ void last_block(const float* a, volatile float* parts, float* out, int n) {
    __shared__ float sums[64];
    __shared__ bool last;
    float sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += a[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        float total = 0;
        for (int i = 0; i < gridDim.x; i++) total += parts[i];
        out[0] = total;
    }
}

// Wide accesses, structures by value as parameters.
struct Settings { float scale; int shift; short kind[3]; double bias; const float4* data; };
extern "C" __global__ void structures(Settings settings, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 x = settings.data[i];
    x.x = x.x * settings.scale + (float)settings.bias, x.y += settings.shift, x.z += settings.kind[i % 3], x.w = __fdividef(x.w, 3.0f);
    out[i] = x;
}

extern "C" __global__ void __launch_bounds__(128, 4) bounded(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __int_as_float(0x3f800000 | i);
    if (i == n + 1000000) asm volatile("trap;");
}
