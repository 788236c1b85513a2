// A few queries, as in decoding, against the unfused graph in f64: by vectors of each
// width, with rows that are whole lines and others.
//
// RUN: fovea-run %s --entry=one --random=1 --dims=1 --check | FileCheck %s
// RUN: fovea-run %s --entry=one --random=1 --dims=300 --check | FileCheck %s
// RUN: fovea-run %s --entry=one --random=1 --dims=300 --check --strategy=two-pass | FileCheck %s
// RUN: fovea-run %s --entry=group --random=2 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=rows --random=3 --dims=300 --check | FileCheck %s
// RUN: fovea-run %s --entry=masked --random=4 --dims=37 --check | FileCheck %s
// RUN: fovea-run %s --entry=one --random=1 --dims=300 --check --arch=generic | FileCheck %s
// RUN: fovea-run %s --entry=group --random=2 --dims=37 --check --arch=generic | FileCheck %s
// RUN: sed s/bf16/f16/g %s > %t.f16.mlir
// RUN: fovea-run %t.f16.mlir --entry=one --random=1 --dims=300 --check | FileCheck %s
// RUN: fovea-run %t.f16.mlir --entry=rows --random=3 --dims=37 --check | FileCheck %s
// RUN: sed s/bf16/f32/g %s > %t.f32.mlir
// RUN: fovea-run %t.f32.mlir --entry=one --random=1 --dims=37 --check | FileCheck %s
// RUN: fovea-run %t.f32.mlir --entry=group --random=2 --dims=300 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: error:

func.func @one(%q: tensor<1x6x1x64xbf16>, %k: tensor<1x6x?x64xbf16>, %v: tensor<1x6x?x96xbf16>) -> (tensor<1x6x1x96xbf16>, tensor<1x6x1xf32>) {
  %o, %l = attn.attention %q, %k, %v scale(0.25)
      : tensor<1x6x1x64xbf16>, tensor<1x6x?x64xbf16>, tensor<1x6x?x96xbf16> -> tensor<1x6x1x96xbf16>, tensor<1x6x1xf32>
  return %o, %l : tensor<1x6x1x96xbf16>, tensor<1x6x1xf32>
}

// Three queries for each head of keys, a negative scale, and values of three vectors.
func.func @group(%q: tensor<1x6x1x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x48xbf16>) -> tensor<1x6x1x48xbf16> {
  %o = attn.attention %q, %k, %v scale(-0.25)
      : tensor<1x6x1x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x48xbf16> -> tensor<1x6x1x48xbf16>
  return %o : tensor<1x6x1x48xbf16>
}

// Scores of some hundreds, whose maxima rise from block to block.
func.func @rows(%q: tensor<1x1x5x32xbf16>, %k: tensor<1x1x?x32xbf16>, %v: tensor<1x1x?x32xbf16>) -> tensor<1x1x5x32xbf16> {
  %o = attn.attention %q, %k, %v scale(20.0)
      : tensor<1x1x5x32xbf16>, tensor<1x1x?x32xbf16>, tensor<1x1x?x32xbf16> -> tensor<1x1x5x32xbf16>
  return %o : tensor<1x1x5x32xbf16>
}

// A mask takes scores key by key.
func.func @masked(%q: tensor<1x6x1x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x6x1x32xbf16> {
  %o = attn.attention %q, %k, %v scale(0.25)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %last = arith.constant 20 : index
        %keep = arith.cmpi sge, %last, %j : index
        attn.yield %keep : i1
      } : tensor<1x6x1x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x32xbf16> -> tensor<1x6x1x32xbf16>
  return %o : tensor<1x6x1x32xbf16>
}
