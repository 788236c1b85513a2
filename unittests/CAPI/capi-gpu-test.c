/* Launches through the C API on the driver for tests, with what a caller may do
   wrong; prints what comes of it. test/CAPI/gpu.test runs it. */

#include "fovea-c/fovea.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kText[] =
    "!t = tensor<1x2x?x64xf16>\n"
    "!s = tensor<1x2x?x?xf32>\n"
    "func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {\n"
    "  %s = attn.scores %q, %k : !t, !t -> !s\n"
    "  %p = attn.softmax %s : !s -> !s\n"
    "  %o = attn.values %p, %v : !s, !t -> !t\n"
    "  return %o : !t\n"
    "}\n"
    "func.func @flat(%x: tensor<?xf16>) -> tensor<?xf16> {\n"
    "  %y = arith.negf %x : tensor<?xf16>\n"
    "  return %y : tensor<?xf16>\n"
    "}\n";

typedef int (*cuda_function)();

static cuda_function lookUp(const char *name) {
  static void *library;
  cuda_function function = NULL;
  void *address;
  if (!library)
    library = dlopen(getenv("FOVEA_CUDA_DRIVER"), RTLD_NOW);
  address = library ? dlsym(library, name) : NULL;
  if (!address) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  memcpy(&function, &address, sizeof(function));
  return function;
}

static void *allocate(size_t bytes) {
  unsigned long long address = 0;
  if (lookUp("cuMemAlloc_v2")(&address, bytes))
    exit(1);
  return (void *)(uintptr_t)address;
}

static fovea_tensor make(int64_t length, void *data) {
  fovea_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.dtype = FOVEA_F16;
  tensor.rank = 4;
  tensor.shape[0] = 1, tensor.strides[0] = 2 * length * 64;
  tensor.shape[1] = 2, tensor.strides[1] = length * 64;
  tensor.shape[2] = length, tensor.strides[2] = 64;
  tensor.shape[3] = 64, tensor.strides[3] = 1;
  return tensor;
}

static fovea_module *module;

static void launch(const char *what, size_t function, fovea_tensor *operands,
                   size_t count, void *stream, fovea_tensor *result) {
  fovea_status *status =
      fovea_module_launch(module, function, operands, count, stream, result, 1);
  if (status)
    printf("%s: error %d: %s\n", what, fovea_status_get_code(status),
           fovea_status_get_message(status));
  else
    printf("%s: %lld\n", what, (long long)result->shape[result->rank - 2]);
  fovea_status_destroy(status);
}

int main(void) {
  fovea_context *context;
  fovea_options options = {0};
  fovea_buffer *buffer;
  fovea_tensor good[3], operands[3], flat, result;
  void *device[2] = {NULL, NULL}, *stream = NULL, *other = NULL;
  static char host[64];
  int i;

  lookUp("cuInit")(0);
  for (i = 0; i < 2; ++i)
    lookUp("cuDevicePrimaryCtxRetain")(&device[i], i);
  lookUp("cuCtxPushCurrent_v2")(device[1]);
  lookUp("cuStreamCreate")(&other, 1u);
  lookUp("cuCtxPushCurrent_v2")(device[0]);
  lookUp("cuStreamCreate")(&stream, 1u);

  options.target = "gpu";
  fovea_context_create(&context);
  if (fovea_compile(context, kText, strlen(kText), &options, &module))
    return 1;
  fovea_module_get_remarks(module, &buffer);
  printf("remarks: %s\n", fovea_buffer_get_data(buffer));
  fovea_buffer_destroy(buffer);

  for (i = 0; i < 3; ++i)
    good[i] = make(10, allocate(2 * 10 * 64 * 2));
  result = make(10, allocate(2 * 10 * 64 * 2));
  launch("good", 0, good, 3, stream, &result);
  launch("legacy stream", 0, good, 3, NULL, &result);
  launch("wrong stream", 0, good, 3, other, &result);

  memcpy(operands, good, sizeof(good));
  operands[1].data = host;
  launch("host memory", 0, operands, 3, stream, &result);
  operands[1].data = (char *)good[1].data + 1;
  launch("misaligned", 0, operands, 3, stream, &result);
  operands[1] = good[1];
  operands[1].strides[3] = 2;
  launch("spread out", 0, operands, 3, stream, &result);

  result.data = host;
  launch("result on the host", 0, good, 3, stream, &result);
  result = make(10, (char *)good[2].data + 1);
  launch("misaligned result", 0, good, 3, stream, &result);
  result = make(5, good[2].data);
  launch("short result", 0, good, 3, stream, &result);

  /* Only the driver for tests looks at the memory, and only at its address. */
  operands[0] = make((int64_t)1 << 33, good[0].data);
  operands[1] = operands[2] = good[1];
  result = make((int64_t)1 << 33, good[2].data);
  launch("many queries", 0, operands, 3, stream, &result);
  operands[0] = good[0];
  operands[1] = operands[2] = make(((int64_t)1 << 32) + 1, good[1].data);
  result = make(10, good[2].data);
  launch("many keys", 0, operands, 3, stream, &result);
  memset(&result, 0, sizeof(result));
  operands[0] = make(1 << 20, good[0].data);
  operands[1] = operands[2] = good[1];
  launch("new memory", 0, operands, 3, stream, &result);

  memset(&flat, 0, sizeof(flat));
  flat.dtype = FOVEA_F16;
  flat.rank = 1;
  flat.data = good[0].data;
  flat.shape[0] = (int64_t)1 << 36;
  flat.strides[0] = 1;
  result = flat;
  fovea_status *status =
      fovea_module_launch(module, 1, &flat, 1, stream, &result, 1);
  printf("flat: %s\n", status ? fovea_status_get_message(status) : "launched");
  fovea_status_destroy(status);

  fovea_module_destroy(module);
  fovea_context_destroy(context);
  return 0;
}
