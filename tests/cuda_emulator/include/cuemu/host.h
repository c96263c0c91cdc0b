// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA runtime API that launchers may call; what would break a captured graph is a
// finding.
#pragma once
#include "cuemu/runtime.h"

#define CUDART_VERSION 13000

typedef struct CUstream_st* cudaStream_t;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

inline cudaError_t cudaGetLastError() { return (cudaError_t)cuemu_error(1); }
inline cudaError_t cudaPeekAtLastError() { return (cudaError_t)cuemu_error(0); }
inline const char* cudaGetErrorString(cudaError_t e) { return cuemu_error_text((int)e); }
inline const char* cudaGetErrorName(cudaError_t e) { return cuemu_error_text((int)e); }

inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr,
                                   CUEMU_PLACE) {
  return (cudaError_t)cuemu_memset(to, value, bytes, file_, line_);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t = nullptr, CUEMU_PLACE) {
  return (cudaError_t)cuemu_memcpy(to, from, bytes, file_, line_);
}

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
// A small device, so that grid-stride loops go round in tests too.
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 * 1024; break;
  }
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute attribute, int value, CUEMU_PLACE) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return (cudaError_t)cuemu_shared_limit(value, file_, line_);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int threads,
                                                          size_t) {
  *blocks = threads < 1024 ? 2 : 1;
  return cudaSuccess;
}

// Calls that wait for the device, allocate, or use the default stream: never in a handler.
#define CUEMU_FORBIDDEN(NAME, ...)                       \
  inline cudaError_t NAME(__VA_ARGS__, CUEMU_PLACE) {    \
    cuemu_forbidden(#NAME, file_, line_);                \
    return cudaErrorUnknown;                             \
  }
CUEMU_FORBIDDEN(cudaMalloc, void**, size_t)
CUEMU_FORBIDDEN(cudaFree, void*)
CUEMU_FORBIDDEN(cudaMallocAsync, void**, size_t, cudaStream_t)
CUEMU_FORBIDDEN(cudaFreeAsync, void*, cudaStream_t)
CUEMU_FORBIDDEN(cudaStreamSynchronize, cudaStream_t)
CUEMU_FORBIDDEN(cudaMemset, void*, int, size_t)
CUEMU_FORBIDDEN(cudaMemcpy, void*, const void*, size_t, cudaMemcpyKind)
#undef CUEMU_FORBIDDEN
inline cudaError_t cudaDeviceSynchronize(CUEMU_PLACE) {
  cuemu_forbidden("cudaDeviceSynchronize", file_, line_);
  return cudaErrorUnknown;
}
