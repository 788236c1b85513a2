// Attention in loops and branches, as in a loop over layers: buffers that leave
// their block, of every number of iterations.
//
// RUN: fovea-run %s --entry=layers --random=1 --integers=3:3 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=layers --random=1 --integers=0:0 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=layers --random=1 --integers=2:2 --dims=0 --check | FileCheck %s
// RUN: fovea-run %s --entry=layers --random=1 --integers=2:2 --dims=37 --check --strategy=two-pass | FileCheck %s
// RUN: fovea-run %s --entry=layers --random=1 --integers=2:2 --dims=37 --check --strategy=unfused | FileCheck %s
// RUN: fovea-run %s --entry=graph --random=1 --integers=2:2 --check | FileCheck %s
// RUN: fovea-run %s --entry=branch --random=1 --integers=1:1 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=branch --random=1 --integers=0:0 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=layers --random=1 --integers=2:2 --dims=37 --check --target=sm_90a --simulate | FileCheck %s
// RUN: fovea-run %s --entry=branch --random=1 --integers=1:1 --dims=37 --check --target=sm_90a --simulate | FileCheck %s
// RUN: fovea-run %s --entry=norms --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=two --random=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=norms --random=1 --check --grad --recompute=always | FileCheck %s
// RUN: fovea-run %s --entry=two --random=1 --check --grad --recompute=always | FileCheck %s
// RUN: not fovea-run %s --entry=layers --random=1 --integers=3:3 --dims=37 --grad 2>&1 | FileCheck %s --check-prefix=GRAD
//
// CHECK: check: result 0:
// CHECK-NOT: FAILED
// GRAD: error: 'scf.for' op has no derivative

// Several attentions a layer, of which one reads another's result, and what is
// yielded is made from both.
func.func @layers(%x0: tensor<1x2x?x16xf32>, %table: tensor<4xf32>, %n: index) -> tensor<1x2x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %layer = %c0 to %n step %c1 iter_args(%x = %x0) -> tensor<1x2x?x16xf32> {
    %y = attn.rms_norm %x epsilon(1.0e-6) : tensor<1x2x?x16xf32>
    %o = attn.attention %y, %y, %y scale(0.25) score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %table[%layer] : tensor<4xf32>
      %t = arith.mulf %s, %slope : f32
      attn.yield %t : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
    %p = attn.attention %o, %x, %y scale(0.25) : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
    %z = attn.residual_add %p, %o : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>
    scf.yield %z : tensor<1x2x?x16xf32>
  }
  return %r : tensor<1x2x?x16xf32>
}

func.func @graph(%q: tensor<1x2x20x20xf32>, %n: index) -> tensor<1x2x20x20xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<1x2x20x20xf32> {
    %s = attn.scores %x, %x : tensor<1x2x20x20xf32>, tensor<1x2x20x20xf32> -> tensor<1x2x20x20xf32>
    %p = attn.softmax %s : tensor<1x2x20x20xf32> -> tensor<1x2x20x20xf32>
    %o = attn.values %p, %x : tensor<1x2x20x20xf32>, tensor<1x2x20x20xf32> -> tensor<1x2x20x20xf32>
    scf.yield %o : tensor<1x2x20x20xf32>
  }
  return %r : tensor<1x2x20x20xf32>
}

func.func @branch(%x: tensor<1x2x?x16xf32>, %n: index) -> tensor<1x2x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c = arith.cmpi sgt, %n, %c0 : index
  %r = scf.if %c -> tensor<1x2x?x16xf32> {
    %o = attn.attention %x, %x, %x scale(0.25) mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
    scf.yield %o : tensor<1x2x?x16xf32>
  } else {
    scf.yield %x : tensor<1x2x?x16xf32>
  }
  return %r : tensor<1x2x?x16xf32>
}

// What is tiled with attention, before and after it, and a mask whose test of a
// tile makes a branch.
func.func @norms(%q: tensor<1x3x48x8xf32>, %k: tensor<1x1x8x8xf32>, %keep: tensor<8xi1>) -> tensor<1x3x48x8xf32> {
  %t1 = attn.rms_norm %q epsilon(1.0e-2) : tensor<1x3x48x8xf32>
  %o = attn.attention %t1, %k, %k scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %keep[%j] : tensor<8xi1>
    attn.yield %m : i1
  } : tensor<1x3x48x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x3x48x8xf32>
  %r = attn.layer_norm %o epsilon(1.0e-2) : tensor<1x3x48x8xf32>
  return %r : tensor<1x3x48x8xf32>
}

func.func @two(%q: tensor<1x2x48x8xf32>, %k: tensor<1x2x48x8xf32>, %k2: tensor<1x2x1x8xf32>) -> tensor<1x2x48x8xf32> {
  %t1 = attn.attention %q, %k, %k scale(1.0) : tensor<1x2x48x8xf32>, tensor<1x2x48x8xf32>, tensor<1x2x48x8xf32> -> tensor<1x2x48x8xf32>
  %t2 = attn.attention %t1, %k2, %k2 scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %a = arith.subi %j, %h : index
    %m = arith.cmpi slt, %a, %i : index
    attn.yield %m : i1
  } : tensor<1x2x48x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32> -> tensor<1x2x48x8xf32>
  %r = attn.layer_norm %t2 epsilon(1.0e-6) : tensor<1x2x48x8xf32>
  return %r : tensor<1x2x48x8xf32>
}
