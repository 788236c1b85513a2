// RUN: fovea-opt %s --convert-tile-launch-to-gpu --split-input-file | FileCheck %s

// The grid along x alone, x fastest; nothing for an empty one. Operands as the
// program has them. Places in shared memory: tiles and slots at multiples of
// 1024 bytes, then the mbarriers.

// CHECK-LABEL: func @grid
// CHECK-SAME:    %[[K:[^:]*]]: memref<?x64xbf16>, %[[O:[^:]*]]: memref<?x64xf32>, %[[N:[^:]*]]: index, %[[M:[^:]*]]: index
// CHECK:         %[[NM:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:         %[[ALL:.*]] = arith.muli %[[NM]], %[[N]]
// CHECK:         %[[ANY:.*]] = arith.cmpi ne, %[[ALL]], %c0{{ }}
// CHECK:         scf.if %[[ANY]] {
// CHECK:           %[[KC:.*]] = memref.cast %[[K]] : memref<?x64xbf16> to memref<?x64xbf16, strided<[?, 1], offset: ?>>
// CHECK:           %[[OC:.*]] = memref.cast %[[O]]
// CHECK:           %[[THREADS:.*]] = arith.constant 256 : index
// CHECK:           %[[SHARED:.*]] = arith.constant 59424 : i32
// CHECK:           gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[ALL]], %{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}) threads(%{{.*}}) in (%{{.*}} = %[[THREADS]], {{.*}}) dynamic_shared_memory_size %[[SHARED]] function(@scores)
// CHECK:             %[[BI:.*]] = arith.index_castui %[[B]] : index to i32
// CHECK:             %[[NI:.*]] = arith.index_castui %[[N]] : index to i32
// CHECK:             %[[XI:.*]] = arith.remui %[[BI]], %[[NI]]
// CHECK:             %[[REST:.*]] = arith.divui %[[BI]], %[[NI]]
// CHECK:             %[[X:.*]] = arith.index_castui %[[XI]]
// CHECK:             %[[MI:.*]] = arith.index_castui %[[M]]
// CHECK:             %[[YI:.*]] = arith.remui %[[REST]], %[[MI]]
// CHECK:             %[[ZI:.*]] = arith.divui %[[REST]], %[[MI]]
// CHECK:             %[[Y:.*]] = arith.index_castui %[[YI]]
// CHECK:             %[[Z:.*]] = arith.index_castui %[[ZI]]
// CHECK:             tile.load %[[KC]][%[[X]], %[[Y]]] dims [0, 1] {tile.shared_offset = 0 : i64}
// CHECK:             tile.ring {tile.barrier_offset = 59392 : i64, tile.shared_offset = 26624 : i64} : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
// CHECK:             tile.store %{{.*}}, %[[OC]][%[[Z]],
// CHECK:             gpu.terminator
func.func @grid(%k: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: index, %m: index) {
  tile.launch kernel "scores" grid(%n, %m, %n) warps 8 ins(%k : memref<?x64xbf16>) outs(%o : memref<?x64xf32>) {
  ^bb0(%x: index, %y: index, %z: index, %K: memref<?x64xbf16, strided<[?, 1], offset: ?>>, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %a = tile.load %K[%x, %y] dims [0, 1] : memref<?x64xbf16, strided<[?, 1], offset: ?>> -> !tile.shared<200x66xbf16>
    %ring = tile.ring : !tile.ring<2 x !tile.shared<128x64xbf16, swizzle = 128>>
    %f = tile.fill %zero : !tile.fragment<128x64xf32>
    tile.store %f, %O[%z, %c0] dims [0, 1] : !tile.fragment<128x64xf32>, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// -----

// One dimension: blocks as they are. A constant grid needs no test, and an
// empty one vanishes. Threads are those of all roles.

// CHECK-LABEL: func @roles
// CHECK-NOT:     scf.if
// CHECK:         %[[THREADS:.*]] = arith.constant 384 : index
// CHECK:         gpu.launch blocks(%[[B:[^,]*]], {{.*}}) in ({{.*}}) threads({{.*}}) in (%{{.*}} = %[[THREADS]], {{.*}}) {
// CHECK-NOT:       arith.{{div|rem|mul|add}}
// CHECK:           tile.roles
// CHECK:             tile.store %{{.*}}, %{{.*}}[%[[B]]]
// CHECK-NOT:     gpu.launch
func.func @roles(%o: memref<?xf32, strided<[1], offset: ?>>) {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  tile.launch grid(%c4) warps 8 outs(%o : memref<?xf32, strided<[1], offset: ?>>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    %zero = arith.constant 0.0 : f32
    tile.roles {
      tile.role "load" warps 4 {
      }
      tile.role "compute" warps 8 {
        %f = tile.fill %zero : !tile.fragment<128xf32>
        tile.store %f, %O[%x] dims [0] : !tile.fragment<128xf32>, memref<?xf32, strided<[1], offset: ?>>
      }
    }
  }
  tile.launch grid(%c0) warps 8 outs(%o : memref<?xf32, strided<[1], offset: ?>>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}

// -----

// On Hopper, TMA copies what it can: along the last dimension, swizzled.

#hopper = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
!m = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!t = !tile.shared<64x64xbf16, swizzle = 128>
!f = !tile.shared<64x64xbf16>
module attributes {machine.target = #hopper} {
  // CHECK-LABEL: func @maps
  // CHECK-SAME:    %[[K:[^:]*]]: memref
  // CHECK:         %[[MAP:.*]] = tile.tensor_map %[[K]] dims [1, 2] : {{.*}} -> !tile.tensor_map<3 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK-NOT:     tile.tensor_map
  // CHECK:         gpu.launch
  // CHECK:           tile.load_async %[[MAP]][
  // CHECK:           tile.load_async %[[MAP]][
  // CHECK:           tile.load_async %[[K]][{{.*}}] dims [0, 1]
  // CHECK:           tile.load_async %[[K]][{{.*}}] dims [1, 2]
  func.func @maps(%k: !m) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%k : !m) {
    ^bb0(%x: index, %K: !m):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = tile.ring : !tile.ring<2 x !t>
      %s = tile.acquire %r[%c0] : !tile.ring<2 x !t>
      tile.load_async %K[%x, %c0, %c0] dims [1, 2] into %s signals %r[%c0] : !m, !tile.ring<2 x !t>
      tile.load_async %K[%x, %c1, %c0] dims [1, 2] into %s signals %r[%c1] : !m, !tile.ring<2 x !t>
      tile.load_async %K[%x, %c1, %c0] dims [0, 1] into %s signals %r[%c1] : !m, !tile.ring<2 x !t>
      %u = tile.ring : !tile.ring<2 x !f>
      %v = tile.acquire %u[%c0] : !tile.ring<2 x !f>
      tile.load_async %K[%x, %c1, %c0] dims [1, 2] into %v signals %u[%c1] : !m, !tile.ring<2 x !f>
    }
    return
  }

  // Runs of rows are copied by a descriptor of a run; rows that lie apart, and
  // runs that a swizzle does not allow, by threads. Runs that are loaded as a
  // whole need no barrier for zeros.
  // CHECK-LABEL: func @runs
  // CHECK-SAME:    %[[K:[^:]*]]: memref
  // CHECK:         %[[MAP:.*]] = tile.tensor_map %[[K]] dims [1, 2] : {{.*}} -> !tile.tensor_map<3 x !tile.shared<16x64xbf16, swizzle = 128>>
  // CHECK-NOT:     tile.tensor_map
  // CHECK:         gpu.launch {{.*}} dynamic_shared_memory_size %c32840_i32
  // CHECK:           tile.ring {tile.barrier_offset = 32768 : i64, tile.shared_offset = 0 : i64}
  // CHECK:           tile.ring {tile.barrier_offset = 32800 : i64, tile.shared_offset = 16384 : i64}
  // CHECK:           tile.load_async %[[MAP]] dims [1, 2] rows(%{{.*}}, %{{.*}}) whole_runs runs 16
  // CHECK:           tile.load_async %[[MAP]] dims [1, 2] rows(%{{.*}}, %{{.*}}) runs 16
  // CHECK:           tile.load_async %[[K]] dims [1, 2] runs 4
  func.func @runs(%k: !m) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%k : !m) {
    ^bb0(%x: index, %K: !m):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = tile.ring : !tile.ring<2 x !t>
      %q = tile.ring : !tile.ring<2 x !t>
      %s = tile.acquire %r[%c0] : !tile.ring<2 x !t>
      tile.load_async %K dims [1, 2] rows(%c0, %x) whole_runs runs 16 {
      ^bb0(%i: index):
        tile.yield %x, %i : index, index
      } into %s signals %r[%c0] : !m, !tile.ring<2 x !t>
      %t = tile.acquire %q[%c0] : !tile.ring<2 x !t>
      tile.load_async %K dims [1, 2] rows(%c0, %x) runs 16 {
      ^bb0(%i: index):
        tile.yield %x, %i : index, index
      } into %t signals %q[%c0] : !m, !tile.ring<2 x !t>
      tile.load_async %K dims [1, 2] runs 4 {
      ^bb0(%i: index):
        tile.yield %x, %i : index, index
      } into %s signals %r[%c1] : !m, !tile.ring<2 x !t>
    }
    return
  }

  // A descriptor of all panels of a run.
  // CHECK-LABEL: func @panels_of_runs
  // CHECK:         %[[MAP:.*]] = tile.tensor_map %{{.*}} dims [1, 2] : {{.*}} -> !tile.tensor_map<4 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>
  // CHECK:           tile.load_async %[[MAP]] dims [1, 2] runs 16
  func.func @panels_of_runs(%k: memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%k : memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>) {
    ^bb0(%x: index, %K: memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>):
      %c0 = arith.constant 0 : index
      %r = tile.ring : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
      %s = tile.acquire %r[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
      tile.load_async %K dims [1, 2] runs 16 {
      ^bb0(%i: index):
        tile.yield %x, %i : index, index
      } into %s signals %r[%c0] : memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
    }
    return
  }

  // A tile that is stored has memory of its own unless it reuses a ring's.
  // CHECK-LABEL: func @stores
  // CHECK-SAME:    %[[O:[^:]*]]: memref
  // CHECK:         %[[MAP:.*]] = tile.tensor_map %[[O]] dims [1, 2]
  // CHECK:         gpu.launch {{.*}} dynamic_shared_memory_size %c16400_i32
  // CHECK:           tile.ring {tile.barrier_offset = 16384 : i64, tile.shared_offset = 0 : i64}
  // CHECK:           tile.to_shared %{{.*}} {tile.shared_offset = 8192 : i64}
  // CHECK:           tile.to_shared %{{[a-z0-9]*}} reuses %{{[a-z0-9]*}} :
  // CHECK:           tile.store_async %{{.*}}, %[[MAP]][
  func.func @stores(%o: !m) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%o : !m) {
    ^bb0(%x: index, %O: !m):
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : bf16
      %r = tile.ring : !tile.ring<1 x !t>
      %v = tile.fill %zero : !tile.fragment<64x64xbf16>
      %a = tile.to_shared %v : !tile.fragment<64x64xbf16> -> !t
      %b = tile.to_shared %v reuses %r : !tile.fragment<64x64xbf16>, !tile.ring<1 x !t> -> !t
      tile.store_async %b, %O[%x, %c0, %c0] dims [1, 2] : !t, !m
      tile.wait_stores
    }
    return
  }

  // Some rows of a tile: those in front of the bounds of a map with one more dimension,
  // in front of the row behind the last. Other stores have a map of their own.
  // CHECK-LABEL: func @some_rows
  // CHECK-SAME:    %[[O:[^:]*]]: memref
  // CHECK:         %[[ALL:.*]] = tile.tensor_map %[[O]] dims [1, 2]
  // CHECK:         %[[SOME:.*]] = tile.tensor_map clipped %[[O]] dims [1, 2] : {{.*}} -> !tile.tensor_map<4 x
  // CHECK:         gpu.launch
  // CHECK:           tile.store_async %{{.*}}, %[[ALL]][%[[X:.*]], %c0{{.*}}, %c0{{.*}}] dims [1, 2]
  // CHECK:           %[[MORE:.*]] = arith.maxsi %[[N:.*]], %c0
  // CHECK:           %[[VALID:.*]] = arith.minsi %[[MORE]], %c64
  // CHECK:           %[[END:.*]] = arith.addi %c0{{.*}}, %[[VALID]]
  // CHECK:           %[[FROM:.*]] = arith.subi %c64{{.*}}, %[[VALID]]
  // CHECK:           tile.store_async %{{.*}}, %[[SOME]][%[[X]], %[[END]], %[[FROM]], %c0{{.*}}] dims [2, 3] : !tile.shared<64x64xbf16, swizzle = 128>, !tile.tensor_map<4 x
  func.func @some_rows(%o: !m, %n: index) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%o : !m) {
    ^bb0(%x: index, %O: !m):
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : bf16
      %v = tile.fill %zero : !tile.fragment<64x64xbf16>
      %a = tile.to_shared %v : !tile.fragment<64x64xbf16> -> !t
      tile.store_async %a, %O[%x, %c0, %c0] dims [1, 2] : !t, !m
      tile.store_async %a, %O[%x, %c0, %c0] dims [1, 2] valid(%n) : !t, !m
      tile.wait_stores
    }
    return
  }
}

// -----

// Clusters lie along x: the grid counts them, and blocks of each have a number.

// CHECK-LABEL: func @cluster
// CHECK-SAME:    %{{[^:]*}}: memref<?xf32, strided<[1], offset: ?>>, %[[N:[^:]*]]: index)
// CHECK:         %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[BLOCKS:.*]] = arith.muli %[[N]], %[[TWO]]
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]],
// CHECK:           %[[CLUSTER:.*]] = gpu.cluster_id x
// CHECK:           %[[RANK:.*]] = gpu.cluster_block_id x
// CHECK:           tile.store %{{.*}}[%[[CLUSTER]]]
// CHECK:           tile.store %{{.*}}[%[[RANK]]]
// CHECK:         nvvm.cluster_dim = array<i32: 2, 1, 1>
func.func @cluster(%o: memref<?xf32, strided<[1], offset: ?>>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 outs(%o : memref<?xf32, strided<[1], offset: ?>>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    %zero = arith.constant 0.0 : f32
    %rank = tile.cluster_rank
    %f = tile.fill %zero : !tile.fragment<128xf32>
    tile.store %f, %O[%x] dims [0] : !tile.fragment<128xf32>, memref<?xf32, strided<[1], offset: ?>>
    tile.store %f, %O[%rank] dims [0] : !tile.fragment<128xf32>, memref<?xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

!t = !tile.shared<64x64xbf16, swizzle = 128>
!m = memref<4x?x64xbf16, strided<[?, ?, 1], offset: ?>>
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 1, fast_memory = 232448, near_memory = 65536, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
  // Tiles whose rows run along two dimensions have maps of their own, one for each number
  // of neighbours, and so have tiles whose rows do not.
  // CHECK-LABEL: func @inner
  // CHECK-SAME:    %[[K:[^:]*]]: memref
  // CHECK:         %[[FOUR:.*]] = tile.tensor_map %[[K]] dims [1, 0, 2] inner 4 : {{.*}} -> !tile.tensor_map<3 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK:         %[[TWO:.*]] = tile.tensor_map %[[K]] dims [1, 0, 2] inner 2 : {{.*}} -> !tile.tensor_map<3 x
  // CHECK:         %[[NONE:.*]] = tile.tensor_map %[[K]] dims [1, 2] : {{.*}} -> !tile.tensor_map<3 x
  // CHECK-NOT:     tile.tensor_map
  // CHECK:         gpu.launch
  // CHECK:           tile.load_async %[[FOUR]][%c0{{.*}}, %[[X:.*]], %c0{{.*}}] dims [1, 0, 2] inner 4
  // CHECK:           tile.load_async %[[TWO]][%c0{{.*}}, %[[X]], %c0{{.*}}] dims [1, 0, 2] inner 2
  // CHECK:           tile.load_async %[[NONE]][%c0{{.*}}, %[[X]], %c0{{.*}}] dims [1, 2] into
  // CHECK:           tile.store_async %{{.*}}, %[[FOUR]][%c0{{.*}}, %[[X]], %c0{{.*}}] dims [1, 0, 2] inner 4 :
  func.func @inner(%k: !m) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%k : !m) {
    ^bb0(%x: index, %K: !m):
      %c0 = arith.constant 0 : index
      %r = tile.ring : !tile.ring<3 x !t>
      %s = tile.acquire %r[%x] : !tile.ring<3 x !t>
      tile.load_async %K[%c0, %x, %c0] dims [1, 0, 2] inner 4 into %s signals %r[%x] : !m, !tile.ring<3 x !t>
      tile.load_async %K[%c0, %x, %c0] dims [1, 0, 2] inner 2 into %s signals %r[%x] : !m, !tile.ring<3 x !t>
      tile.load_async %K[%c0, %x, %c0] dims [1, 2] into %s signals %r[%x] : !m, !tile.ring<3 x !t>
      tile.store_async %s, %K[%c0, %x, %c0] dims [1, 0, 2] inner 4 : !t, !m
      tile.wait_stores
    }
    return
  }

  // Of 64 rows of which 4 are in each place of the first dimension some are clipped in
  // places of that, 16.
  // CHECK-LABEL: func @inner_clipped
  // CHECK-SAME:    %[[O:[^:]*]]: memref<{{[^%]*}}, %[[N:[^:]*]]: index
  // CHECK:         %[[MAP:.*]] = tile.tensor_map clipped %[[O]] dims [1, 0, 2] inner 4 : {{.*}} -> !tile.tensor_map<4 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK:         gpu.launch
  // CHECK:           %[[EXTENT:.*]] = arith.constant 16 : index
  // CHECK:           %[[ROWS:.*]] = arith.maxsi %[[N]], %c0
  // CHECK:           %[[INNER:.*]] = arith.constant 4 : index
  // CHECK:           %[[PLACES:.*]] = arith.divui %[[ROWS]], %[[INNER]]
  // CHECK:           %[[VALID:.*]] = arith.minsi %[[PLACES]], %[[EXTENT]]
  // CHECK:           %[[END:.*]] = arith.addi %[[X:.*]], %[[VALID]]
  // CHECK:           %[[FROM:.*]] = arith.subi %[[EXTENT]], %[[VALID]]
  // CHECK:           tile.store_async %{{.*}}, %[[MAP]][%c0{{.*}}, %[[END]], %[[FROM]], %c0{{.*}}] dims [2, 0, 3] inner 4 : !tile.shared<64x64xbf16, swizzle = 128>, !tile.tensor_map<4 x
  func.func @inner_clipped(%o: !m, %n: index) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%o : !m) {
    ^bb0(%x: index, %O: !m):
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : bf16
      %v = tile.fill %zero : !tile.fragment<64x64xbf16>
      %a = tile.to_shared %v : !tile.fragment<64x64xbf16> -> !t
      tile.store_async %a, %O[%c0, %x, %c0] dims [1, 0, 2] inner 4 valid(%n) : !t, !m
      tile.wait_stores
    }
    return
  }

  // Of rows of which some have no place, those of one place along the first dimension are a
  // box, so that there is nothing to clip; a load has the box of all rows.
  // CHECK-LABEL: func @inner_used
  // CHECK-SAME:    %[[O:[^:]*]]: memref<{{[^%]*}}, %[[N:[^:]*]]: index
  // CHECK-DAG:     %[[LOADED:.*]] = tile.tensor_map %[[O]] dims [1, 0, 2] inner 4 : {{.*}} -> !tile.tensor_map<3 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK-DAG:     %[[STORED:.*]] = tile.tensor_map %[[O]] dims [1, 0, 2] inner 4 used 3 : {{.*}} -> !tile.tensor_map<3 x !tile.shared<64x64xbf16, swizzle = 128>>
  // CHECK:         gpu.launch
  // CHECK:           tile.load_async %[[LOADED]][%c0{{.*}}] dims [1, 0, 2] inner 4 used 3 into
  // CHECK:           tile.store_async %{{.*}}, %[[STORED]][%c0{{.*}}] dims [1, 0, 2] inner 4 used 3 valid(%[[N]]) :
  func.func @inner_used(%o: !m, %n: index) {
    %c4 = arith.constant 4 : index
    tile.launch grid(%c4) warps 4 outs(%o : !m) {
    ^bb0(%x: index, %O: !m):
      %c0 = arith.constant 0 : index
      %r = tile.ring : !tile.ring<1 x !t>
      %s = tile.acquire %r[%x] : !tile.ring<1 x !t>
      tile.load_async %O[%c0, %x, %c0] dims [1, 0, 2] inner 4 used 3 into %s signals %r[%x] : !m, !tile.ring<1 x !t>
      %a = tile.wait %r[%x] : !tile.ring<1 x !t>
      tile.store_async %a, %O[%c0, %x, %c0] dims [1, 0, 2] inner 4 used 3 valid(%n) : !t, !m
      tile.wait_stores
      tile.release %r[%x] : !tile.ring<1 x !t>
    }
    return
  }
}
