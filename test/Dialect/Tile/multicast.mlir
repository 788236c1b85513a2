// RUN: fovea-opt %s --tile-multicast --split-input-file | FileCheck %s
// RUN: fovea-opt %s --tile-multicast --split-input-file --debug-only=tile-multicast -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

!x = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x128xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>

// Both blocks of a cluster copy the same tiles of one tensor, in a loop that runs
// equally often; what they copy once, such as queries, is their own.

// CHECK-LABEL: func @keys
// CHECK:       %[[KEYS:.*]] = tile.ring cluster 2 :
// CHECK-NEXT:  %[[QUERIES:.*]] = tile.ring :
// CHECK:       tile.acquire %[[QUERIES]]
// CHECK:       tile.acquire %[[KEYS]]
// LOG:         is filled by the cluster
// LOG-NEXT:    is filled differently in each of them
func.func @keys(%x: memref<?x128xbf16>, %n: index, %steps: index) {
  tile.launch grid(%n) cluster 2 warps 4 outs(%x : memref<?x128xbf16>) {
  ^bb0(%b: index, %X: !x):
    %keys = tile.ring : !r
    %queries = tile.ring : !r
    tile.roles {
      tile.role "load" warps 4 single {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %rank = tile.cluster_rank
        %row = arith.muli %rank, %c64 : index
        %q = tile.acquire %queries[%c0] : !r
        tile.load_async %X[%row, %c0] dims [0, 1] into %q signals %queries[%c0] : !x, !r
        // The row of the queries is carried beside that of the keys.
        %last:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%at = %c0, %own = %row) -> (index, index) {
          %some = arith.cmpi sgt, %i, %c1 : index
          %next = scf.if %some -> (index) {
            %k = tile.acquire %keys[%i] : !r
            tile.load_async %X[%at, %c0] dims [0, 1] into %k signals %keys[%i] : !x, !r
            %further = arith.addi %at, %c64 : index
            scf.yield %further : index
          } else {
            scf.yield %at : index
          }
          %more = arith.addi %own, %c1 : index
          scf.yield %next, %more : index, index
        }
      }
    }
  }
  return
}

// -----

!x = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x128xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>

// Left alone: what blocks copy differently often, at different uses, or from
// different rows, also where a loop or a branch makes the difference.

// CHECK-LABEL: func @different
// CHECK-NOT:   cluster 2 :
// CHECK:       return
// LOG-COUNT-4: is filled differently in each of them
func.func @different(%x: memref<?x128xbf16>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 outs(%x : memref<?x128xbf16>) {
  ^bb0(%b: index, %X: !x):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %often = tile.ring : !r
    %uses = tile.ring : !r
    %carried = tile.ring : !r
    %branch = tile.ring : !r
    tile.roles {
      tile.role "load" warps 4 single {
        %rank = tile.cluster_rank
        scf.for %i = %c0 to %rank step %c1 {
          %k = tile.acquire %often[%c0] : !r
          tile.load_async %X[%c0, %c0] dims [0, 1] into %k signals %often[%c0] : !x, !r
        }
        %u = tile.acquire %uses[%rank] : !r
        tile.load_async %X[%c0, %c0] dims [0, 1] into %u signals %uses[%rank] : !x, !r
        %row = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (index) {
          %k = tile.acquire %carried[%i] : !r
          tile.load_async %X[%at, %c0] dims [0, 1] into %k signals %carried[%i] : !x, !r
          %next = arith.addi %at, %rank : index
          scf.yield %next : index
        }
        %is = arith.cmpi eq, %row, %c0 : index
        scf.if %is {
          %k = tile.acquire %branch[%c0] : !r
          tile.load_async %X[%c0, %c0] dims [0, 1] into %k signals %branch[%c0] : !x, !r
        }
      }
    }
  }
  return
}

// -----

!x = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!t = !tile.shared<64x128xbf16, swizzle = 128>
!r = !tile.ring<2 x !t>
!narrow = !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>

// Left alone: slots of groups or of another ring, one panel, rows that are left
// out, and what threads write.

// CHECK-LABEL: func @unfit
// CHECK-NOT:   cluster 2 :
// CHECK:       return
// LOG:         has slots of groups, or another ring's
// LOG-NEXT:    shares its slots
// LOG-NEXT:    has slots of groups, or another ring's
// LOG-NEXT:    has a number of panels that they do not divide
// LOG-NEXT:    is filled with parts of tiles
// LOG-NEXT:    is not filled by copies
// LOG-NOT:     ring
func.func @unfit(%x: memref<?x128xbf16>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 outs(%x : memref<?x128xbf16>) {
  ^bb0(%b: index, %X: !x):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<64x128xbf16>
    %groups = tile.ring groups 2 : !r
    %base = tile.ring : !r
    %shares = tile.ring shares %base : !r, !r
    %panel = tile.ring : !narrow
    %rows = tile.ring : !r
    %written = tile.ring : !r
    %p = tile.acquire %panel[%c0] : !narrow
    tile.load_async %X[%c0, %c0] dims [0, 1] into %p signals %panel[%c0] : !x, !narrow
    %s = tile.acquire %rows[%c0] : !r
    tile.load_async %X[%c0, %c0] dims [0, 1] rows(%c0, %n) into %s signals %rows[%c0] : !x, !r
    %w = tile.acquire %written[%c0] : !r
    tile.write %f into %w signals %written[%c0] : !tile.fragment<64x128xbf16>, !r
  }
  return
}

// -----

!x = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!r = !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>

// Left alone: a launch without clusters.

// CHECK-LABEL: func @alone
// CHECK:       tile.ring :
func.func @alone(%x: memref<?x128xbf16>, %n: index) {
  tile.launch grid(%n) warps 4 outs(%x : memref<?x128xbf16>) {
  ^bb0(%b: index, %X: !x):
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !r
    %s = tile.acquire %ring[%c0] : !r
    tile.load_async %X[%c0, %c0] dims [0, 1] into %s signals %ring[%c0] : !x, !r
  }
  return
}
