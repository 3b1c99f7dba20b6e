/* The words of pairs.cl, as CUDA has them. */
typedef unsigned long ulong;
typedef unsigned char uchar;
#define KERNEL extern "C" __global__ __launch_bounds__(LANES)
#define HELPER static __device__ inline
#define GLOBAL
#define SHARED __shared__
#define SHARED_POINTER
#define MEET __syncthreads()
#define LANE ((int)threadIdx.x)
#define GROUP ((int)blockIdx.x)
#define COUNT_UP(at) atomicAdd(at, 1)
