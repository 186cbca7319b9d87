#ifndef PENSTOCK_COMMON_LAYOUT_HD_H_
#define PENSTOCK_COMMON_LAYOUT_HD_H_

// Functions that host and device share: written once, equal bits on both.
#if defined(__CUDACC__)
#define PENSTOCK_HD __host__ __device__
#else
#define PENSTOCK_HD
#endif

#endif  // PENSTOCK_COMMON_LAYOUT_HD_H_
