/* The words of pairs.cl, as OpenCL has them. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
#define HELPER inline
#define GLOBAL global
#define SHARED local
#define SHARED_POINTER local
#define MEET barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define LANE ((int)get_local_id(0))
#define GROUP ((int)get_group_id(0))
#define COUNT_UP(at) atomic_add(at, 1)
