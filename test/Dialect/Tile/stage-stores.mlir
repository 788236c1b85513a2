// RUN: fovea-opt %s --tile-stage-stores --split-input-file | FileCheck %s

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// A result goes out through the first ring with room for it whose uses are over.

// CHECK-LABEL: func @staged
// CHECK:       %[[SMALL:.*]] = tile.ring : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
// CHECK:       %[[RING:.*]] = tile.ring : !tile.ring<1 x !tile.shared<128x64xbf16, swizzle = 128>>
// CHECK:       tile.release %[[RING]]
// CHECK:       %[[F:.*]] = tile.fill
// CHECK-NEXT:  %[[T:.*]] = tile.to_shared %[[F]] reuses %[[RING]] : !tile.fragment<128x64xbf16>, {{.*}} -> !tile.shared<128x64xbf16, swizzle = 128>
// CHECK-NEXT:  tile.store_async %[[T]], %{{.*}}[%{{.*}}, %{{.*}}, %c0] dims [1, 2] : !tile.shared<128x64xbf16, swizzle = 128>
// CHECK-NEXT:  tile.wait_stores
func.func @staged(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o : !x) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %small = tile.ring : !tile.ring<1 x !tile.shared<64x64xbf16, swizzle = 128>>
    %ring = tile.ring : !tile.ring<1 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
  }
  return
}

// -----

// Some rows of a tile, too.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @some_rows
// CHECK:       scf.for
// CHECK:         %[[T:.*]] = tile.wait
// CHECK-NEXT:    tile.store_async %[[T]], %{{.*}}[%{{.*}}, %{{.*}}, %c0] dims [1, 2] valid(%{{.*}}) : !tile.shared<128x64xbf16, swizzle = 128>
// CHECK-NEXT:    tile.wait_stores
func.func @some_rows(%o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    scf.for %k = %c0 to %n step %c1 {
      %f = tile.fill %zero : !tile.fragment<128x64xbf16>
      tile.store %f, %O[%j, %i, %c0] dims [1, 2] valid(%k) : !tile.fragment<128x64xbf16>, !x
    }
  }
  return
}

// -----

// What stays: some rows of a memref of as many dimensions as a descriptor has, rows
// that are not whole for TMA, or begin at any column, a ring that is used later, a
// vector, also in a loop.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!w = memref<?x?x?x?x64xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>
!r = memref<?xf32, strided<[1], offset: ?>>

// CHECK-LABEL: func @kept
// CHECK-NOT:   tile.to_shared
// CHECK-COUNT-6: tile.store %
func.func @kept(%x: !x, %o: !x, %w: !w, %l: !r, %n: index) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o, %w, %l : !x, !w, !r) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x, %W: !w, %L: !r):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %zero = arith.constant 0.0 : bf16
    %lse = arith.constant 0.0 : f32
    %ring = tile.ring : !tile.ring<2 x !tile>
    %late = tile.ring : !tile.ring<2 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    %g = tile.fill %zero : !tile.fragment<256x72xbf16>
    %v = tile.fill %lse : !tile.fragment<128xf32>
    tile.store %f, %W[%c0, %c0, %j, %i, %c0] dims [3, 4] valid(%c9) : !tile.fragment<128x64xbf16>, !w
    tile.store %f, %O[%i, %c0, %j] dims [2, 1] : !tile.fragment<128x64xbf16>, !x
    tile.store %f, %O[%i, %c0, %j] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    tile.store %v, %L[%i] dims [0] : !tile.fragment<128xf32>, !r
    scf.for %k = %c0 to %n step %c1 {
      tile.store %v, %L[%k] dims [0] : !tile.fragment<128xf32>, !r
    }
    tile.store %g, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<256x72xbf16>, !x
  }
  return
}

// -----

// In a loop a result goes out through a ring of its own, which the next iteration
// may not write before TMA has read it.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @in_loop
// CHECK:       %[[RING:.*]] = tile.ring : !tile.ring<1 x !tile.shared<128x64xbf16, swizzle = 128>>
// CHECK:       %[[F:.*]] = tile.fill
// CHECK:       scf.for %[[K:[^ ]*]] = {{.*}} iter_args(%[[USE:.*]] = %c0
// CHECK:         %[[SLOT:.*]] = tile.acquire %[[RING]][%[[USE]]]
// CHECK-NEXT:    tile.write %[[F]] into %[[SLOT]] signals %[[RING]][%[[USE]]]
// CHECK-NEXT:    %[[FULL:.*]] = tile.wait %[[RING]][%[[USE]]]
// CHECK-NEXT:    tile.store_async %[[FULL]], %{{.*}}[%{{.*}}, %[[K]], %c0{{.*}}] dims [1, 2] :
// CHECK-NEXT:    tile.wait_stores
// CHECK-NEXT:    tile.release %[[RING]][%[[USE]]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[USE]]
// CHECK:         scf.yield %[[NEXT]]
func.func @in_loop(%o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    scf.for %k = %c0 to %n step %c1 {
      tile.store %f, %O[%j, %k, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    }
  }
  return
}

// -----

// What some iterations store takes no memory from what all of them do.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @in_branch
// CHECK:       %{{.*}} = tile.ring :
// CHECK-NOT:   %{{.*}} = tile.ring
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK-NEXT:      tile.store %
// CHECK:         tile.store_async
func.func @in_branch(%o: !x, %n: index, %some: i1) {
  tile.launch grid(%n, %n) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    scf.for %k = %c0 to %n step %c1 {
      scf.if %some {
        tile.store %f, %O[%i, %k, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
      }
      tile.store %f, %O[%j, %k, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    }
  }
  return
}

// -----

// Without memory for such a ring, parts of the result go through a smaller one,
// one after another.

!x = memref<?x?x256xf32, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func @in_parts
// CHECK:       %[[RING:.*]] = tile.ring : !tile.ring<1 x !tile.shared<256x128xf32, swizzle = 128>>
// CHECK:       scf.for %{{.*}} iter_args(%[[COUNT:.*]] = %c0
// CHECK:         %[[USE:.*]] = arith.muli %[[COUNT]], %c2
// CHECK:         tile.acquire %[[RING]][%[[USE]]]
// CHECK-NEXT:    tile.write %[[F:.*]] column 0 into %{{.*}} signals %[[RING]][%[[USE]]] : !tile.fragment<256x256xf32>
// CHECK-NEXT:    %[[FULL:.*]] = tile.wait %[[RING]][%[[USE]]]
// CHECK-NEXT:    tile.store_async %[[FULL]],
// CHECK-NEXT:    tile.wait_stores
// CHECK-NEXT:    tile.release %[[RING]][%[[USE]]]
// CHECK:         %[[USE1:.*]] = arith.addi %[[USE]], %c1
// CHECK:         %[[AT:.*]] = arith.addi %{{.*}}, %c128
// CHECK:         tile.acquire %[[RING]][%[[USE1]]]
// CHECK-NEXT:    tile.write %[[F]] column 128 into
// CHECK-NEXT:    %[[FULL:.*]] = tile.wait %[[RING]][%[[USE1]]]
// CHECK-NEXT:    tile.store_async %[[FULL]], %{{.*}}[%{{.*}}, %{{.*}}, %[[AT]]]
func.func @in_parts(%o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %f = tile.fill %zero : !tile.fragment<256x256xf32>
    scf.for %k = %c0 to %n step %c1 {
      tile.store %f, %O[%j, %k, %c0] dims [1, 2] : !tile.fragment<256x256xf32>, !x
    }
  }
  return
}

// -----

// Without memory for any part, it stays; also parts of which warps would not
// write whole rows.

!x = memref<?x?x256xf32, strided<[?, ?, 1], offset: ?>>
#split = #tile.layout<128x256, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0, 2:128d1]>

// CHECK-LABEL: func @too_large
// CHECK:       scf.for
// CHECK-NEXT:    tile.store %
// CHECK-LABEL: func @split_rows
// CHECK:       scf.for
// CHECK-NEXT:    tile.store %
func.func @too_large(%o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %others = tile.ring : !tile.ring<7 x !tile.shared<128x128xbf16, swizzle = 128>>
    %f = tile.fill %zero : !tile.fragment<256x256xf32>
    scf.for %k = %c0 to %n step %c1 {
      tile.store %f, %O[%j, %k, %c0] dims [1, 2] : !tile.fragment<256x256xf32>, !x
    }
  }
  return
}

func.func @split_rows(%o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 16 outs(%o : !x) {
  ^bb0(%i: index, %j: index, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %others = tile.ring : !tile.ring<4 x !tile.shared<128x128xbf16, swizzle = 128>>
    %f = tile.fill %zero : !tile.fragment<128x256xf32, #split>
    scf.for %k = %c0 to %n step %c1 {
      tile.store %f, %O[%j, %k, %c0] dims [1, 2] : !tile.fragment<128x256xf32, #split>, !x
    }
  }
  return
}

// -----

// Where queries have two slots, and only products read them, the whole result
// takes their place; not where something else reads them, nor where its rows lie in other
// rows' places.

!x = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>
!q = !tile.shared<192x128xbf16, swizzle = 128>
!k = !tile.shared<64x128xbf16, swizzle = 128>
#s = #tile.layout<192x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 12:16d0]>
#o = #tile.layout<192x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 12:16d0]>

// CHECK-LABEL: func @in_place
// CHECK:       %[[Q:.*]] = tile.ring : !tile.ring<2 x !tile.shared<192x128xbf16, swizzle = 128>>
// CHECK-NEXT:  %[[O:.*]] = tile.ring shares %[[Q]] : !tile.ring<2 x !tile.shared<192x128xbf16, swizzle = 128>>, !tile.ring<2 x
// CHECK:       %[[SLOT:.*]] = tile.acquire %[[O]][%[[USE:.*]]] :
// CHECK-NEXT:  tile.write %{{.*}} into %[[SLOT]] signals %[[O]][%[[USE]]] :
// CHECK-NEXT:  %[[FULL:.*]] = tile.wait %[[O]][%[[USE]]] :
// CHECK-NEXT:  tile.store_async %[[FULL]],
// CHECK-NEXT:  tile.wait_stores
// CHECK-NEXT:  tile.release %[[O]][%[[USE]]] :
// CHECK-LABEL: func @not_in_place
// CHECK-NOT:   shares
// CHECK-LABEL: func @other_rows
// CHECK-NOT:   shares
// CHECK-LABEL: func @rows_in_runs
// CHECK-NOT:   shares
func.func @in_place(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 12 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %queries = tile.ring : !tile.ring<2 x !q>
    %keys = tile.ring : !tile.ring<8 x !k>
    scf.for %i = %c0 to %n step %c1 {
      %slot = tile.acquire %queries[%i] : !tile.ring<2 x !q>
      tile.load_async %X[%b, %i, %c0] dims [1, 2] into %slot signals %queries[%i] : !x, !tile.ring<2 x !q>
      %q = tile.wait %queries[%i] : !tile.ring<2 x !q>
      %k = tile.wait %keys[%i] : !tile.ring<8 x !k>
      %s = tile.mma wgmma %q, %k transpose_b : !q, !k -> !tile.fragment<192x64xf32, #s>
      tile.release %keys[%i] : !tile.ring<8 x !k>
      tile.release %queries[%i] : !tile.ring<2 x !q>
      %f = tile.fill %zero : !tile.fragment<192x128xbf16, #o>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<192x128xbf16, #o>, !x
    }
  }
  return
}

func.func @not_in_place(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 12 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %queries = tile.ring : !tile.ring<2 x !q>
    %keys = tile.ring : !tile.ring<8 x !k>
    scf.for %i = %c0 to %n step %c1 {
      %slot = tile.acquire %queries[%i] : !tile.ring<2 x !q>
      tile.load_async %X[%b, %i, %c0] dims [1, 2] into %slot signals %queries[%i] : !x, !tile.ring<2 x !q>
      %q = tile.wait %queries[%i] : !tile.ring<2 x !q>
      %f = tile.from_shared %q : !q -> !tile.fragment<192x128xbf16, #o>
      tile.release %queries[%i] : !tile.ring<2 x !q>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<192x128xbf16, #o>, !x
    }
  }
  return
}

!y = memref<?x?x96xbf16, strided<[?, ?, 1], offset: ?>>
#y = #tile.layout<192x96, registers = [2:1d1, 2:8d0, 12:8d1], threads = [4:2d1, 8:1d0, 12:16d0]>

func.func @other_rows(%x: !x, %o: !y, %n: index) {
  tile.launch grid(%n) warps 12 ins(%x : !x) outs(%o : !y) {
  ^bb0(%b: index, %X: !x, %O: !y):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %queries = tile.ring : !tile.ring<2 x !q>
    %keys = tile.ring : !tile.ring<8 x !k>
    scf.for %i = %c0 to %n step %c1 {
      %slot = tile.acquire %queries[%i] : !tile.ring<2 x !q>
      tile.load_async %X[%b, %i, %c0] dims [1, 2] into %slot signals %queries[%i] : !x, !tile.ring<2 x !q>
      %q = tile.wait %queries[%i] : !tile.ring<2 x !q>
      %k = tile.wait %keys[%i] : !tile.ring<8 x !k>
      %s = tile.mma wgmma %q, %k transpose_b : !q, !k -> !tile.fragment<192x64xf32, #s>
      tile.release %keys[%i] : !tile.ring<8 x !k>
      tile.release %queries[%i] : !tile.ring<2 x !q>
      %f = tile.fill %zero : !tile.fragment<192x96xbf16, #y>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<192x96xbf16, #y>, !y
    }
  }
  return
}

!r = !tile.shared<192x128xbf16, swizzle = 128, runs = 64>

func.func @rows_in_runs(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n) warps 12 ins(%x : !x) outs(%o : !x) {
  ^bb0(%b: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %queries = tile.ring : !tile.ring<2 x !r>
    %keys = tile.ring : !tile.ring<8 x !k>
    scf.for %i = %c0 to %n step %c1 {
      %slot = tile.acquire %queries[%i] : !tile.ring<2 x !r>
      tile.load_async %X dims [1, 2] runs 64 {
      ^bb0(%run: index):
        tile.yield %b, %run : index, index
      } into %slot signals %queries[%i] : !x, !tile.ring<2 x !r>
      %q = tile.wait %queries[%i] : !tile.ring<2 x !r>
      %k = tile.wait %keys[%i] : !tile.ring<8 x !k>
      %s = tile.mma wgmma %q, %k transpose_b : !r, !k -> !tile.fragment<192x64xf32, #s>
      tile.release %keys[%i] : !tile.ring<8 x !k>
      tile.release %queries[%i] : !tile.ring<2 x !r>
      %f = tile.fill %zero : !tile.fragment<192x128xbf16, #o>
      tile.store %f, %O[%b, %i, %c0] dims [1, 2] : !tile.fragment<192x128xbf16, #o>, !x
    }
  }
  return
}

// -----

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func @used_later
// CHECK:       tile.store %
// CHECK:       tile.acquire
func.func @used_later(%x: !x, %o: !x, %n: index) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o : !x) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %ring = tile.ring : !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
  }
  return
}

// -----

!o = memref<?x128xf32, strided<[?, 1], offset: ?>>

// Additions in loops go through the slot of a ring, which is free when TMA has
// read it; others through memory of their own. A row of no whole panels stays.
// CHECK-LABEL: func @adds
// CHECK:       %[[RING:.*]] = tile.ring : !tile.ring<1 x !tile.shared<64x128xf32, swizzle = 128>>
// CHECK:       scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (index)
// CHECK:         scf.for {{.*}} iter_args(%[[U:.*]] = %[[N]]) -> (index)
// CHECK:           %[[F:.*]] = tile.fill
// CHECK-NEXT:      %[[SLOT:.*]] = tile.acquire %[[RING]][%[[U]]]
// CHECK-NEXT:      tile.write %[[F]] into %[[SLOT]] signals %[[RING]][%[[U]]] : !tile.fragment<64x128xf32>
// CHECK-NEXT:      %[[T:.*]] = tile.wait %[[RING]][%[[U]]]
// CHECK-NEXT:      tile.store_async add %[[T]], %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1]
// CHECK-NEXT:      tile.wait_stores
// CHECK-NEXT:      tile.release %[[RING]][%[[U]]]
// CHECK:           tile.store add %{{.*}} : !tile.fragment<64x12xf32>
// CHECK:       %[[O:.*]] = tile.to_shared %{{.*}} : !tile.fragment<64x128xf32>
// CHECK-NEXT:  tile.store_async add %[[O]]
// CHECK-NEXT:  tile.wait_stores
func.func @adds(%m: memref<?x128xf32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 8 outs(%m : memref<?x128xf32>) {
  ^bb0(%b: index, %O: !o):
    scf.for %h = %c0 to %n step %c1 {
      scf.for %i = %c0 to %n step %c64 {
        %f = tile.fill %x : !tile.fragment<64x128xf32>
        tile.store add %f, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
        %g = tile.fill %x : !tile.fragment<64x12xf32>
        tile.store add %g, %O[%i, %c0] dims [0, 1] : !tile.fragment<64x12xf32>, !o
      }
    }
    %f = tile.fill %x : !tile.fragment<64x128xf32>
    tile.store add %f, %O[%c0, %c0] dims [0, 1] : !tile.fragment<64x128xf32>, !o
  }
  return
}

// -----

// What registers have is stored while the stores read shared memory; a second
// result that may go out through the same slot waits.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!row = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func @rows_meanwhile
// CHECK:       tile.store_async
// CHECK-NEXT:  %[[ROWS:.*]] = tile.map
// CHECK:       tile.store %[[ROWS]], %{{.*}} : !tile.fragment<128xf32>
// CHECK-NEXT:  tile.wait_stores
// CHECK-NEXT:  tile.to_shared
// CHECK-NEXT:  tile.store_async
// CHECK-NEXT:  tile.wait_stores
// CHECK-NEXT:  tile.acquire
// CHECK-NOT:   tile.wait_stores
// CHECK:       tile.store %[[ROWS]], %{{.*}} : !tile.fragment<128xf32>
// CHECK-NEXT:  }
func.func @rows_meanwhile(%x: !x, %o: !x, %l: !row, %n: index) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o, %l : !x, !row) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x, %L: !row):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %one = arith.constant 1.0 : f32
    %ring = tile.ring : !tile.ring<1 x !tile>
    %other = tile.ring : !tile.ring<1 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    %sums = tile.fill %one : !tile.fragment<128xf32>
    tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    %rows = tile.map ins(%sums : !tile.fragment<128xf32>) {
    ^bb1(%sum: f32, %row: index):
      %log = math.log %sum : f32
      tile.yield %log : f32
    } -> !tile.fragment<128xf32>
    tile.store %rows, %L[%j, %i] dims [1] : !tile.fragment<128xf32>, !row
    tile.store %f, %O[%i, %j, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    %taken = tile.acquire %other[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %taken signals %other[%c0] : !x, !tile.ring<1 x !tile>
    %u = tile.wait %other[%c0] : !tile.ring<1 x !tile>
    tile.release %other[%c0] : !tile.ring<1 x !tile>
    tile.store %rows, %L[%i, %j] dims [1] : !tile.fragment<128xf32>, !row
  }
  return
}

// -----

// Of two branches of which a program runs one both store through the same ring, each
// with its own wait.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func @either
// CHECK:       %[[RING:.*]] = tile.ring
// CHECK:       scf.if
// CHECK-NEXT:    tile.to_shared %{{.*}} reuses %[[RING]]
// CHECK-NEXT:    tile.store_async
// CHECK-NEXT:    tile.wait_stores
// CHECK-NEXT:  } else {
// CHECK-NEXT:    tile.to_shared %{{.*}} reuses %[[RING]]
// CHECK-NEXT:    tile.store_async
// CHECK-NEXT:    tile.wait_stores
// CHECK-NEXT:  }
// CHECK-NEXT:  }
func.func @either(%x: !x, %o: !x, %p: !x, %n: index, %which: i1) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o, %p : !x, !x) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x, %P: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %ring = tile.ring : !tile.ring<1 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    scf.if %which {
      tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    } else {
      tile.store %f, %P[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    }
  }
  return
}

// -----

// A ring that is read behind the branch is not free in it.

!x = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func @read_behind
// CHECK:       scf.if
// CHECK-NEXT:    tile.store %
func.func @read_behind(%x: !x, %o: !x, %n: index, %which: i1) {
  tile.launch grid(%n, %n) warps 8 ins(%x : !x) outs(%o : !x) {
  ^bb0(%i: index, %j: index, %X: !x, %O: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %ring = tile.ring : !tile.ring<1 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%j, %i, %c0] dims [1, 2] into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    scf.if %which {
      tile.store %f, %O[%j, %i, %c0] dims [1, 2] : !tile.fragment<128x64xbf16>, !x
    }
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
  }
  return
}

// -----

// Rows that run along two dimensions do so from shared memory, too: from that of a ring
// whose uses are over, from a ring's own in a loop, and where they are added.

!x = memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!y = memref<4x?x64xf32, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<128x64xbf16, swizzle = 128>

// CHECK-LABEL: func @inner
// CHECK:       scf.for
// CHECK:         tile.store_async %{{.*}}, %{{.*}}[%c0, %{{.*}}, %c0] dims [1, 0, 2] inner 4 valid(%{{.*}}) : !tile.shared<128x64xbf16, swizzle = 128>
// CHECK:       tile.to_shared %{{.*}} reuses
// CHECK-NEXT:  tile.store_async %{{.*}}, %{{.*}}[%c0, %{{.*}}, %c0] dims [1, 0, 2] inner 2 : !tile.shared<128x64xbf16, swizzle = 128>
// CHECK:       tile.store_async add %{{.*}}, %{{.*}}[%c0, %{{.*}}, %c0] dims [1, 0, 2] inner 4 valid(%{{.*}}) : !tile.shared<128x64xf32, swizzle = 128>
// CHECK-NOT:   tile.store %
func.func @inner(%x: !x, %o: !x, %p: !y, %n: index) {
  tile.launch grid(%n) warps 8 ins(%x : !x) outs(%o, %p : !x, !y) {
  ^bb0(%i: index, %X: !x, %O: !x, %P: !y):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %wide = arith.constant 0.0 : f32
    %ring = tile.ring : !tile.ring<1 x !tile>
    %slot = tile.acquire %ring[%c0] : !tile.ring<1 x !tile>
    tile.load_async %X[%c0, %i, %c0] dims [1, 0, 2] inner 4 into %slot signals %ring[%c0] : !x, !tile.ring<1 x !tile>
    %t = tile.wait %ring[%c0] : !tile.ring<1 x !tile>
    tile.release %ring[%c0] : !tile.ring<1 x !tile>
    %f = tile.fill %zero : !tile.fragment<128x64xbf16>
    %s = tile.fill %wide : !tile.fragment<128x64xf32>
    scf.for %k = %c0 to %n step %c1 {
      tile.store %f, %O[%c0, %k, %c0] dims [1, 0, 2] inner 4 valid(%n) : !tile.fragment<128x64xbf16>, !x
    }
    tile.store %f, %O[%c0, %i, %c0] dims [1, 0, 2] inner 2 : !tile.fragment<128x64xbf16>, !x
    tile.store add %s, %P[%c0, %i, %c0] dims [1, 0, 2] inner 4 valid(%n) : !tile.fragment<128x64xf32>, !y
  }
  return
}
