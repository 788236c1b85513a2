// RUN: fovea-run %s --target=sm_90a --simulate --random=1 --grad --dims=20 --check \
// RUN:   --recompute=always | FileCheck %s
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=2 --random=1 --grad \
// RUN:   --dims=150 --check | FileCheck %s

// The product of queries and keys is not computed, and that of the gradients of
// scores with keys is the only one that could be of a later step: two stages
// would take shared memory for what both write, of which there is not enough.
// Several steps write it in turn.
// CHECK: result 4 (gradient of %t): f32 {{20|150}}x12
// CHECK: check: result 0: max error {{.*}} (bound 0.004){{$}}
// CHECK: check: result 1: max error 0, relative 0 (bound 0.004){{$}}
// CHECK: check: result 2: max error 0, relative 0 (bound 0.004){{$}}
// CHECK-COUNT-2: check: result {{[34]}}: max error {{.*}} (bound 0.004){{$}}
func.func @f(%q: tensor<1x6x?x64xf16>, %k: tensor<1x2x12x64xf16>,
             %v: tensor<1x2x12x48xf16>, %t: tensor<?x12xf32>)
    -> tensor<1x6x?x48xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %t[%i, %j] : tensor<?x12xf32>
    %y = math.absf %x : f32
    attn.yield %y : f32
  } : tensor<1x6x?x64xf16>, tensor<1x2x12x64xf16>, tensor<1x2x12x48xf16>
      -> tensor<1x6x?x48xf16>
  return %o : tensor<1x6x?x48xf16>
}
