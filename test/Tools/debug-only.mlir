// --debug-only=PASS says how a pass's decision came about, in every build. The
// flag takes several passes, --debug all; nothing is printed without them, or by
// passes that are not named. Code that is in the cache is compiled again.

// RUN: fovea-opt %s --attn-fuse --attn-select-schedule -o /dev/null 2>&1 | count 0
// RUN: fovea-opt %s --attn-fuse --attn-select-schedule --debug-only=attn-fuse,attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: fovea-opt %s --attn-fuse --attn-select-schedule --debug-only=attn-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE --implicit-check-not=attn-select-schedule
// RUN: fovea-opt %s --attn-fuse --attn-select-schedule --debug -o /dev/null 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: fovea-compile %s --target=sm_90a --emit=ptx --debug-only=attn-select-schedule,tile-assign-layouts,tile-multibuffer,tile-stage-stores,tile-specialize-warps,tile-schedule,tile-pack-operands -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: fovea-compile %s --target=sm_80 --emit=ptx --debug-only=tile-prefetch -o /dev/null 2>&1 | FileCheck %s --check-prefix=AMPERE
// RUN: fovea-compile %s --arch=avx2 --emit=llvm --debug-only=attn-tile,mask-analysis,attn-pack-queries,place-buffers,convert-linalg-to-vector -o /dev/null 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: fovea-run %s --random=1 --grad --recompute=always
// RUN: fovea-run %s --random=1 --grad --recompute=always --debug-only=attn-insert-recomputation,attn-select-schedule 2>&1 | FileCheck %s --check-prefix=GRADIENT
// RUN: fovea-compile %examples/norm_dropout_add.mlir --emit=llvm --debug-only=linalg-fuse-rows -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: fovea-opt %s --attn-differentiate --attn-partition-gradient --debug-only=attn-partition-gradient -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAVED

// HOST: [attn-fuse] attn.softmax at loc("{{.*}}debug-only.mlir":[[#]]:8) looks like a softmax
// HOST-NEXT: [attn-fuse]   operand 0 of attn.values at loc({{.*}}): probabilities times values
// HOST: [attn-select-schedule] on a host, host: 1x2x256x64 queries, 256 keys, {{[0-9]+}}% of the scores kept
// HOST: [attn-select-schedule]   #attn.schedule<tile = 16x16, order = longest_first>: [[#]].[[#]] us, the best so far
// HOST: [attn-select-schedule]   #attn.schedule<tile = 48x64, order = longest_first>: [[#]].[[#]] us{{(, the best so far)?$}}
// HOST: [attn-select-schedule] attention at loc({{.*}}) gets #attn.schedule<tile = {{[0-9]+x[0-9]+}}, order = longest_first>

// ONE: [attn-fuse] attn.softmax

// GPU: [attn-select-schedule] on a GPU, sm_90a: 1x2x256x64 queries, 256 keys
// GPU: [attn-select-schedule]   #attn.schedule<{{.*}}> does not fit: [[#]] bytes of shared memory, [[#]] registers
// GPU: [attn-select-schedule]   #attn.schedule<{{.*}}>: [[#]].[[#]] us, the best so far
// GPU: [attn-select-schedule] attention at loc({{.*}}) gets #attn.schedule<
// GPU: [tile-assign-layouts] product {{.*}} at loc({{.*}}): wgmma
// GPU: [tile-multibuffer] launch at loc({{.*}}): 2 stages, rings from 1 on
// GPU-NEXT: [tile-multibuffer]   load of !tile.shared<{{.*}}> at loc({{.*}}): a ring
// GPU: [tile-stage-stores] store of {{.*}}: through the slots of a ring, by TMA
// GPU: [tile-specialize-warps] launch at loc({{.*}}): [[#]] warps compute
// GPU-NEXT: [tile-specialize-warps]   role load: one thread of 4 warps
// GPU: [tile-schedule] loop at loc({{.*}}): 2 asynchronous products, 1 need another of the same step
// GPU-NEXT: [tile-schedule]   two stages: [[#]] ops of a step run beside [[#]] of the step before
// GPU: [tile-pack-operands] operand {{[0-9]+}}, memref<{{.*}}>: copied where a descriptor does not suit its strides

// AMPERE: [tile-prefetch] copy at loc({{.*}}): is started 1 iterations earlier

// ROWS: [linalg-fuse-rows] linalg.generic at loc({{.*}}): the end of a kernel of {{[0-9]+}} ops, {{[12]}} dimensions of rows
// TILES: [mask-analysis] mask at loc({{.*}}) along keys: from {{.*}}, all between
// TILES: [attn-tile]   all: the mask bounds the loop exactly
// TILES: [attn-pack-queries] attention at loc({{.*}}): [[#]] rows in vectors of 8
// TILES: [place-buffers] memref<{{.*}}> at loc({{.*}}): {{on the stack, which has [0-9]+ of [0-9]+ bytes|in the heap}}
// TILES: [convert-linalg-to-vector] op at loc({{.*}}), loop 0: {{costs [0-9]+|cannot be cut}}

// GRADIENT: [attn-insert-recomputation] the backward pass at loc({{.*}}): probabilities are recomputed, because the policy says so
// GRADIENT: [attn-select-schedule] 192 queries: [[#]] bytes are read again and again, of a near memory of [[#]]

// SAVED: [attn-partition-gradient] @attend: saved, tensor<1x2x256x256xf32> of attn.softmax at loc(

!t = tensor<1x2x256x64xf16>
!s = tensor<1x2x256x256xf32>
func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : !s
  %p = attn.softmax %m : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}
