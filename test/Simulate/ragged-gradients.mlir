// Gradients where tensors say which keys a query sees: their numbers of queries come with
// the log-sum-exp, tiles are lists, and those of keys are sorted by how many queries see
// them; against float64. Lengths that no tile divides, more tiles than a chunk of a list
// has, no queries, no keys; heads of a group.
//
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --target=sm_90a --simulate --seeds=2 --random=1 --integers=0:260 --dims=q:1x2x140x64,k:1x2x260x64,v:1x2x260x64,first:140,end:140,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --target=sm_80 --simulate --random=2 --integers=0:260 --dims=q:1x2x140x64,k:1x2x260x64,v:1x2x260x64,first:140,end:140,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --target=sm_90a --simulate --random=1 --integers=0:8 --dims=q:1x2x0x64,k:1x2x8x64,v:1x2x8x64,first:0,end:0,cotangent0:1x2x0x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --target=sm_90a --simulate --random=1 --integers=0:8 --dims=q:1x2x8x64,k:1x2x0x64,v:1x2x0x64,first:8,end:8,cotangent0:1x2x8x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --deterministic --target=sm_90a --simulate --random=1 --integers=0:260 --dims=q:1x2x140x64,k:1x2x260x64,v:1x2x260x64,first:140,end:140,cotangent0:1x2x140x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=documents --target=sm_90a --simulate --seeds=2 --random=1 --integers=0:2 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=documents --target=sm_80 --simulate --random=1 --integers=0:2 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=bounds --target=sm_90a --simulate --random=1 --integers=0:80 --dims=q:1x2x4200x64,k:1x2x70x64,v:1x2x70x64,first:4200,end:4200,cotangent0:1x2x4200x64 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=ends --target=sm_90a --simulate --random=1 --integers=0:200 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=words --target=sm_90a --simulate --random=1 --integers=-20000000000:20000000000 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=words --target=sm_80 --simulate --random=1 --integers=-20000000000:20000000000 --check | FileCheck %s
// RUN: fovea-run %s --grad --recompute=always --entry=ends --target=sm_80 --simulate --random=1 --integers=0:200 --check | FileCheck %s

// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
// CHECK: check: gradient of operand
// CHECK-NOT: FAILED

func.func @bounds(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %first: tensor<?xi32>, %end: tensor<?xi32>) -> tensor<1x2x?x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %first[%i] : tensor<?xi32>
      %y = tensor.extract %end[%i] : tensor<?xi32>
      %from = arith.index_cast %x : i32 to index
      %to = arith.index_cast %y : i32 to index
      %begun = arith.cmpi sge, %j, %from : index
      %before = arith.cmpi slt, %j, %to : index
      %keep = arith.andi %begun, %before : i1
      attn.yield %keep : i1
    }
    : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>
  return %o : tensor<1x2x?x64xbf16>
}

// Ids of each batch; queries of a group add up.
func.func @documents(%q: tensor<2x4x100x64xbf16>, %k: tensor<2x2x100x64xbf16>, %ids: tensor<2x100xi32>) -> tensor<2x4x100x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ids[%b, %i] : tensor<2x100xi32>
      %y = tensor.extract %ids[%b, %j] : tensor<2x100xi32>
      %same = arith.cmpi eq, %x, %y : i32
      %seen = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %same, %seen : i1
      attn.yield %keep : i1
    }
    : tensor<2x4x100x64xbf16>, tensor<2x2x100x64xbf16>, tensor<2x2x100x64xbf16> -> tensor<2x4x100x64xbf16>
  return %o : tensor<2x4x100x64xbf16>
}

// One bound, which is one test of a tile.
func.func @ends(%q: tensor<1x2x150x64xbf16>, %k: tensor<1x2x190x64xbf16>, %ends: tensor<150xi32>) -> tensor<1x2x150x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ends[%i] : tensor<150xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    }
    : tensor<1x2x150x64xbf16>, tensor<1x2x190x64xbf16>, tensor<1x2x190x64xbf16> -> tensor<1x2x150x64xbf16>
  return %o : tensor<1x2x150x64xbf16>
}

// Numbers of 64 bits.
func.func @words(%q: tensor<1x2x150x64xbf16>, %ids: tensor<150xi64>) -> tensor<1x2x150x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ids[%i] : tensor<150xi64>
      %y = tensor.extract %ids[%j] : tensor<150xi64>
      %keep = arith.cmpi sle, %x, %y : i64
      attn.yield %keep : i1
    }
    : tensor<1x2x150x64xbf16>, tensor<1x2x150x64xbf16>, tensor<1x2x150x64xbf16> -> tensor<1x2x150x64xbf16>
  return %o : tensor<1x2x150x64xbf16>
}
