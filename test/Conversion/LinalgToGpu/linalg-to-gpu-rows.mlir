// RUN: fovea-opt --convert-linalg-to-gpu --canonicalize --cse --split-input-file %s | FileCheck %s

// A row of 8192 is 256 threads times 4 vectors of 16 bytes. All of it is loaded
// first; the sum is made by shuffles within warps and shared memory between
// them. Rows that are not aligned go element by element.
// CHECK-LABEL: func @normalise(
// CHECK-SAME:    %[[X:.*]]: memref<?x8192xbf16, strided<[?, 1], offset: ?>>, %[[Y:.*]]: memref<?x8192xbf16>
// CHECK:         memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:         %[[ALIGNED:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK:         scf.if %[[ALIGNED]] {
// CHECK:           gpu.launch {{.*}}threads(%[[T:[a-z0-9_]*]], {{.*}}) in (%{{.*}} = %c256{{,}}
// CHECK-SAME:        workgroup(%[[SUMS:.*]] : memref<32xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-4:     vector.load %{{.*}} {alignment = 16 : i64} : memref<1x8192xbf16, strided<[?, 1], offset: ?>>, vector<8xbf16>
// CHECK-NOT:         vector.load
// CHECK-COUNT-5:     gpu.shuffle xor
// CHECK:             memref.store %{{.*}}, %[[SUMS]]
// CHECK:             gpu.barrier
// CHECK-NOT:         gpu.shuffle
// CHECK-COUNT-8:     memref.load %[[SUMS]]
// CHECK-NOT:         memref.load %{{.*}} : memref<1x8192xbf16
// CHECK-COUNT-4:     vector.store %{{.*}} {alignment = 16 : i64} : memref<1x8192xbf16, strided<[8192, 1], offset: ?>>, vector<8xbf16>
// CHECK:             gpu.barrier
// CHECK:         } else {
// CHECK:           gpu.launch
// CHECK:             memref.load %{{.*}} : memref<1x8192xbf16, strided<[?, 1], offset: ?>>
func.func @normalise(%x: memref<?x8192xbf16, strided<[?, 1], offset: ?>>, %y: memref<?x8192xbf16>, %n: index) {
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    %row = memref.subview %x[%i, 0] [1, 8192] [1, 1] : memref<?x8192xbf16, strided<[?, 1], offset: ?>> to memref<1x8192xbf16, strided<[?, 1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 8192] [1, 1] : memref<?x8192xbf16> to memref<1x8192xbf16, strided<[8192, 1], offset: ?>>
    %sum = memref.alloc() : memref<1xf32>
    linalg.fill ins(%z : f32) outs(%sum : memref<1xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%row : memref<1x8192xbf16, strided<[?, 1], offset: ?>>) outs(%sum : memref<1xf32>) {
    ^bb0(%a: bf16, %s: f32):
      %b = arith.extf %a : bf16 to f32
      %t = arith.addf %s, %b : f32
      linalg.yield %t : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%row, %sum : memref<1x8192xbf16, strided<[?, 1], offset: ?>>, memref<1xf32>) outs(%out : memref<1x8192xbf16, strided<[8192, 1], offset: ?>>) {
    ^bb0(%a: bf16, %s: f32, %o: bf16):
      %b = arith.extf %a : bf16 to f32
      %t = arith.divf %b, %s : f32
      %r = arith.truncf %t : f32 to bf16
      linalg.yield %r : bf16
    }
    memref.dealloc %sum : memref<1xf32>
  }
  return
}

// -----

// A short row has as many lanes as vectors: several rows in a warp, no shared
// memory, no barrier. No row is prefetched.
// CHECK-LABEL: func @short(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256{{,}}
// CHECK-NOT:     workgroup
// CHECK:           arith.divui %{{.*}}, %c16{{ }}
// CHECK-NOT:       arith.minui
// CHECK:           vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NOT:       memref.prefetch
// CHECK-COUNT-4:   gpu.shuffle xor
// CHECK-NOT:       gpu.shuffle
// CHECK-NOT:       gpu.barrier
// CHECK:           gpu.terminator
func.func @short(%x: memref<100x64xf32>, %y: memref<100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<100x64xf32>) outs(%y : memref<100xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.maximumf %s, %a : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// Lanes without a row of their own compute the last one, since all lanes of a
// warp exchange terms, and write nothing.
// CHECK-LABEL: func @last_rows(
// CHECK-SAME:    %[[X:[a-z0-9_]*]]: memref<?x64xbf16>
// CHECK:         %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK:         %[[ROWS:.*]] = arith.maxsi %[[SIZE]]
// CHECK:         %[[GROUPS:.*]] = arith.ceildivui %[[ROWS]], %c4{{ }}
// CHECK:         %[[END:.*]] = arith.muli %[[GROUPS]], %c4{{ }}
// CHECK:         gpu.launch
// CHECK:           scf.for %[[ROW:.*]] = %{{.*}} to %[[END]]
// CHECK:             %[[EXISTS:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]]
// CHECK:             arith.minui %[[ROW]]
// CHECK:             %[[BEFORE:.*]] = memref.load %[[SUM:.*]][%{{.*}}] : memref<1xf32
// CHECK-COUNT-3:     gpu.shuffle xor
// CHECK-NOT:         gpu.shuffle
// CHECK:             %[[AFTER:.*]] = arith.addf %[[BEFORE]]
// CHECK:             %[[WRITES:.*]] = arith.andi %{{.*}}, %[[EXISTS]]
// CHECK:             scf.if %[[WRITES]] {
// CHECK-NEXT:          memref.store %[[AFTER]], %[[SUM]]
// CHECK:             scf.if %[[EXISTS]] {
// CHECK-NEXT:          vector.store
func.func @last_rows(%x: memref<?x64xbf16>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xbf16>
  scf.forall (%i) in (%n) {
    %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<?x64xbf16> to memref<1x64xbf16, strided<[64, 1], offset: ?>>
    %sum = memref.subview %y[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%row : memref<1x64xbf16, strided<[64, 1], offset: ?>>) outs(%sum : memref<1xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: bf16, %s: f32):
      %b = arith.extf %a : bf16 to f32
      %t = arith.addf %s, %b : f32
      linalg.yield %t : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum : memref<1xf32, strided<[1], offset: ?>>) outs(%row : memref<1x64xbf16, strided<[64, 1], offset: ?>>) {
    ^bb0(%s: f32, %a: bf16):
      %b = arith.truncf %s : f32 to bf16
      %t = arith.divf %a, %b : bf16
      linalg.yield %t : bf16
    }
  }
  return
}

// -----

// Random numbers that four neighbours share are made once.
// CHECK-LABEL: func @shared_by_four(
// CHECK:         gpu.launch
// CHECK-COUNT-2: arith.mului_extended
// CHECK-NOT:     arith.mului_extended
// CHECK:         vector.store
// CHECK:         } else {
func.func @shared_by_four(%x: memref<?x256xf16>) {
  %c2 = arith.constant 2 : i32
  %m = arith.constant -766435501 : i32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%x : memref<?x256xf16>) {
  ^bb0(%a: f16):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %q = arith.shrui %k, %c2 : i32
    %low, %high = arith.mului_extended %q, %m : i32
    %r = arith.uitofp %high : i32 to f16
    %s = arith.mulf %a, %r : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// Rows in registers cannot be read by other threads: a block's threads share
// each op, with barriers between, and the buffer is in shared memory.
// CHECK-LABEL: func @rotate(
// CHECK:         gpu.launch
// CHECK-SAME:      workgroup(%{{.*}} : memref<1x64xf32, #gpu.address_space<workgroup>>)
// CHECK-NOT:       vector.load
// CHECK:           scf.for
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:           gpu.barrier
func.func @rotate(%x: memref<10x64xf32>) {
  scf.forall (%i) in (10) {
    %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<10x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %copy = memref.alloc() : memref<1x64xf32>
    memref.copy %row, %copy : memref<1x64xf32, strided<[64, 1], offset: ?>> to memref<1x64xf32>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 63 - j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%copy : memref<1x64xf32>) outs(%row : memref<1x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
    memref.dealloc %copy : memref<1x64xf32>
  }
  return
}

// -----

// While a block works on a row, it brings the row that is begun next into the
// cache: there is one row for each block that the GPU has room for. What is read
// behind the last sum is loaded first, too.
// CHECK-LABEL: func @ahead(
// CHECK:         gpu.launch
// CHECK-COUNT-8:   vector.load
// CHECK:           %[[NEXT:.*]] = arith.addi %{{.*}}, %c528{{ }}
// CHECK:           arith.cmpi ult, %[[NEXT]]
// CHECK:           scf.if
// CHECK-COUNT-8:     memref.prefetch {{.*}}, read, locality<2>, data
// CHECK-NOT:       vector.load
// CHECK:         nvvm.minctasm = 4 : i32
module attributes {machine.target = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>} {
func.func @ahead(%x: memref<999x4096xf32>, %r: memref<999x4096xf32>, %y: memref<999x4096xf32>) {
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (999) {
    %xs = memref.subview %x[%i, 0] [1, 4096] [1, 1] : memref<999x4096xf32> to memref<1x4096xf32, strided<[4096, 1], offset: ?>>
    %rs = memref.subview %r[%i, 0] [1, 4096] [1, 1] : memref<999x4096xf32> to memref<1x4096xf32, strided<[4096, 1], offset: ?>>
    %ys = memref.subview %y[%i, 0] [1, 4096] [1, 1] : memref<999x4096xf32> to memref<1x4096xf32, strided<[4096, 1], offset: ?>>
    %sum = memref.alloc() : memref<1xf32>
    linalg.fill ins(%z : f32) outs(%sum : memref<1xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%xs : memref<1x4096xf32, strided<[4096, 1], offset: ?>>) outs(%sum : memref<1xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %s, %a : f32
      linalg.yield %t : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%rs, %sum : memref<1x4096xf32, strided<[4096, 1], offset: ?>>, memref<1xf32>) outs(%ys : memref<1x4096xf32, strided<[4096, 1], offset: ?>>) {
    ^bb0(%a: f32, %s: f32, %o: f32):
      %t = arith.mulf %a, %s : f32
      linalg.yield %t : f32
    }
    memref.dealloc %sum : memref<1xf32>
  }
  return
}
}

// -----

// An op without sums has rows of any length, each of a few lanes here; a loop
// that an operand runs against begins at another place of it. Nothing waits in
// registers, so that loads may pass stores.
// CHECK-LABEL: func @pairs(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256{{,}}
// CHECK:           arith.divui %{{.*}}, %c8{{ }}
// CHECK:           %[[OTHER:.*]] = affine.apply #{{.*}}(%[[MEMBER:.*]])
// CHECK:           memref.subview %{{.*}}[%{{.*}}, %[[OTHER]], 0] [1, 1, 64]
// CHECK-COUNT-2:   vector.load {{.*}}, vector<8xbf16>
// CHECK:           vector.store {{.*}}, vector<8xbf16>
// CHECK:         machine.distinct_memory
func.func @pairs(%x: memref<?x2x64xbf16>, %y: memref<?x2x64xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, m, j) -> (i, m, j)>, affine_map<(i, m, j) -> (i, 1 - m, j)>, affine_map<(i, m, j) -> (i, m, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x, %x : memref<?x2x64xbf16>, memref<?x2x64xbf16>) outs(%y : memref<?x2x64xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %t = arith.subf %a, %b : bf16
    linalg.yield %t : bf16
  }
  return
}

// -----

// An operand that reads backwards what another operand reads as vectors goes
// element by element: vectors of it would begin anywhere.
// CHECK-LABEL: func @partner(
// CHECK:         gpu.launch
// CHECK:           vector.load {{.*}} : memref<1x2xf16, strided<[2, 1], offset: ?>>, vector<2xf16>
// CHECK-NOT:       vector.load
// CHECK-COUNT-2:   memref.load {{.*}} : memref<1x2xf16, strided<[2, 1], offset: ?>>
// CHECK:           vector.store
// CHECK:           gpu.terminator
func.func @partner(%x: memref<128x2xf16>, %y: memref<128x2xf32>) {
  scf.forall (%i) in (128) {
    %row = memref.subview %x[%i, 0] [1, 2] [1, 1] : memref<128x2xf16> to memref<1x2xf16, strided<[2, 1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 2] [1, 1] : memref<128x2xf32> to memref<1x2xf32, strided<[2, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 1 - j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%row, %row : memref<1x2xf16, strided<[2, 1], offset: ?>>, memref<1x2xf16, strided<[2, 1], offset: ?>>) outs(%out : memref<1x2xf32, strided<[2, 1], offset: ?>>) {
    ^bb0(%a: f16, %b: f16, %o: f32):
      %s = arith.subf %a, %b : f16
      %t = arith.extf %s : f16 to f32
      linalg.yield %t : f32
    }
  }
  return
}

// -----

// Two rows of one memref, and two elements of one, are each their own.
// CHECK-LABEL: func @two_rows(
// CHECK-SAME:    %[[X:[a-z0-9_]*]]: memref<10x2x256xf32>, %[[S:[a-z0-9_]*]]: memref<2xf32>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK:         gpu.launch
// CHECK:           %[[ROWS:.*]] = memref.subview %[[X]]
// CHECK:           %[[X0:.*]] = vector.load %[[ROWS]][%[[C0]], %{{.*}}]
// CHECK:           %[[X1:.*]] = vector.load %[[ROWS]][%[[C1]], %{{.*}}]
// CHECK-DAG:       %[[S0:.*]] = memref.load %[[S]][%[[C0]]]
// CHECK-DAG:       %[[S1:.*]] = memref.load %[[S]][%[[C1]]]
// CHECK-DAG:       %[[A:.*]] = vector.extract %[[X0]][0]
// CHECK-DAG:       %[[B:.*]] = vector.extract %[[X1]][0]
// CHECK-DAG:       arith.mulf %[[A]], %[[S0]]
// CHECK-DAG:       arith.mulf %[[B]], %[[S1]]
func.func @two_rows(%x: memref<10x2x256xf32>, %s: memref<2xf32>, %y: memref<10xf32>) {
  scf.forall (%i) in (10) {
    %rows = memref.subview %x[%i, 0, 0] [1, 2, 256] [1, 1, 1] : memref<10x2x256xf32> to memref<2x256xf32, strided<[256, 1], offset: ?>>
    %out = memref.subview %y[%i] [1] [1] : memref<10xf32> to memref<1xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (1, j)>, affine_map<(i, j) -> (0)>, affine_map<(i, j) -> (1)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%rows, %rows, %s, %s : memref<2x256xf32, strided<[256, 1], offset: ?>>, memref<2x256xf32, strided<[256, 1], offset: ?>>, memref<2xf32>, memref<2xf32>) outs(%out : memref<1xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
      %p = arith.mulf %a, %c : f32
      %q = arith.mulf %b, %d : f32
      %t = arith.addf %p, %q : f32
      %u = arith.addf %o, %t : f32
      linalg.yield %u : f32
    }
  }
  return
}

// -----

// A row that is too long to be kept has a thread for each of its elements: there may be
// few of these.
// CHECK-LABEL: func.func @few_long_rows(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: memref<4x?xf32>
// CHECK:         %[[LENGTH:.*]] = memref.dim %[[X]], %c1
// CHECK:         arith.cmpi ule, %[[LENGTH]]
// CHECK:         } else {
// CHECK:           %[[ALL:.*]] = arith.muli %[[LENGTH]], %c4
// CHECK:           arith.ceildivui %[[ALL]], %c256
// CHECK:           gpu.launch
// CHECK:             scf.for %[[N:.*]] = %{{.*}} to %[[ALL]] step
// CHECK:               %[[ROW:.*]] = arith.divui %[[N]], %[[LENGTH]]
// CHECK:               %[[AT:.*]] = arith.remui %[[N]], %[[LENGTH]]
// CHECK:               memref.subview %[[X]][%[[ROW]], 0]
// CHECK:               memref.load %{{.*}}[%c0, %[[AT]]]
// CHECK-NOT:           gpu.barrier
// CHECK:               gpu.terminator
func.func @few_long_rows(%x: memref<4x?xf32>, %y: memref<4x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4x?xf32>) {
  ^bb0(%e: f32, %o: f32):
    %r = math.exp %e : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Left to blocks: sums.
// CHECK-LABEL: func.func @long_sums(
// CHECK:         } else {
// CHECK:           gpu.launch
// CHECK:             gpu.barrier
// CHECK:             gpu.terminator
func.func @long_sums(%x: memref<4x?xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%e: f32, %o: f32):
    %r = arith.addf %e, %o : f32
    linalg.yield %r : f32
  }
  return
}
