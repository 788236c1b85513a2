/*===- capi-test.c - The C API from C -------------------------------------===*\
|*                                                                            *|
|* Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.         *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/* A C program that compiles a text, looks at it, calls it, and provokes every
   kind of error. Prints what it finds, for test/CAPI/capi.test. */

#include "fovea-c/fovea.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if a status is an error. */
static void check(fovea_status *status) {
  if (!status)
    return;
  printf("unexpected: %s\n", fovea_status_get_message(status));
  fovea_status_destroy(status);
  exit(1);
}

/* Prints the error that is expected. */
static void expect(fovea_status *status) {
  if (!status) {
    printf("no error\n");
    exit(1);
  }
  printf("error %d: %s\n", (int)fovea_status_get_code(status),
         fovea_status_get_message(status));
  fovea_status_destroy(status);
}

static const char text[] =
    "func.func @twice(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n"
    "  %y = attn.scale %x by 2.0 : tensor<?x3xf32>\n"
    "  return %y : tensor<?x3xf32>\n"
    "}\n"
    "func.func @add(%a: tensor<?xf64>, %b: tensor<?xf64>) -> tensor<?xf64> {\n"
    "  %c = attn.residual_add %a, %b : tensor<?xf64>, tensor<?xf64>\n"
    "  return %c : tensor<?xf64>\n"
    "}\n";

static fovea_tensor makeTensor(void *data, fovea_dtype dtype, int64_t rows,
                               int64_t columns, int64_t rowStride) {
  fovea_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = columns ? 2 : 1;
  tensor.shape[0] = rows;
  tensor.shape[1] = columns;
  tensor.strides[0] = rowStride;
  tensor.strides[1] = 1;
  return tensor;
}

int main(void) {
  printf("version %s, threads %d\n", fovea_get_version(),
         fovea_get_num_threads() > 0);
  fovea_context *context;
  check(fovea_context_create(&context));
  fovea_module *module, *same;
  check(fovea_compile(context, text, strlen(text), NULL, &module));
  check(fovea_compile(context, text, strlen(text), NULL, &same));
  fovea_module_destroy(same);
  /* Modules outlive their context. */
  fovea_options options = {0};
  options.strategy = "fast";
  expect(fovea_compile(context, text, strlen(text), &options, &same));
  /* Of operands of a call that will follow, shapes are read. */
  fovea_options ahead = {0};
  fovea_tensor known = {0};
  known.rank = FOVEA_MAX_RANK + 1;
  ahead.num_operands = 1;
  expect(fovea_compile(context, text, strlen(text), &ahead, &same));
  ahead.operands = &known;
  expect(fovea_compile(context, text, strlen(text), &ahead, &same));
  known.rank = 2;
  check(fovea_compile(context, text, strlen(text), &ahead, &same));
  fovea_module_destroy(same);
  expect(fovea_compile(context, "func", 4, NULL, &same));
  fovea_context_destroy(context);

  for (size_t f = 0; f < fovea_module_get_num_functions(module); ++f)
    printf("@%s: %d operands, %d results\n",
           fovea_module_get_function_name(module, f),
           (int)fovea_module_get_num_operands(module, f),
           (int)fovea_module_get_num_results(module, f));
  size_t twice;
  check(fovea_module_find_function(module, "twice", &twice));
  expect(fovea_module_find_function(module, NULL, &twice));
  fovea_type type;
  check(fovea_module_get_operand_type(module, twice, 0, &type));
  printf("%s: dtype %d, rank %d, %dx%d\n", type.name, (int)type.dtype,
         (int)type.rank, (int)type.shape[0], (int)type.shape[1]);
  expect(fovea_module_get_result_type(module, twice, 1, &type));

  fovea_buffer *buffer;
  check(fovea_module_emit(module, "llvm", &buffer));
  printf("llvm: %d\n",
         strstr(fovea_buffer_get_data(buffer), "llvm.func @twice") != NULL);
  fovea_buffer_destroy(buffer);
  expect(fovea_module_emit(module, "cubin", &buffer));

  /* Every second row of four. */
  float data[12] = {0, 1, 2, -1, -1, -1, 3, 4, 5, -1, -1, -1};
  fovea_tensor operand = makeTensor(data, FOVEA_F32, 2, 3, 6);
  fovea_tensor result;
  check(fovea_module_call(module, twice, &operand, 1, &result, 1));
  const float *values = (const float *)result.data;
  printf("result %dx%d:", (int)result.shape[0], (int)result.shape[1]);
  for (int i = 0; i < 6; ++i)
    printf(" %g", values[i]);
  printf("\n");
  fovea_tensor_release(&result);
  fovea_tensor_release(&result);

  operand.dtype = FOVEA_F16;
  expect(fovea_module_call(module, twice, &operand, 1, &result, 1));
  operand.dtype = 99;
  expect(fovea_module_call(module, twice, &operand, 1, &result, 1));
  expect(fovea_module_call(module, twice, &operand, 0, &result, 1));
  expect(fovea_module_call(module, twice, &operand, 1, &result, 0));
  expect(fovea_module_call(module, 7, &operand, 1, &result, 1));
  double a[3] = {1, 2, 3};
  fovea_tensor operands[2] = {makeTensor(a, FOVEA_F64, 3, 0, 1),
                              makeTensor(a, FOVEA_F64, 2, 0, 1)};
  expect(fovea_module_call(module, 1, operands, 2, &result, 1));

  fovea_module_destroy(module);
  fovea_module_destroy(NULL);
  fovea_status_destroy(NULL);
  fovea_buffer_destroy(NULL);
  fovea_context_destroy(NULL);
  return 0;
}
