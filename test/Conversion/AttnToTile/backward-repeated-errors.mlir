// Sums are completed behind the loops that repeat the parallel one, which therefore
// must do nothing else.
//
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-online-softmax --attn-tile --canonicalize --cse -o %t.mlir
// RUN: fovea-opt %t.mlir --convert-attn-to-tile | FileCheck %s
// RUN: sed 's/^\( *\)\(.* = scf.for .* to %c4 step .*\)$/\2 %more = scf.execute_region -> index { scf.yield %c4 : index }/' %t.mlir > %t.more.mlir
// RUN: not fovea-opt %t.more.mlir --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=MORE
//
// CHECK: scf.for
// CHECK:   tile.launch kernel "attention_backward"
// MORE: error: 'attn.online_backward' op is in a loop that cannot become a launch: a loop around its tiles does more than repeat them
func.func @repeated(%q: tensor<2x4x512x64xbf16>, %l: tensor<2x4x512xf32>) -> tensor<2x4x512x64xf32> {
  %c4 = arith.constant 4 : index
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.125)
      statistics(%l, %l : tensor<2x4x512xf32>, tensor<2x4x512xf32>)
      {schedule = #attn.schedule<tile = 32x32, order = linear, warps = 2, stages = 2, gradients = <parallel = [batch, key]>>}
      : tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>
        -> tensor<2x4x512x64xf32>, tensor<2x4x512x64xf32>, tensor<2x4x512x64xf32>
  return %dq : tensor<2x4x512x64xf32>
}
