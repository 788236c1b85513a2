//===- GpuRuntime.h - GPU functions that compiled code calls ----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host part of a compiled function computes sizes, grids and tensor maps
// and calls the functions below. They act on the `LaunchContext` that the
// caller made current on this thread. All work goes to the context's stream, in
// the order of the calls; nothing waits for the device except `fovea_gpu_read`.
// The context keeps the first failure; after it the functions do nothing, and
// those that return memory return null.
//
// Once warm, a call allocates nothing, neither on the device nor on the host.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_GPURUNTIME_H
#define FOVEA_RUNTIME_GPURUNTIME_H

#include "fovea/Runtime/GpuDevice.h"
#include "llvm/ADT/STLFunctionalExtras.h"

//===----------------------------------------------------------------------===//
// Functions called by compiled code
//===----------------------------------------------------------------------===//

extern "C" {

/// Launches the kernel with this number in the module's list. `sharedBytes` is
/// dynamic shared memory per block; `arguments` has the address of each
/// argument. An empty grid is no launch.
void fovea_gpu_launch(int64_t kernel, int64_t gridX, int64_t gridY,
                      int64_t gridZ, int64_t blockX, int64_t blockY,
                      int64_t blockZ, int64_t sharedBytes, void **arguments);

/// The same for a kernel that itself waits for earlier kernels
/// (`griddepcontrol.wait`, PTX ISA 9.7.13.13), in all threads and before it
/// touches memory: its blocks may start while those of the kernel in front end.
void fovea_gpu_launch_early(int64_t kernel, int64_t gridX, int64_t gridY,
                            int64_t gridZ, int64_t blockX, int64_t blockY,
                            int64_t blockZ, int64_t sharedBytes,
                            void **arguments);

/// Returns temporary device memory, aligned to 512 bytes, with undefined
/// contents. Memory that is not freed is freed when the context ends.
void *fovea_gpu_allocate(int64_t bytes);

/// Frees temporary memory. Kernels launched before may still use it; later
/// allocations share it. Null is allowed.
void fovea_gpu_free(void *pointer);

/// Returns the memory of result `index`: the caller's, which must have `bytes`
/// bytes, or else new memory that becomes the caller's.
void *fovea_gpu_result(int64_t index, int64_t bytes);

/// Writes a TMA descriptor of a strided tensor in device memory to `map` (128
/// bytes, 64-byte aligned). Dimension 0 is the innermost, whose elements are
/// neighbours; `byteStrides` are those of dimensions 1 to rank-1. Elements
/// outside of the tensor read as zero and are not written.
///
/// T1. rank is 1 to 5, and the element kind is one of `cuda::ElementKind`;
/// T2. base is a multiple of 16;
/// T3. sizes are 0 to 2^32; of an empty tensor nothing must be read or written;
/// T4. strides are multiples of 16 from 0 to below 2^40; that of a dimension of
///     size 1 is not looked at;
/// T5. box sizes are 1 to 256;
/// T6. the box's innermost dimension is a multiple of 16 bytes, and with a
///     swizzle not longer than it;
/// T7. swizzleBytes is 0, 32, 64 or 128.
void fovea_gpu_tensor_map(void *map, void *base, int64_t elementKind,
                          int64_t rank, const int64_t *sizes,
                          const int64_t *byteStrides, const int64_t *box,
                          int64_t swizzleBytes);

/// Fills device memory with zeros.
void fovea_gpu_zero(void *pointer, int64_t bytes);

/// Copies device memory to the host's, after all earlier work, and waits for
/// the copy; zeros after a failure. A stream that is being captured cannot be
/// waited for.
void fovea_gpu_read(void *target, const void *source, int64_t bytes);

} // extern "C"

namespace fovea::cuda {

/// Element types of tensor maps, numbered as `DType` and `fovea_dtype`.
enum class ElementKind : int64_t {
  F16 = 0,
  BF16 = 1,
  F32 = 2,
  F64 = 3,
  Bool = 4,
  I8 = 5,
  I16 = 6,
  I32 = 7,
  I64 = 8,
};

/// The alignment of the memory of a result, in bytes: kernels write rows of
/// such units.
inline constexpr int64_t kResultAlignment = 16;

/// The memory of one result of a call.
struct ResultBuffer {
  /// The caller's memory, aligned to `kResultAlignment`; null asks for new
  /// memory.
  void *data = nullptr;
  int64_t bytes = 0;
  /// The size of `data` is that of an earlier call: new memory takes its place
  /// if the result has another size.
  bool isGuess = false;
  /// Set by the call: `data` is new memory for `Device::free`.
  bool allocated = false;
};

class Arena;

/// One call of a compiled function's host part.
class LaunchContext {
public:
  /// The stream belongs to the module's device. `results` has an entry for each
  /// result and outlives this object.
  LaunchContext(const Module &module, StreamHandle stream,
                llvm::MutableArrayRef<ResultBuffer> results)
      : module(module), stream(stream), results(results) {}
  LaunchContext(const LaunchContext &) = delete;
  LaunchContext &operator=(const LaunchContext &) = delete;
  ~LaunchContext();

  /// Makes this context the thread's current one, and the module's device
  /// current, while `body` runs. The error is the first one of the functions
  /// above; new memory of results is then freed again. Kernels may still be
  /// running; their errors are known when the stream is waited for. If the
  /// stream is being captured, the graph keeps the module's kernels and memory;
  /// if not, the call frees what graphs kept that are gone, for which it may
  /// wait for the device.
  llvm::Error run(llvm::function_ref<void()> body);

  /// Returns the largest number of bytes of temporaries that the call had at
  /// one time.
  int64_t getTemporaryBytes() const { return temporaryBytes; }

  // Implementation of the functions above.
  void launch(int64_t kernel, const int64_t grid[3], const int64_t block[3],
              int64_t sharedBytes, void **arguments, bool startsEarly);
  void *allocate(int64_t bytes);
  void free(void *pointer);
  void *getResult(int64_t index, int64_t bytes);
  void encodeTensorMap(void *map, void *base, int64_t elementKind, int64_t rank,
                       const int64_t *sizes, const int64_t *byteStrides,
                       const int64_t *box, int64_t swizzleBytes);
  void zero(void *pointer, int64_t bytes);
  void read(void *target, const void *source, int64_t bytes);

private:
  /// Finds the capture that the call is a part of, whose graph is to keep the
  /// module, and frees what graphs kept that are gone.
  llvm::Error beginCall();
  void fail(llvm::Error error);
  Arena *acquireArena();

  const Module &module;
  StreamHandle stream;
  llvm::MutableArrayRef<ResultBuffer> results;
  /// Zero outside of a capture.
  uint64_t capture = 0;
  /// Acquired by the first allocation.
  Arena *arena = nullptr;
  int64_t temporaryBytes = 0;
  /// The first failure; no message means none.
  std::string message;
  std::error_code code;
};

} // namespace fovea::cuda

#endif // FOVEA_RUNTIME_GPURUNTIME_H
