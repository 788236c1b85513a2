// A few queries of hosts against float64: heads of a group are packed, features are in
// lanes, keys are split among cores.
// DEFINE: %{run} = fovea-run %s --check --random=1
// RUN: %{run} --entry=one --dims=1 | FileCheck %s
// RUN: %{run} --entry=one --dims=131 | FileCheck %s
// RUN: %{run} --entry=group --dims=200 --integers=0:200 | FileCheck %s
// RUN: %{run} --entry=wide --dims=65 | FileCheck %s
// RUN: %{run} --entry=eight --dims=97 | FileCheck %s
// RUN: %{run} --entry=eight --dims=97 --strategy=two-pass | FileCheck %s
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

func.func @one(%q: tensor<2x2x1x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x40xf16>) -> tensor<2x2x1x40xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x1x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x40xf16> -> tensor<2x2x1x40xf16>
  return %o : tensor<2x2x1x40xf16>
}

func.func @group(%q: tensor<1x6x1x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x64xbf16>, %length: tensor<1xi32>, %sinks: tensor<6xf32>)
    -> tensor<1x6x1x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.176) init(%sinks : tensor<6xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %length[%b] : tensor<1xi32>
      %end = arith.index_cast %n : i32 to index
      %keep = arith.cmpi slt, %j, %end : index
      attn.yield %keep : i1
    } : tensor<1x6x1x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x6x1x64xbf16>
  return %o : tensor<1x6x1x64xbf16>
}

func.func @wide(%q: tensor<1x3x1x16xf64>, %k: tensor<1x1x?x16xf64>, %v: tensor<1x1x?x8xf64>) -> tensor<1x3x1x8xf64> {
  %o = attn.attention %q, %k, %v scale(0.25) : tensor<1x3x1x16xf64>, tensor<1x1x?x16xf64>, tensor<1x1x?x8xf64> -> tensor<1x3x1x8xf64>
  return %o : tensor<1x3x1x8xf64>
}

func.func @eight(%q: tensor<1x4x2x48xf32>, %k: tensor<1x1x?x48xf32>, %v: tensor<1x1x?x48xf32>, %slopes: tensor<4xf32>) -> tensor<1x4x2x48xf32> {
  %o = attn.attention %q, %k, %v scale(0.144)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %slope = tensor.extract %slopes[%h] : tensor<4xf32>
      %r = arith.addf %s, %slope : f32
      attn.yield %r : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c90 = arith.constant 90 : index
      %place = arith.addi %i, %c90 : index
      %keep = arith.cmpi sge, %place, %j : index
      attn.yield %keep : i1
    } : tensor<1x4x2x48xf32>, tensor<1x1x?x48xf32>, tensor<1x1x?x48xf32> -> tensor<1x4x2x48xf32>
  return %o : tensor<1x4x2x48xf32>
}
