// RUN: fovea-opt %s --tile-prefetch-tables | FileCheck %s

!cache = memref<?x16x64xbf16, strided<[?, ?, 1], offset: ?>>
!table = memref<?x?xi32, strided<[?, 1], offset: ?>>
!heads = memref<?x?x?xi32, strided<[?, ?, 1], offset: ?>>
!n = memref<?xi32, strided<[1], offset: ?>>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2 x !k>

// A row whose number a role reads is asked for right behind it, in front of the length;
// copies of keys and values of one table ask once. The other role asks for nothing.
// CHECK-LABEL: func.func @pages(
// CHECK:         ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: memref<?x16x64xbf16, {{[^>]*>>}}, %[[TABLE:[^:]*]]: memref<?x?xi32
// CHECK-NOT:     tile.prefetch
// CHECK:         tile.role "load" warps 4 {
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      %[[ROW:.*]] = arith.index_cast
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[ROW]]] : memref<?x?xi32, strided<[?, 1], offset: ?>>
// CHECK-NEXT:      memref.load %{{.*}}[%[[ROW]]]
// CHECK-NOT:     tile.prefetch
func.func @pages(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %sequences: memref<?xi32>, %lengths: memref<?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table, %sequences, %lengths : memref<?x16x64xbf16>, memref<?x?xi32>, memref<?xi32>, memref<?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %S: !n, %L: !n, %O: memref<?xf32, strided<[1], offset: ?>>):
    %ks = tile.ring : !ring
    %vs = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %sequence = memref.load %S[%b] : !n
        %row = arith.index_cast %sequence : i32 to index
        %length = memref.load %L[%row] : !n
        %end = arith.index_cast %length : i32 to index
        scf.for %j = %c0 to %end step %c64 {
          %k = tile.acquire %ks[%j] : !ring
          tile.load_async %C dims [1, 2] runs 16 {
          ^bb0(%r: index):
            %key = arith.addi %j, %r : index
            %i = arith.divui %key, %c16 : index
            %p = memref.load %T[%row, %i] : !table
            %page = arith.index_cast %p : i32 to index
            tile.yield %page, %c0 : index, index
          } into %k signals %ks[%j] : !cache, !ring
          %v = tile.acquire %vs[%j] : !ring
          tile.load_async %C dims [1, 2] runs 16 {
          ^bb0(%r: index):
            %key = arith.addi %j, %r : index
            %i = arith.divui %key, %c16 : index
            %p = memref.load %T[%row, %i] : !table
            %page = arith.index_cast %p : i32 to index
            tile.yield %page, %c0 : index, index
          } into %v signals %vs[%j] : !cache, !ring
        }
      }
      tile.role "compute" warps 4 {
        scf.for %j = %c0 to %n step %c64 {
          %k = tile.wait %ks[%j] : !ring
          %v = tile.wait %vs[%j] : !ring
        }
      }
    }
  }
  return
}

// A row whose number is known outside of the role is asked for where the role starts.
// Other rows, and the same one of another table, are asked for, too.
// CHECK-LABEL: func.func @rows(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x16x64xbf16, {{[^>]*>>}}, %[[KEYS:[^:]*]]: memref<?x?xi32, {{[^>]*>>}}, %[[VALUES:[^:]*]]: memref<?x?xi32
// CHECK:         %[[NEXT:.*]] = arith.addi %[[BLOCK]], %c1
// CHECK-NOT:     tile.prefetch
// CHECK:         tile.role "load" warps 4 {
// CHECK-NEXT:      tile.prefetch %[[KEYS]][%[[BLOCK]]]
// CHECK-NEXT:      tile.prefetch %[[VALUES]][%[[BLOCK]]]
// CHECK-NEXT:      tile.prefetch %[[VALUES]][%[[NEXT]]]
// CHECK-NEXT:      tile.acquire
// CHECK-NOT:     tile.prefetch
func.func @rows(%cache: memref<?x16x64xbf16>, %keys: memref<?x?xi32>, %values: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%cache, %keys, %values : memref<?x16x64xbf16>, memref<?x?xi32>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %K: !table, %V: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    %next = arith.addi %b, %c1 : index
    %ring = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 {
        %q = tile.acquire %ring[%c0] : !ring
        scf.for %j = %c1 to %n step %c1 {
          %slot = tile.acquire %ring[%j] : !ring
          tile.load_async %C dims [1, 2] runs 16 {
          ^bb0(%r: index):
            %i = arith.divui %r, %c16 : index
            %p = memref.load %K[%b, %i] : !table
            %s = memref.load %V[%b, %i] : !table
            %t = memref.load %V[%next, %i] : !table
            %u = arith.addi %p, %s : i32
            %v = arith.addi %u, %t : i32
            %page = arith.index_cast %v : i32 to index
            tile.yield %page, %c0 : index, index
          } into %slot signals %ring[%j] : !cache, !ring
        }
      }
      tile.role "compute" warps 4 {
      }
    }
  }
  return
}

// A launch without roles asks where it starts. What asks for memory does not write it.
// CHECK-LABEL: func.func @loads(
// CHECK:         tile.launch
// CHECK-NEXT:    ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x16x64xbf16, {{[^>]*>>}}, %[[TABLE:[^:]*]]: memref<?x?xi32
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[BLOCK]]]
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[NEXT]]]
// CHECK-NOT:     tile.prefetch
func.func @loads(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    %next = arith.addi %b, %c1 : index
    tile.prefetch %T[%next] : !table
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %key = arith.addi %j, %r : index
        %i = arith.divui %key, %c16 : index
        %p = memref.load %T[%b, %i] : !table
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
  }
  return
}

// The rows of an item are asked for in each item, where all numbers of them are known, not
// in each step.
// CHECK-LABEL: func.func @items(
// CHECK:         ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x16x64xbf16, {{[^>]*>>}}, %[[TABLE:[^:]*]]: memref<?x?x?xi32
// CHECK-NOT:     tile.prefetch
// CHECK:         scf.for %[[ITEM:[^ ]*]] =
// CHECK-NEXT:      %[[HEAD:.*]] = arith.remui %[[ITEM]]
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[BLOCK]], %[[HEAD]]]
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[HEAD]], %[[BLOCK]]]
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      scf.for
// CHECK-NOT:     tile.prefetch
func.func @items(%cache: memref<?x16x64xbf16>, %table: memref<?x?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !heads, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %item = %b to %n step %c16 {
      %head = arith.remui %item, %c8 : index
      %end = arith.addi %item, %c64 : index
      scf.for %j = %c0 to %end step %c64 {
        %k = tile.load %C dims [1, 2] runs 16 {
        ^bb0(%r: index):
          %key = arith.addi %j, %r : index
          %i = arith.divui %key, %c16 : index
          %p = memref.load %T[%b, %head, %i] : !heads
          %s = memref.load %T[%head, %b, %i] : !heads
          %v = arith.addi %p, %s : i32
          %page = arith.index_cast %v : i32 to index
          tile.yield %page, %c0 : index, index
        } : !cache -> !k
      }
    }
  }
  return
}

// A loop may be what comes next.
// CHECK-LABEL: func.func @loop_next(
// CHECK:         tile.launch
// CHECK-NEXT:    ^bb0(%[[BLOCK:[^:]*]]: index, %{{[^:]*}}: memref<?x16x64xbf16, {{[^>]*>>}}, %[[TABLE:[^:]*]]: memref<?x?xi32
// CHECK-NEXT:      tile.prefetch %[[TABLE]][%[[BLOCK]]]
// CHECK-NEXT:      scf.for
// CHECK-NOT:     tile.prefetch
func.func @loop_next(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %key = arith.addi %j, %r : index
        %i = arith.divui %key, %c16 : index
        %p = memref.load %T[%b, %i] : !table
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
  }
  return
}

// A table that the launch writes.
// CHECK-LABEL: func.func @written(
// CHECK-NOT:     tile.prefetch
func.func @written(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %none = arith.constant -1 : i32
  tile.launch grid(%n) warps 4 ins(%cache : memref<?x16x64xbf16>) outs(%table : memref<?x?xi32>) {
  ^bb0(%b: index, %C: !cache, %T: !table):
    %c64 = arith.constant 64 : index
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %key = arith.addi %j, %r : index
        %i = arith.divui %key, %c16 : index
        %p = memref.load %T[%b, %i] : !table
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
      memref.store %none, %T[%b, %j] : !table
    }
  }
  return
}

// A table of one dimension, which all sequences share.
// CHECK-LABEL: func.func @one_dimension(
// CHECK-NOT:     tile.prefetch
func.func @one_dimension(%cache: memref<?x16x64xbf16>, %table: memref<?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !n, %O: memref<?xf32, strided<[1], offset: ?>>):
    %c64 = arith.constant 64 : index
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %key = arith.addi %j, %r : index
        %i = arith.divui %key, %c16 : index
        %p = memref.load %T[%i] : !n
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
  }
  return
}

// A row that is another one in each step, and a load that is in no loop.
// CHECK-LABEL: func.func @once(
// CHECK-NOT:     tile.prefetch
func.func @once(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    scf.for %j = %c0 to %n step %c1 {
      %row = arith.addi %b, %j : index
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %i = arith.divui %r, %c16 : index
        %p = memref.load %T[%row, %i] : !table
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
    %k = tile.load %C dims [1, 2] runs 16 {
    ^bb0(%r: index):
      %i = arith.divui %r, %c16 : index
      %p = memref.load %T[%b, %i] : !table
      %page = arith.index_cast %p : i32 to index
      tile.yield %page, %c0 : index, index
    } : !cache -> !k
  }
  return
}

// An element that all rows of a tile read.
// CHECK-LABEL: func.func @same(
// CHECK-NOT:     tile.prefetch
func.func @same(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    %c64 = arith.constant 64 : index
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %i = arith.addi %j, %b : index
        %p = memref.load %T[%b, %i] : !table
        %first = arith.index_cast %p : i32 to index
        %page = arith.addi %first, %r : index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
  }
  return
}

// A row whose number is known for the rows of a tile only.
// CHECK-LABEL: func.func @own_row(
// CHECK-NOT:     tile.prefetch
func.func @own_row(%cache: memref<?x16x64xbf16>, %table: memref<?x?xi32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  tile.launch grid(%n) warps 4 ins(%cache, %table : memref<?x16x64xbf16>, memref<?x?xi32>) outs(%out : memref<?xf32>) {
  ^bb0(%b: index, %C: !cache, %T: !table, %O: memref<?xf32, strided<[1], offset: ?>>):
    %c64 = arith.constant 64 : index
    scf.for %j = %c0 to %n step %c64 {
      %k = tile.load %C dims [1, 2] runs 16 {
      ^bb0(%r: index):
        %key = arith.addi %j, %r : index
        %i = arith.divui %key, %c16 : index
        %row = arith.remui %i, %n : index
        %p = memref.load %T[%row, %i] : !table
        %page = arith.index_cast %p : i32 to index
        tile.yield %page, %c0 : index, index
      } : !cache -> !k
    }
  }
  return
}
