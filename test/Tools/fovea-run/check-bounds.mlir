// Indices and divisors that data decide: --check-bounds names the operation, its
// place and the numbers; without it a crash is not called a bug of Fovea.
//
// RUN: fovea-run %s --entry=table --random=1 --integers=0:7 --check-bounds | FileCheck %s --check-prefix=GOOD
// RUN: fovea-run %s --entry=table --random=1 --integers=0:7 --check-bounds --grad | FileCheck %s --check-prefix=GOOD
// GOOD: result 0: f32 1x2x20x16
//
// RUN: not fovea-run %s --entry=table --random=1 --integers=185:185 --check-bounds 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not fovea-run %s --entry=table --random=1 --integers=185:185 --check-bounds --grad 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not fovea-run %s --entry=table --random=1 --integers=185:185 --check-bounds --target=sm_90a --simulate 2>&1 | FileCheck %s --check-prefix=TABLE
// TABLE: fovea-run: @table: {{.*}}check-bounds.mlir:[[#@LINE+26]]:10: 'tensor.extract' is out of bounds: index 185 of dimension 0, whose size is 8
// TABLE-NOT: result
//
// RUN: not fovea-run %s --entry=fused --random=1 --dims=4 --integers=-3:-3 --check-bounds 2>&1 | FileCheck %s --check-prefix=FUSED
// FUSED: fovea-run: @fused: {{.*}}check-bounds.mlir:[[#@LINE+37]]:10: 'tensor.extract' is out of bounds: index -3 of dimension 1, whose size is 9
//
// RUN: not fovea-run %s --entry=divide --input=6 --input=0 --random=1 --check-bounds 2>&1 | FileCheck %s --check-prefix=DIVIDE
// DIVIDE: fovea-run: @divide: {{.*}}check-bounds.mlir:[[#@LINE+45]]:10: 'arith.remsi' divides 6 by 0
//
// RUN: not fovea-run %s --entry=divide --input=-9223372036854775808 --input=-1 --random=1 --check-bounds 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: 'arith.remsi' divides -9223372036854775808 by -1, which overflows
//
// A read that one side of a branch guards is not made.
// RUN: fovea-run %s --entry=guarded --random=1 --integers=-9:9 --check-bounds | FileCheck %s --check-prefix=GUARDED
// GUARDED: result 0: f32 1x1x4x8
// By one thread: of several that crash another may end the process before one has said so.
// RUN: env FOVEA_NUM_THREADS=1 not --crash fovea-run %s --entry=divide --input=6 --input=0 --random=1 2>&1 | FileCheck %s --check-prefix=CRASH
// CRASH: The compiled graph crashed. Either its operands lead to an index out of bounds or a
// CRASH-NEXT: division by 0: run it with --check-bounds, which names the op.

func.func @table(%q: tensor<1x2x20x16xf32>, %k: tensor<1x2x20x16xf32>, %v: tensor<1x2x20x16xf32>, %ids: tensor<20xi64>, %t: tensor<8xf32>) -> tensor<1x2x20x16xf32> {
  %s = attn.scores %q, %k : tensor<1x2x20x16xf32>, tensor<1x2x20x16xf32> -> tensor<1x2x20x20xf32>
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %z = tensor.extract %ids[%j] : tensor<20xi64>
    %zi = arith.index_cast %z : i64 to index
    %e = tensor.extract %t[%zi] : tensor<8xf32>
    %r = arith.addf %x, %e : f32
    attn.yield %r : f32
  } : tensor<1x2x20x20xf32>
  %p = attn.softmax %m : tensor<1x2x20x20xf32> -> tensor<1x2x20x20xf32>
  %o = attn.values %p, %v : tensor<1x2x20x20xf32>, tensor<1x2x20x16xf32> -> tensor<1x2x20x16xf32>
  return %o : tensor<1x2x20x16xf32>
}

// The second dimension, of a size that is not static.
func.func @fused(%q: tensor<1x2x20x16xf32>, %ids: tensor<20xi32>, %t: tensor<?x9xf16>) -> tensor<1x2x20x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %z = tensor.extract %ids[%i] : tensor<20xi32>
    %zi = arith.index_cast %z : i32 to index
    %e = tensor.extract %t[%b, %zi] : tensor<?x9xf16>
    %w = arith.extf %e : f16 to f32
    %r = arith.addf %x, %w : f32
    attn.yield %r : f32
  } : tensor<1x2x20x16xf32>, tensor<1x2x20x16xf32>, tensor<1x2x20x16xf32> -> tensor<1x2x20x16xf32>
  return %o : tensor<1x2x20x16xf32>
}

func.func @divide(%a: i64, %n: i64, %q: tensor<1x2x20x16xf32>) -> tensor<1x2x20x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.remsi %a, %n : i64
    %x = arith.index_cast %d : i64 to index
    %e = arith.cmpi sle, %x, %j : index
    attn.yield %e : i1
  } : tensor<1x2x20x16xf32>, tensor<1x2x20x16xf32>, tensor<1x2x20x16xf32> -> tensor<1x2x20x16xf32>
  return %o : tensor<1x2x20x16xf32>
}

func.func @guarded(%q: tensor<1x1x4x8xf32>, %ids: tensor<8xi64>, %t: tensor<8xf32>) -> tensor<1x1x4x8xf32> {
  %m = attn.modify %q {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %z = tensor.extract %ids[%j] : tensor<8xi64>
    %zi = arith.index_cast %z : i64 to index
    %low = arith.cmpi sge, %zi, %c0 : index
    %high = arith.cmpi slt, %zi, %c8 : index
    %in = arith.andi %low, %high : i1
    %r = scf.if %in -> f32 {
      %e = tensor.extract %t[%zi] : tensor<8xf32>
      scf.yield %e : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %r : f32
  } : tensor<1x1x4x8xf32>
  return %m : tensor<1x1x4x8xf32>
}
