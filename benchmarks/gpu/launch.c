/*===- launch.c - Host time of compiling and of launching
------------------===*\
|*                                                                            *|
|* Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.         *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* What the host takes, through the C API, from the text of causal attention  *|
|* (bf16, head dim 128) to loaded kernels, and for a warm launch, which does  *|
|* not wait for the GPU.                                                      *|
|*                                                                            *|
|*   fovea-launch [TARGET [LENGTH]]      (default: gpu 256)                   *|
|*                                                                            *|
|* The first compilation comes from the disk cache if an earlier process left *|
|* it there. Launches are timed one by one, in groups that the GPU catches up *|
|* with in between, so that its queue is never full. Allocations are those of *|
|* all launches together.                                                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#define _POSIX_C_SOURCE 200112L

#include "fovea-c/fovea.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADS 4
#define DIM 128
#define GROUPS 200
#define GROUP 50

/* Counts what the process allocates: a warm launch must not. */
static size_t allocations;
#ifndef FOVEA_SANITIZE
extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
#endif

static const char kText[] =
    "!t = tensor<?x4x?x128xbf16>\n"
    "!s = tensor<?x4x?x?xf32>\n"
    "func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {\n"
    "  %s = attn.scores %q, %k : !t, !t -> !s\n"
    "  %t = attn.scale %s by 0.08838834764 : !s\n"
    "  %m = attn.mask %t {\n"
    "  ^bb0(%b: index, %h: index, %i: index, %j: index):\n"
    "    %keep = arith.cmpi sge, %i, %j : index\n"
    "    attn.yield %keep : i1\n"
    "  } : !s\n"
    "  %p = attn.softmax %m : !s -> !s\n"
    "  %o = attn.values %p, %v : !s, !t -> !t\n"
    "  return %o : !t\n"
    "}\n";

static void require(int condition, const char *what) {
  if (condition)
    return;
  fprintf(stderr, "fovea-launch: %s\n", what);
  exit(1);
}

static void check(fovea_status *status) {
  if (status)
    require(0, fovea_status_get_message(status));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
  double difference = *(const double *)a - *(const double *)b;
  return (difference > 0) - (difference < 0);
}

/* A function of the CUDA driver, which is found as Fovea finds it. */
typedef int (*cuda_function)();

static cuda_function lookUp(const char *name) {
  static void *library;
  if (!library) {
    const char *path = getenv("FOVEA_CUDA_DRIVER");
    library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW);
    require(library != NULL, dlerror());
  }
  void *address = dlsym(library, name);
  require(address != NULL, name);
  cuda_function function;
  memcpy(&function, &address, sizeof(function));
  return function;
}

int main(int argc, char **argv) {
  fovea_options options = {0};
  options.target = argc > 1 ? argv[1] : "gpu";
  int64_t length = argc > 2 ? atoll(argv[2]) : 256;
  require(length > 0, "expected a target and a length above 0");

  /* The driver's own start is no part of the compilation. */
  void *context = NULL;
  require(lookUp("cuInit")(0) == 0 &&
              lookUp("cuDevicePrimaryCtxRetain")(&context, 0) == 0 &&
              lookUp("cuCtxPushCurrent_v2")(context) == 0,
          "no GPU");

  fovea_context *compiler;
  fovea_module *module;
  check(fovea_context_create(&compiler));
  double start = now();
  check(fovea_compile(compiler, kText, strlen(kText), &options, &module));
  printf("text to loaded kernels: %.1f ms\n", (now() - start) * 1e3);

  fovea_tensor tensors[4];
  memset(tensors, 0, sizeof(tensors));
  for (int i = 0; i < 4; ++i) {
    fovea_tensor *tensor = &tensors[i];
    const int64_t shape[4] = {1, HEADS, length, DIM};
    tensor->dtype = FOVEA_BF16;
    tensor->rank = 4;
    int64_t stride = 1;
    for (int dim = 3; dim >= 0; stride *= shape[dim--]) {
      tensor->shape[dim] = shape[dim];
      tensor->strides[dim] = stride;
    }
    unsigned long long address = 0;
    require(lookUp("cuMemAlloc_v2")(&address, (size_t)stride * 2) == 0,
            "no memory on the GPU");
    tensor->data = (void *)(uintptr_t)address;
  }
  void *stream;
  require(lookUp("cuStreamCreate")(&stream, 1u) == 0, "no stream");
  cuda_function synchronize = lookUp("cuStreamSynchronize");

  static double times[GROUPS * GROUP];
  size_t before = 0;
  for (int group = -1; group < GROUPS; ++group) {
    if (group == 0)
      before = allocations;
    for (int i = 0; i < GROUP; ++i) {
      start = now();
      check(fovea_module_launch(module, 0, tensors, 3, stream, &tensors[3], 1));
      if (group >= 0)
        times[group * GROUP + i] = now() - start;
    }
    require(synchronize(stream) == 0, "a kernel failed");
  }
  size_t made = allocations - before;
  qsort(times, GROUPS * GROUP, sizeof(double), compare);
  printf("launch: median %.2f us, best %.2f us, 99%% below %.2f us; "
         "%zu allocations\n",
         times[GROUPS * GROUP / 2] * 1e6, times[0] * 1e6,
         times[GROUPS * GROUP * 99 / 100] * 1e6, made);
  fovea_module_destroy(module);
  fovea_context_destroy(compiler);
  return 0;
}
