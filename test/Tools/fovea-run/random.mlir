// Random operands of given sizes, checked against the float64 reference.

// RUN: fovea-run %s --entry=attend --random=1 --dims=q:2x4x37x16 --dims=50 --check | FileCheck %s --check-prefix=CHECK
// CHECK: result 0: f16 2x4x37x16, mean
// CHECK: check: result 0: max error {{[^ ]+}}, relative {{[^ ]+}} (bound 0.004)

// Sizes may be listed; a strategy changes nothing but rounding.
// RUN: fovea-run %s --entry=attend --random=1 --dims=0:2x4x37x16,k:2x2x50x16,2:2x2x50x16 --check --strategy=unfused | FileCheck %s
// RUN: fovea-run %s --entry=attend --random=1 --dims=64 --dims=q:2x4x3x16 --check --strategy=three-pass --arch=generic | FileCheck %s --check-prefix=GENERIC
// GENERIC: result 0: f16 2x4x3x16,
// GENERIC: check: result 0: max error

// Times, rates and the comparison of strategies.
// RUN: fovea-run %s --entry=attend --random=1 --dims=32 --time --report | FileCheck %s --check-prefix=REPORT
// REPORT: time: median {{.*}} ms of {{.*}} runs; {{.*}} GFLOP, {{.*}} GFLOP/s, {{.*}}% of the measured roofline
// REPORT: machine: {{[0-9]+}} threads, {{.*}} GB/s and {{.*}} GFLOP/s
// REPORT: unfused three-pass two-pass fused
// REPORT: GFLOP
// REPORT: MB moved
// REPORT: FLOP per byte
// REPORT: temporary memory, MB
// REPORT: roofline bound, ms
// REPORT: predicted, ms
// REPORT: measured, ms
// REPORT: fused against unfused:

// Sizes that are missing or do not agree.
// RUN: not fovea-run %s --entry=attend --random=1 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: fovea-run: operand 0 (%q) of @attend is f16 tensor of shape 2x4x?x16: give its sizes, such as --dims=q:2x4x128x16, or --dims=128 for every dynamic size
// RUN: not fovea-run %s --entry=attend --random=1 --dims=8,v:2x2x9x16 2>&1 | FileCheck %s --check-prefix=AGREE
// AGREE: fovea-run: dimension 2 of operand 1 (%k) of @attend is 8, expected 9, which is dimension 2 of operand 2 (%v) of @attend, for 'attn.values' at line
// RUN: not fovea-run %s --entry=attend --random=1 --dims=9223372036854775807 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: fovea-run: operand 0 (%q) of @attend: the shape 2x4x9223372036854775807x16 overflows
// RUN: not fovea-run %s --entry=attend --random=x --dims=8 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: fovea-run: --random=x: expected a whole number of at least 0
// RUN: not fovea-run %s --entry=attend --random=1 --integers=5 --dims=8 2>&1 | FileCheck %s --check-prefix=INTEGERS
// INTEGERS: fovea-run: --integers=5: expected LOW:HIGH, such as 0:7

// The function to run.
// RUN: not fovea-run %s --random=1 2>&1 | FileCheck %s --check-prefix=ENTRY
// ENTRY: fovea-run: the module has several functions; name one of @attend, @buffer
// RUN: not fovea-run %s --entry=other --random=1 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: fovea-run: the module has no public function @other
// RUN: not fovea-run %s --entry=number --random=1 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: fovea-run: result 0 of @number is f32; only tensors and numbers of f16, bf16, f32, f64, index and signless integers can be passed, and only tensors returned

// A file of more than the memory there is.
// RUN: not fovea-run %s --entry=attend --random=1 --dims=500000000000 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: fovea-run: operand 0 (%q) of @attend: out of memory: cannot allocate 128000000000000 bytes

func.func @attend(%q: tensor<2x4x?x16xf16>, %k: tensor<2x2x?x16xf16>, %v: tensor<2x2x?x16xf16>) -> tensor<2x4x?x16xf16> {
  %s = attn.scores %q, %k : tensor<2x4x?x16xf16>, tensor<2x2x?x16xf16> -> tensor<2x4x?x?xf32>
  %t = attn.scale %s by 0.25 : tensor<2x4x?x?xf32>
  %p = attn.softmax %t : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %o = attn.values %p, %v : tensor<2x4x?x?xf32>, tensor<2x2x?x16xf16> -> tensor<2x4x?x16xf16>
  return %o : tensor<2x4x?x16xf16>
}

func.func @buffer(%x: tensor<?xf64>) -> tensor<?xf64> {
  return %x : tensor<?xf64>
}

func.func @number(%x: tensor<f32>) -> f32 {
  %y = tensor.extract %x[] : tensor<f32>
  return %y : f32
}
