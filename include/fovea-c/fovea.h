/*===- fovea-c/fovea.h - Fovea's C API ---------------------------*- C -*-===*\
|*                                                                            *|
|* Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.         *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The one binary interface that other languages use.                         *|
|*                                                                            *|
|* Errors are values: a function that can fail returns a fovea_status, which  *|
|* is null on success and otherwise belongs to the caller. Strings are UTF-8. *|
|* All functions may be called from several threads at once, on the same      *|
|* objects too; only destruction must come last.                              *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FOVEA_C_FOVEA_H
#define FOVEA_C_FOVEA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===- Errors -------------------------------------------------------------===*/

typedef struct fovea_status fovea_status;

typedef enum fovea_code {
  /** An option, a name, an index or an operand is not what it must be. */
  FOVEA_INVALID_ARGUMENT = 1,
  /** The text does not parse, verify or compile. */
  FOVEA_COMPILE_ERROR = 2,
  /** Compiled code failed: memory is short, or sizes do not agree. */
  FOVEA_RUNTIME_ERROR = 3
} fovea_code;

FOVEA_API fovea_code fovea_status_get_code(const fovea_status *status);

/** Returns the message, which lives as long as the status. */
FOVEA_API const char *fovea_status_get_message(const fovea_status *status);

/** Destroys a status. Null is allowed, as in all functions that destroy. */
FOVEA_API void fovea_status_destroy(fovea_status *status);

/*===- The library --------------------------------------------------------===*/

/** Returns a version such as "0.1.0". */
FOVEA_API const char *fovea_get_version(void);

/** Returns the number of threads, including the caller, that a call of compiled
    code uses. */
FOVEA_API int fovea_get_num_threads(void);

/** Sets this number for the whole process; less than 1 means the default: the
    environment variable FOVEA_NUM_THREADS; or, in a process with an OpenMP
    runtime that is visible to all (as PyTorch's is), as many threads as that
    gives the calling thread; or one for each core that the process may use.
    Where there is such a runtime, calls run on its threads. */
FOVEA_API void fovea_set_num_threads(int threads);

/*===- Text that the library returns --------------------------------------===*/

typedef struct fovea_buffer fovea_buffer;

/** Returns the bytes, followed by a zero. */
FOVEA_API const char *fovea_buffer_get_data(const fovea_buffer *buffer);
FOVEA_API size_t fovea_buffer_get_size(const fovea_buffer *buffer);
FOVEA_API void fovea_buffer_destroy(fovea_buffer *buffer);

/*===- Contexts and modules -----------------------------------------------===*/

/** A context compiles modules. Modules of one context with the same text and
    options share their code while one of them lives. */
typedef struct fovea_context fovea_context;

FOVEA_API fovea_status *fovea_context_create(fovea_context **context);

/** Destroys a context; its modules stay usable. */
FOVEA_API void fovea_context_destroy(fovea_context *context);

/** Null and zero members mean the default. */
typedef struct fovea_options {
  /** "host" (default), a GPU such as "sm_90a", or "gpu": the target that
      suits this machine's GPU. Code for a GPU can only be compiled on a machine
      with one. */
  const char *target;
  /** "fused" (default), "two-pass", "three-pass" or "unfused". */
  const char *strategy;
  /** "native" (default), "amx", "avx512_bf16", "avx512", "avx2" or
      "generic". */
  const char *arch;
  /** A processor by LLVM's name, instead of the one that arch implies. */
  const char *cpu;
  /** Effort of code generation, 1 to 4 for `--opt-level` 0 to 3. */
  int opt_level;
  /** Not 0: results have the same bits in every run. A host's always do; on a
      GPU gradients of attention then take longer, and those of captured tensors
      whose elements scores share more memory. */
  int deterministic;
  /** Not 0: every call first runs the graph as it is written, on the host, with
      a check of every index into a tensor and every divisor of integers that it
      computes, and fails where an index is out of bounds or a divisor is 0.
      Slow; without this check such operands lead to wrong results or end the
      process. */
  int check_bounds;
  /** Not 0: scores never use a GPU's approximate tanh, and a host's powers of
      two are as exact as those of f32. Otherwise those of bf16 use it, with a
      relative error of 2^-11, and a host's powers, where weights are rounded
     for products of 16-bit pairs, have one of 2^-13 for results in bf16 and of
     2^-18 for f16, but not for a log-sum-exp in f32; and tensor cores may
     multiply f32 as three parts in bf16, which keeps numbers below 2^-110 to
     2^-134 only. */
  int exact_functions;
  /** The lengths that a GPU's dynamic ones are taken for where the way in which
      attention is computed is chosen; code serves all lengths in any case. 0:
      4096, and where the model finds it faster there is code for lengths of
     some 1024 as well, which the first call that it serves compiles. The two
     may differ in how they round. */
  int64_t typical_length;
  /** The operands of a call of the only function, which will follow; of them
      only rank and shape are read. What serves such a call, as code for short
      lengths or for few queries, is then compiled at the same time. May be
      null. Modules of the same text share code whatever these are. */
  const struct fovea_tensor *operands;
  size_t num_operands;
} fovea_options;

/** Null and zero members mean the default. */
typedef struct fovea_gradient_options {
  /** The function to differentiate; may be null where there is only one. */
  const char *function;
  /** Policy of recomputing probabilities in the backward pass, instead of
      reading those that the forward pass saved: "auto" (default: where
      recomputing is predicted to be faster), "always" or "never". */
  const char *recompute;
  /** Not 0: op by op, as the graph is written, with nothing fused and nothing
      recomputed. */
  int textbook;
  /** Not 0: forward and backward pass as two functions. */
  int partition;
  /** The target that the text will be compiled for, see `fovea_options`: it
      decides what is recomputed. */
  const char *target;
} fovea_gradient_options;

/** Returns the text of a module with the gradients of a function `@f`, to be
    compiled as any other. It has one function,

      @f_gradient(operands, cotangents) -> (results, gradients)

    with a cotangent for each result and a gradient for each operand that is a
    tensor of floating-point numbers; or, with `partition`, two:

      @f_forward(operands) -> (results, saved)
      @f_backward(operands, results, saved, cotangents) -> gradients

    The second takes only what it reads, under the names of the operands (argN
    where the text has none), resultN, savedN and cotangentN. */
FOVEA_API fovea_status *
fovea_differentiate(const char *text, size_t length,
                    const fovea_gradient_options *options,
                    fovea_buffer **buffer);

typedef struct fovea_module fovea_module;

/** Compiles the public functions of a text. `options` may be null. If the disk
    cache has the same text and options, from any process, the result is loaded
    instead, in a few milliseconds. */
FOVEA_API fovea_status *fovea_compile(fovea_context *context, const char *text,
                                      size_t length,
                                      const fovea_options *options,
                                      fovea_module **module);

/** Destroys a module. CUDA graphs that captured launches keep what they use. */
FOVEA_API void fovea_module_destroy(fovea_module *module);

/** Returns the module at a level: "attn", "fused", "tiled", "llvm"; for the
    host "asm" or "obj", for a GPU "tile", "gpu", "nvvm", "ptx" or "cubin". */
FOVEA_API fovea_status *fovea_module_emit(const fovea_module *module,
                                          const char *level,
                                          fovea_buffer **buffer);

/** Returns remarks on what could be better, a line each: optimisations that the
    compiler gave up, and problems of this machine, such as a disk cache that
    cannot be written. Empty if all is well. */
FOVEA_API fovea_status *fovea_module_get_remarks(const fovea_module *module,
                                                 fovea_buffer **buffer);

/** Returns the resources that each kernel of a module for a GPU needs, from
    ptxas (or the driver, if the driver compiled), as a JSON array:
    "name", "registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
    "static_shared_bytes", "barriers". */
FOVEA_API fovea_status *fovea_module_get_resources(const fovea_module *module,
                                                   fovea_buffer **buffer);

/*===- Functions ----------------------------------------------------------===*/

/** Returns the number of public functions; they are numbered from 0, in the
    order of the text. */
FOVEA_API size_t fovea_module_get_num_functions(const fovea_module *module);

/** Returns the name of a function; null if there is no such function. */
FOVEA_API const char *fovea_module_get_function_name(const fovea_module *module,
                                                     size_t function);

/** Finds the number of a function; `name` may be null if there is only one. */
FOVEA_API fovea_status *fovea_module_find_function(const fovea_module *module,
                                                   const char *name,
                                                   size_t *function);

#define FOVEA_MAX_RANK 8

/** Element types. A bool is a byte, 0 or 1; an index is an i64. */
typedef enum fovea_dtype {
  FOVEA_F16 = 0,
  FOVEA_BF16 = 1,
  FOVEA_F32 = 2,
  FOVEA_F64 = 3,
  FOVEA_BOOL = 4,
  FOVEA_I8 = 5,
  FOVEA_I16 = 6,
  FOVEA_I32 = 7,
  FOVEA_I64 = 8
} fovea_dtype;

/** The type of an operand or a result. */
typedef struct fovea_type {
  int32_t dtype;
  int32_t rank;
  /** 1 if it is a number and not a tensor; its rank is 0. */
  int32_t is_scalar;
  /** 1 if calls update this operand in its memory: it is marked in the text as
      `{bufferization.writable = true}`. */
  int32_t is_writable;
  /** Negative where dynamic. */
  int64_t shape[FOVEA_MAX_RANK];
  /** The name in the text, without the %, or empty; lives as long as the
      module. */
  const char *name;
} fovea_type;

FOVEA_API size_t fovea_module_get_num_operands(const fovea_module *module,
                                               size_t function);
FOVEA_API size_t fovea_module_get_num_results(const fovea_module *module,
                                              size_t function);
FOVEA_API fovea_status *
fovea_module_get_operand_type(const fovea_module *module, size_t function,
                              size_t index, fovea_type *type);
FOVEA_API fovea_status *fovea_module_get_result_type(const fovea_module *module,
                                                     size_t function,
                                                     size_t index,
                                                     fovea_type *type);

/*===- Calls --------------------------------------------------------------===*/

/** A tensor in memory. The element at (i, j, ...) lies at
    data + (i * strides[0] + j * strides[1] + ...) * size of an element. */
typedef struct fovea_tensor {
  void *data;
  int32_t dtype;
  int32_t rank;
  int64_t shape[FOVEA_MAX_RANK];
  int64_t strides[FOVEA_MAX_RANK];
  /** For a result: data for fovea_tensor_release. Not read for an operand. */
  void *owner;
} fovea_tensor;

/** Calls a function. Operands are only read, except for writable ones, whose
    memory no other operand may share. An operand whose elements
    are not neighbours along the last dimension is copied first, and refused if
    it is writable; any other is
    used where it is, whatever its strides. A number is a tensor of rank 0.
    `results` has room for all results; each belongs to the caller, lies in
   row-major order and is released by fovea_tensor_release. On failure there are
    no results. */
FOVEA_API fovea_status *
fovea_module_call(const fovea_module *module, size_t function,
                  const fovea_tensor *operands, size_t num_operands,
                  fovea_tensor *results, size_t num_results);

/** Calls a function of a module for a GPU on tensors in the GPU's memory, in
    the order of `stream` (a CUstream of the device's primary context; null is
    the legacy default stream), and does not wait. Numbers are in host memory. A
    result whose `data` is not null is stored there, at a multiple of 16 bytes:
    its `shape` says how much room there is. For a result whose `data` is null
    memory is allocated; it belongs to the caller and is released by
    fovea_tensor_release, which waits for the device. Shapes and strides of all
    results are set. Operands must have elements that are neighbours along the
    last dimension. With memory given for all results nothing is allocated once
    a function is warm, so that calls can be captured in a CUDA graph. */
FOVEA_API fovea_status *
fovea_module_launch(const fovea_module *module, size_t function,
                    const fovea_tensor *operands, size_t num_operands,
                    void *stream, fovea_tensor *results, size_t num_results);

/** Compiles and runs a function with every strategy on these operands, for some
    seconds, and compares them as JSON: FLOPs, bytes moved and allocated, the
    roofline's bound, predicted and measured times; the member "text" is a
    table of them for people. With no operands, random ones are made if all
    sizes are static. */
FOVEA_API fovea_status *fovea_module_report(const fovea_module *module,
                                            size_t function,
                                            const fovea_tensor *operands,
                                            size_t num_operands,
                                            fovea_buffer **buffer);

/** Compiles and measures the schedules that the model considers valid for each
    attention of a function, on these operands; of many, those `candidates` with
    the least predicted times (0: all). The fastest is kept on disk for modules
    of the same text, options and machine that are compiled later; this module
    stays as it is. The JSON has "attentions", each with its "schedules" in the
    model's order, "predicted_seconds", "measured_seconds" and the number of the
    "best"; "text" is a table for people. Operands are as those of
    fovea_module_report. */
FOVEA_API fovea_status *
fovea_module_tune(const fovea_module *module, size_t function,
                  const fovea_tensor *operands, size_t num_operands,
                  size_t candidates, fovea_buffer **buffer);

/** Frees a result's memory. */
FOVEA_API void fovea_tensor_release(fovea_tensor *tensor);

/** Frees a result's memory by the tensor's owner. */
FOVEA_API void fovea_owner_release(void *owner);

/** Returns a result as a DLManagedTensor of DLPack 0.8, whose deleter releases
    it. */
FOVEA_API void *fovea_owner_to_dlpack(void *owner);

/*===- XLA ----------------------------------------------------------------===*/

struct XLA_FFI_CallFrame;
typedef struct XLA_FFI_Error XLA_FFI_Error;

/** Handlers of XLA's foreign function interface (the typed one), for the
    platforms "cpu" and "CUDA", as `jax.ffi.register_ffi_target` takes them.
    They call a function of a text on XLA's buffers, all in row-major order. The
    attributes of the custom call:

      text      a string: what fovea_compile takes. Compiled at the first call
                with it, for the host or for the GPU, and kept.
      function  an i64: the function's number.
      swapped   an i64, 0 if it is not there: a bit for each argument of which
                the function sees dimensions 1 and 2 in each other's place; the
                argument is not copied.

    Operands are tensors. Where one or a result is of f64, the buffer may be of
    u32, with a last dimension of 2 more. */
FOVEA_API XLA_FFI_Error *fovea_xla_host(struct XLA_FFI_CallFrame *frame);
FOVEA_API XLA_FFI_Error *fovea_xla_gpu(struct XLA_FFI_CallFrame *frame);

/*===- PyTorch ------------------------------------------------------------===*/

/** A function of a module for tensors of PyTorch. */
typedef struct fovea_torch_function fovea_torch_function;

/** Returns a function of a module, which must outlive it. `is_gpu` is not 0 if
    the module is for a GPU. */
FOVEA_API fovea_torch_function *
fovea_torch_function_create(const fovea_module *module, size_t function,
                            int is_gpu);
FOVEA_API void fovea_torch_function_destroy(fovea_torch_function *function);

/** Returns the function that computes a text of the operator fovea::attention,
    and lives as long as the process; or null, with a message in the `room`
   bytes at `message`. With `is_swapped`, dimensions 1 and 2 of its first result
   are in each other's place. `operands` are those of a call that will follow,
   as in fovea_options. */
typedef fovea_torch_function *(*fovea_torch_find)(
    const char *text, size_t length, int is_gpu, int is_deterministic,
    int is_swapped, const fovea_tensor *operands, size_t num_operands,
    char *message, size_t room);

/** Registers kernels of three operators, which must be defined, with PyTorch's
    dispatcher, through the stable C interface of PyTorch 2.11 and later:

      fovea::attention(Tensor query, Tensor key, Tensor value,
                       Tensor[] captures, SymInt[] numbers, str text,
                       bool deterministic) -> (Tensor, Tensor)
      fovea::call(Tensor[] operands, int[] numbers, int function) -> Tensor[]
      fovea::accepts(Tensor x, SymInt[] numbers, str text) -> Tensor[]

    where `function` is the address of a fovea_torch_function. The kernels throw
    PyTorch's exceptions. The libraries are paths of libtorch_cpu.so and, where
    there are CUDA devices, libtorch_cuda.so, which the process has loaded; the
    second may be null. The third operator, on a tensor of the CPU, [1, 2] and
    "text", returns no tensors, or throws where PyTorch cannot call the first
   one. Returns null, or the name of what PyTorch lacks; nothing is registered
   then. To be called once. */
FOVEA_API const char *fovea_torch_register(const char *cpu_library,
                                           const char *cuda_library,
                                           fovea_torch_find find);

/** Objects of Python, of torch._C if no other module is named. */
typedef struct fovea_torch_python {
  /** Types of tensors that are nothing but memory: torch.Tensor and
      torch.nn.Parameter. */
  void *tensor, *parameter;
  /** Functions without arguments whose results count as false where nothing
      looks at what is called: _len_torch_dispatch_stack,
      _functorch.peek_interpreter_stack, _is_tracing and
      _autograd._profiler_enabled. */
  void *watchers[4];
  /** _aoti.alloc_tensors_by_stealing_from_void_ptrs, which takes tensors over;
      the function for one tensor copies it in spite of its name. */
  void *take_tensors;
} fovea_torch_python;

/** Makes functions of Python possible, after fovea_torch_register. `dlpack` is
    the DLPackExchangeAPI of tensors. Returns 0 where something is missing. This
    function and the next one need Python's global lock. */
FOVEA_API int fovea_torch_register_python(const void *dlpack,
                                          const fovea_torch_python *objects);

/** Returns an object of Python that calls a function, which must outlive it,
   with a tensor or an integer for each operand, and returns the result, or a
   tuple of them; for a null pointer, one that computes fovea::attention of that
    operator's arguments. It returns None where the call is not for it: where
    operands are others than plain tensors without gradients, where modes,
    transforms, tracing or a profiler look at it, and where it fails. */
FOVEA_API void *fovea_torch_function_get_python(fovea_torch_function *function);

#ifdef __cplusplus
}
#endif

#endif /* FOVEA_C_FOVEA_H */
