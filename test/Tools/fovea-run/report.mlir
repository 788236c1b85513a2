// What is computed on the tiles of attention is part of its kernel in the report:
// what makes queries and keys, what reads the output. A product that reads whole
// rows is not.

// RUN: fovea-run %s --random=1 --dims=64 --report | FileCheck %s
// CHECK: machine: {{[0-9]+}} threads, {{.*}} GB/s and {{.*}} GFLOP/s (f32; f64 {{.*}}), measured
// CHECK:      kernels 7 2 2 2{{$}}
// CHECK-NEXT: GFLOP
// x, k, v, r and the product once, what it reads twice, each of 64 KiB; 16 KiB of w.
// CHECK-NEXT: MB moved {{.*}} 0.4751{{$}}

func.func @attend(%x: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>, %r: tensor<1x4x?x64xf32>, %w: tensor<64x64xf32>) -> tensor<1x4x?x64xf32> {
  %q = attn.elementwise %x {
  ^bb0(%a: f32):
    %y = arith.mulf %a, %a : f32
    attn.yield %y : f32
  } : (tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32>
  %s = attn.scores %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32> -> tensor<1x4x?x?xf32>
  %u = attn.scale %s by 0.125 : tensor<1x4x?x?xf32>
  %p = attn.softmax %u : tensor<1x4x?x?xf32> -> tensor<1x4x?x?xf32>
  %o = attn.values %p, %v : tensor<1x4x?x?xf32>, tensor<1x4x?x64xf32> -> tensor<1x4x?x64xf32>
  %z = attn.residual_add %o, %r : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c2 : tensor<1x4x?x64xf32>
  %e = tensor.empty(%n) : tensor<1x4x?x64xf32>
  %f = arith.constant 0.0 : f32
  %i = linalg.fill ins(%f : f32) outs(%e : tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, h, n, e, d) -> (b, h, n, d)>, affine_map<(b, h, n, e, d) -> (d, e)>, affine_map<(b, h, n, e, d) -> (b, h, n, e)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%z, %w : tensor<1x4x?x64xf32>, tensor<64x64xf32>) outs(%i : tensor<1x4x?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.mulf %a, %b : f32
    %g = arith.addf %c, %t : f32
    linalg.yield %g : f32
  } -> tensor<1x4x?x64xf32>
  return %m : tensor<1x4x?x64xf32>
}
