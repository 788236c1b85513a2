// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=tiled' | FileCheck %s --check-prefix=TILED
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=tile' | FileCheck %s --check-prefix=SM90
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_80 level=tile' | FileCheck %s --check-prefix=SM80
// RUN: fovea-opt %s --fovea-gpu-pipeline='target=sm_90a level=gpu' | FileCheck %s --check-prefix=GPU

// Attention that fits becomes a program of thread blocks: with roles, rings and
// asynchronous products on sm_90a, on sm_80 with rings whose copies start before
// the loop and an iteration ahead. What makes its queries is a
// kernel of its own.

// TILED-LABEL: func.func @attend
// TILED:       scf.forall
// TILED:         attn.online_attention
// SM90-LABEL: func.func @attend
// SM90:       tile.launch kernel "attention" {{.*}} warps {{[0-9]+}} {{.*}}stages {{[0-9]}}{{ }}
// SM90-COUNT-3: tile.ring
// SM90:         tile.role "load"
// SM90:           tile.load_async
// SM90:         tile.role "compute"
// SM90:           tile.mma_async wgmma
// SM80-LABEL: func.func @attend
// SM80:       linalg
// SM80:       tile.launch kernel "attention"
// SM80-COUNT-2: tile.ring : !tile.ring<2 x
// SM80:         tile.ring : !tile.ring<1 x
// SM80-NOT:     tile.role
// SM80-COUNT-3: tile.load_async
// SM80:         scf.for
// SM80-COUNT-2:   tile.load_async
// SM80:           tile.mma mma_sync
// GPU-LABEL: func.func @attend
// GPU:       tile.tensor_map
// GPU:       gpu.launch_func{{ +}}@kernels::@attend
func.func @attend(%x: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %q = attn.elementwise %x {
  ^bb0(%a: f16):
    %r = arith.mulf %a, %a : f16
    attn.yield %r : f16
  } : (tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16>
  %s = attn.scores %q, %k : tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x4x?x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x4x?x?xf32>
  %p = attn.softmax %m : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %o = attn.values %p, %v : tensor<2x4x?x?xf32>, tensor<2x2x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// What does not fit is written out.

// SM90-LABEL: func.func @odd
// SM90-NOT:   tile.
// SM90:       return
func.func @odd(%q: tensor<1x2x?x20xf16>) -> tensor<1x2x?x20xf16> {
  %o = attn.attention %q, %q, %q scale(0.25) : tensor<1x2x?x20xf16>, tensor<1x2x?x20xf16>, tensor<1x2x?x20xf16> -> tensor<1x2x?x20xf16>
  return %o : tensor<1x2x?x20xf16>
}
