// Attention that starts from a state, and its gradients, against float64: sinks on
// all keys, sinks where the keys are split, a state with an output, and the merge
// of parts. Rows without a key have the state only.
// DEFINE: %{sinks} = fovea-run %s --entry=sinks --random=1 --check --integers=0:20
// RUN: %{sinks} | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{sinks} --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{sinks} --target=sm_80 --simulate | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{sinks} --strategy=unfused | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{sinks} --grad | FileCheck %s --check-prefixes=CHECK,GRAD
// RUN: %{sinks} --grad --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,GRAD
// RUN: %{sinks} --grad --recompute=never | FileCheck %s --check-prefixes=CHECK,GRAD
// DEFINE: %{decode} = fovea-run %s --entry=decode --random=2 --check
// RUN: %{decode} | FileCheck %s
// RUN: %{decode} --target=sm_90a --simulate | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --emit=fused | FileCheck %s --check-prefix=SPLIT
// DEFINE: %{state} = fovea-run %s --entry=state --random=3 --check --dims=70
// RUN: %{state} | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{state} --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %{state} --grad | FileCheck %s --check-prefixes=CHECK,STATE
// RUN: %{state} --grad --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,STATE
// DEFINE: %{parts} = fovea-run %s --entry=parts --random=4 --check
// RUN: %{parts} --grad | FileCheck %s --check-prefixes=CHECK,PARTS
// RUN: %{parts} --grad --target=sm_90a --simulate | FileCheck %s --check-prefixes=CHECK,PARTS

// CHECK: check: result 0: max error
// TWO: check: result 1: max error
// GRAD: check: result 5: max error
// GRAD: gradient of operand 3 (%sinks) of @sinks: 4 of 4 elements by differences
// STATE: check: result 5: max error
// STATE: check: result 6: max error
// STATE: gradient of operand 3 (%o0) of @state: {{.*}} by differences
// STATE: gradient of operand 4 (%l0) of @state: {{.*}} by differences
// PARTS: check: result 2: max error
// PARTS: check: result 3: max error
// PARTS: gradient of operand 0 (%parts) of @parts: {{.*}} by differences
// PARTS: gradient of operand 1 (%lses) of @parts: {{.*}} by differences
// CHECK-NOT: FAILED

func.func @sinks(%q: tensor<2x4x33x32xf16>, %k: tensor<2x2x40x32xf16>, %v: tensor<2x2x40x32xf16>, %sinks: tensor<4xf32>,
                 %length: tensor<2xi32>) -> (tensor<2x4x33x32xf16>, tensor<2x4x33xf32>) {
  %o, %lse = attn.attention %q, %k, %v scale(0.176) init(%sinks : tensor<4xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %length[%b] : tensor<2xi32>
      %end = arith.index_cast %n : i32 to index
      %exists = arith.cmpi slt, %j, %end : index
      %c20 = arith.constant 20 : index
      %place = arith.subi %i, %c20 : index
      %causal = arith.cmpi sge, %place, %j : index
      %keep = arith.andi %exists, %causal : i1
      attn.yield %keep : i1
    } : tensor<2x4x33x32xf16>, tensor<2x2x40x32xf16>, tensor<2x2x40x32xf16> -> tensor<2x4x33x32xf16>, tensor<2x4x33xf32>
  return %o, %lse : tensor<2x4x33x32xf16>, tensor<2x4x33xf32>
}

// SPLIT-LABEL: func @decode
// SPLIT: attn.attention {{.*}} init(%{{.*}} : tensor<2x8xf32>)
// SPLIT-SAME: split = {{[2-9]|[1-9][0-9]}}>
func.func @decode(%q: tensor<1x16x1x64xbf16>, %k: tensor<1x2x2048x64xbf16>, %v: tensor<1x2x2048x64xbf16>, %sinks: tensor<16xf32>)
    -> tensor<1x16x1x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125) init(%sinks : tensor<16xf32>)
    : tensor<1x16x1x64xbf16>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048x64xbf16> -> tensor<1x16x1x64xbf16>
  return %o : tensor<1x16x1x64xbf16>
}

func.func @state(%q: tensor<1x2x?x32xf32>, %k: tensor<1x2x?x32xf32>, %v: tensor<1x2x?x16xf32>, %o0: tensor<1x2x?x16xf32>,
                 %l0: tensor<1x2x?xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v scale(0.176) init(%o0, %l0 : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %t = math.tanh %s : f32
      attn.yield %t : f32
    }
    : tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
  return %o, %lse : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
}

func.func @parts(%parts: tensor<3x1x2x5x16xf32>, %lses: tensor<3x1x2x5xf32>) -> (tensor<1x2x5x16xf32>, tensor<1x2x5xf32>) {
  %o, %lse = attn.merge %parts, %lses : tensor<3x1x2x5x16xf32>, tensor<3x1x2x5xf32> -> tensor<1x2x5x16xf32>, tensor<1x2x5xf32>
  return %o, %lse : tensor<1x2x5x16xf32>, tensor<1x2x5xf32>
}
