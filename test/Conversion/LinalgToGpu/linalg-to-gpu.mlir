// RUN: fovea-opt --convert-linalg-to-gpu --canonicalize --cse --split-input-file %s | FileCheck %s
// RUN: fovea-opt --convert-linalg-to-gpu=deterministic --canonicalize --cse --split-input-file %s | FileCheck %s --check-prefix=ORDER
// RUN: fovea-opt --convert-linalg-to-gpu=deterministic --remarks-filter=convert-linalg-to-gpu --split-input-file %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --implicit-check-not=remark:

// Neighbouring threads write neighbouring elements of the result, which is
// transposed here. Nothing is launched for no elements.
// CHECK-LABEL: func @transpose(
// CHECK-SAME:    %[[IN:.*]]: memref<32x?xf32>, %[[OUT:.*]]: memref<?x32xf32>)
// CHECK:         %[[ITEMS:.*]] = arith.muli
// CHECK:         %[[ANY:.*]] = arith.cmpi ne, %[[ITEMS]], %c0{{ }}
// CHECK:         scf.if %[[ANY]] {
// CHECK:           %[[BLOCKS:.*]] = arith.ceildivui %[[ITEMS]], %c256{{ }}
// CHECK:           %[[GRID:.*]] = arith.minui %[[BLOCKS]], %c2147483647{{ }}
// CHECK:           gpu.launch blocks(%{{.*}}) in (%{{.*}} = %[[GRID]],
// CHECK-SAME:        threads(%{{.*}}) in (%{{.*}} = %c256{{,}}
// CHECK:             scf.for %[[ITEM:.*]] =
// CHECK:               %[[FAST:.*]] = arith.remui %[[ITEM]]
// CHECK:               %[[SLOW:.*]] = arith.divui %[[ITEM]]
// CHECK:               %[[X:.*]] = memref.load %[[IN]][%[[FAST]], %[[SLOW]]]
// CHECK:               memref.store %[[X]], %[[OUT]][%[[SLOW]], %[[FAST]]]
func.func @transpose(%in: memref<32x?xf32>, %out: memref<?x32xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%in : memref<32x?xf32>) outs(%out : memref<?x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Sums stay in a register. Few elements: each thread has at most one.
// CHECK-LABEL: func @contract(
// CHECK-NOT:     scf.if
// CHECK:         gpu.launch
// CHECK:           arith.cmpi ult, %{{.*}}, %c35{{ }}
// CHECK:           scf.if
// CHECK:             %[[OLD:.*]] = memref.load %[[C:.*]][%[[I:.*]], %[[J:.*]]] : memref<5x7xf32>
// CHECK:             %[[SUM:.*]] = scf.for %[[K:.*]] = %c0 to %c9 step %c1 iter_args(%[[ACC:.*]] = %[[OLD]])
// CHECK:               arith.addf %[[ACC]]
// CHECK:             memref.store %[[SUM]], %[[C]][%[[I]], %[[J]]]
func.func @contract(%a: memref<5x9xf16>, %b: memref<9x7xf16>, %c: memref<5x7xf32>) {
  linalg.matmul ins(%a, %b : memref<5x9xf16>, memref<9x7xf16>) outs(%c : memref<5x7xf32>)
  return
}

// -----

// Of a reduction whose length is not known, eight terms are read before the first of
// them is added, then two, and the rest one by one, in the same order.
// CHECK-LABEL: func @columns(
// CHECK:           %[[REST:.*]] = arith.remui %[[N:.*]], %c8
// CHECK:           %[[WHOLE:.*]] = arith.subi %[[N]], %[[REST]]
// CHECK:           %[[MOST:.*]] = scf.for %[[K:.*]] = %c0 to %[[WHOLE]] step %c8 iter_args(%[[ACC:.*]] = %{{.*}}) -> (f32) {
// CHECK-COUNT-8:     memref.load
// CHECK-NEXT:        %[[S0:.*]] = arith.addf %[[ACC]]
// CHECK-COUNT-7:     arith.addf
// CHECK-NEXT:        scf.yield
// CHECK:           %[[REST2:.*]] = arith.remui %[[N]], %c2
// CHECK:           %[[EVEN:.*]] = arith.subi %[[N]], %[[REST2]]
// CHECK:           %[[MORE:.*]] = scf.for %[[K:.*]] = %[[WHOLE]] to %[[EVEN]] step %c2 iter_args(%[[ACC:.*]] = %[[MOST]]) -> (f32) {
// CHECK-NEXT:        %[[X0:.*]] = memref.load %{{.*}}[%[[K]], %{{.*}}]
// CHECK-NEXT:        %[[K1:.*]] = arith.addi %[[K]], %c1
// CHECK-NEXT:        %[[X1:.*]] = memref.load %{{.*}}[%[[K1]], %{{.*}}]
// CHECK-NEXT:        %[[S0:.*]] = arith.addf %[[ACC]], %[[X0]]
// CHECK-NEXT:        %[[S1:.*]] = arith.addf %[[S0]], %[[X1]]
// CHECK-NEXT:        scf.yield %[[S1]]
// CHECK:           %[[SUM:.*]] = scf.for %[[K:.*]] = %[[EVEN]] to %[[N]] step %c1 iter_args(%[[ACC:.*]] = %[[MORE]]) -> (f32) {
// CHECK-NEXT:        %[[X:.*]] = memref.load
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[ACC]], %[[X]]
// CHECK-NEXT:        scf.yield %[[S]]
// CHECK:           memref.store %[[SUM]]
func.func @columns(%a: memref<?x5xf32>, %c: memref<5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (k, i)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<?x5xf32>) outs(%c : memref<5xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }
  return
}

// One element: one thread.
// CHECK-LABEL: func @scalar(
// CHECK:         gpu.launch blocks(%{{.*}}) in (%{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}) threads(%{{.*}}) in (%{{.*}} = %c1{{,}}
// CHECK:           %[[X:.*]] = memref.load %{{.*}}[] : memref<f64>
// CHECK:           memref.store %{{.*}}[] : memref<f64>
func.func @scalar(%a: memref<f64>, %b: memref<f64>) {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
    ins(%a : memref<f64>) outs(%b : memref<f64>) {
  ^bb0(%x: f64, %y: f64):
    %z = arith.negf %x : f64
    linalg.yield %z : f64
  }
  return
}

// -----

// Where more is done with an element, four.
// CHECK-LABEL: func @exponentials(
// CHECK:           %[[REST:.*]] = arith.remui %[[N:.*]], %c4
// CHECK:           %[[WHOLE:.*]] = arith.subi %[[N]], %[[REST]]
// CHECK:           %[[MOST:.*]] = scf.for %{{.*}} = %c0 to %[[WHOLE]] step %c4
// CHECK-COUNT-4:     memref.load
// CHECK-COUNT-4:     math.exp
// CHECK:           scf.for %{{.*}} = %[[WHOLE]] to %[[N]] step %c1 iter_args(%{{.*}} = %[[MOST]])
func.func @exponentials(%a: memref<?x5xf32>, %c: memref<5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (k, i)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%a : memref<?x5xf32>) outs(%c : memref<5xf32>) {
  ^bb0(%x: f32, %old: f32):
    %e = math.exp %x : f32
    %sum = arith.addf %old, %e : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// What may write an element twice is done by one thread, in order, in memory.
// CHECK-LABEL: func @histogram(
// CHECK:         gpu.launch
// CHECK-SAME:      threads(%{{.*}}) in (%{{.*}} = %c1{{,}}
// CHECK:           scf.for %[[I:.*]] =
// CHECK:             affine.apply
// CHECK:             memref.load
// CHECK:             memref.store
// REMARK: remark: {{.*}}may write an element twice: one thread of the GPU does it all
func.func @histogram(%in: memref<64xi32>, %out: memref<8xi32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i floordiv 8)>],
    iterator_types = ["reduction"]
  } ins(%in : memref<64xi32>) outs(%out : memref<8xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    linalg.yield %s : i32
  }
  return
}

// -----

// CHECK-LABEL: func @empty(
// CHECK-NEXT:    return
func.func @empty(%in: memref<0x4xf32>, %out: memref<0x4xf32>) {
  memref.copy %in, %out : memref<0x4xf32> to memref<0x4xf32>
  return
}

// -----

// A value in memory is read where it is used; constants move into kernels.
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
// CHECK-LABEL: func @values(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[S:.*]]: memref<f32>)
// CHECK-NOT:     memref.load
// CHECK-NOT:     memref.get_global
// CHECK:         gpu.launch
// CHECK:           %[[TABLE:.*]] = memref.get_global @table
// CHECK:           %[[V:.*]] = memref.load %[[S]][]
// CHECK:           %[[T:.*]] = memref.load %[[TABLE]][
// CHECK:           arith.mulf %[[T]], %[[V]]
func.func @values(%x: memref<4xf32>, %s: memref<f32>) {
  %table = memref.get_global @table : memref<4xf32>
  %v = memref.load %s[] : memref<f32>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%table : memref<4xf32>) outs(%x : memref<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %v : f32
    linalg.yield %m : f32
  }
  return
}

// -----

// The address of a constant on the host is not one of the GPU's memory: what a
// tensor map or a branch hands over is a copy. Kernels read the constant itself.
!map = !tile.tensor_map<2 x !tile.shared<16x64xf16, swizzle = 128>>
memref.global "private" constant @table : memref<16x64xf16> = dense<1.0>
// CHECK-LABEL: func @constant_addresses(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<16x64xf16>,
// CHECK-NOT:     memref.get_global
// CHECK:         %[[COPY:.*]] = memref.alloc() : memref<16x64xf16>
// CHECK:         gpu.launch
// CHECK:           %[[TABLE:.*]] = memref.get_global @table
// CHECK-DAG:       %[[FROM:.*]] = memref.subview %[[TABLE]][
// CHECK-DAG:       %[[TO:.*]] = memref.subview %[[COPY]][
// CHECK:           %[[V:.*]] = memref.load %[[FROM]][
// CHECK:           memref.store %[[V]], %[[TO]][
// CHECK-NOT:     memref.get_global
// CHECK:         arith.select %{{.*}}, %[[COPY]], %[[X]]
// CHECK:         tile.tensor_map %[[COPY]] dims [0, 1]
// CHECK:         gpu.launch
// CHECK:           memref.get_global @table
// CHECK:         memref.dealloc %[[COPY]]
// CHECK-NEXT:    return
func.func @constant_addresses(%x: memref<16x64xf16>, %y: memref<16x64xf16>, %c: i1) -> !map {
  %table = memref.get_global @table : memref<16x64xf16>
  %one = scf.if %c -> memref<16x64xf16> {
    scf.yield %table : memref<16x64xf16>
  } else {
    scf.yield %x : memref<16x64xf16>
  }
  %map = tile.tensor_map %table dims [0, 1] : memref<16x64xf16> -> !map
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%one, %table : memref<16x64xf16>, memref<16x64xf16>) outs(%y : memref<16x64xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %m = arith.mulf %a, %b : f16
    linalg.yield %m : f16
  }
  return %map : !map
}

// -----

// What may be overwritten before it is used is kept in a kernel.
// CHECK-LABEL: func @snapshot(
// CHECK:         %[[M:.*]] = memref.alloc() : memref<f32>
// CHECK:         %[[KEPT:.*]] = memref.alloc() : memref<f32>
// CHECK:         gpu.launch
// CHECK:           %[[V:.*]] = memref.load %[[M]][]
// CHECK:           memref.store %[[V]], %[[KEPT]][]
// CHECK:         gpu.launch
// CHECK:           memref.store %{{.*}}, %[[M]][]
// CHECK:         gpu.launch
// CHECK:           %[[W:.*]] = memref.load %[[KEPT]][]
// CHECK:           memref.store %[[W]], %{{.*}}[]
// CHECK:         memref.dealloc %[[KEPT]]
func.func @snapshot(%x: memref<f32>) -> memref<f32> {
  %m = memref.alloc() : memref<f32>
  %v = memref.load %m[] : memref<f32>
  %c = arith.constant 2.0 : f32
  memref.store %c, %m[] : memref<f32>
  memref.store %v, %x[] : memref<f32>
  return %m : memref<f32>
}

// -----

// What is not on memory stays on the host.
// CHECK-LABEL: func @host(
// CHECK-NOT:     gpu.launch
// CHECK:         memref.subview
// CHECK:         return
func.func @host(%x: memref<?x?xf32>) -> memref<?xf32, strided<[1], offset: ?>> {
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %h = arith.divui %n, %c1 : index
  %s = memref.subview %x[%h, 0] [1, %n] [1, 1] : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
  return %s : memref<?xf32, strided<[1], offset: ?>>
}

// -----

// Loops that add terms at computed places are one kernel of a thread for each
// term, whatever their bounds and steps.
// CHECK:       #[[$TRIPS:.*]] = affine_map<()[s0] -> ((s0 - 1) ceildiv 2)>
// CHECK-LABEL: func @scatter(
// CHECK-SAME:    %[[AT:.*]]: memref<?x8xindex>, %[[X:.*]]: memref<?x8xf32>, %[[N:.*]]: index,
// CHECK:         %[[SUMS:.*]] = memref.alloc() : memref<10xf64>
// CHECK:         %[[TRIP_COUNT:.*]] = affine.apply #[[$TRIPS]]()[%[[N]]]
// CHECK:         %[[ROWS:.*]] = arith.maxsi %[[TRIP_COUNT]], %c0
// CHECK:         %[[ITEMS:.*]] = arith.muli %[[ROWS]], %c8
// CHECK:         scf.if
// CHECK:           gpu.launch
// CHECK:             scf.for %[[ITEM:.*]] = %{{.*}} to %[[ITEMS]]
// CHECK-NEXT:          %[[J:.*]] = arith.remui %[[ITEM]], %c8
// CHECK-NEXT:          %[[ROW:.*]] = arith.divui %[[ITEM]], %c8
// CHECK-NEXT:          %[[OFFSET:.*]] = arith.muli %[[ROW]], %c2
// CHECK-NEXT:          %[[I:.*]] = arith.addi %[[OFFSET]], %c1
// CHECK-NEXT:          %[[PLACE:.*]] = memref.load %[[AT]][%[[I]], %[[J]]]
// CHECK-NEXT:          %[[V:.*]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK-NEXT:          %[[TERM:.*]] = arith.extf %[[V]] : f32 to f64
// CHECK-NEXT:          memref.atomic_rmw addf %[[TERM]], %[[SUMS]][%[[PLACE]]]
// CHECK-NEXT:        }
// CHECK:         memref.dealloc %[[SUMS]]
//
// In any order, integers give the same sum: those of f32, for the terms were.
// ORDER-LABEL: func @scatter(
// ORDER:         %[[SUMS:.*]] = memref.alloc() : memref<10xf64>
// ORDER:         %[[INTEGERS:.*]] = memref.alloc(%{{.*}}) : memref<?x10xi64>
// ORDER:         gpu.launch
// ORDER:           memref.store %c0_i64, %[[INTEGERS]]
// ORDER:         gpu.launch
// ORDER:           arith.bitcast %{{.*}} : f32 to i32
// ORDER:           memref.atomic_rmw addi %{{.*}}, %[[INTEGERS]]
// ORDER-NOT:       atomic_rmw
// ORDER:         gpu.launch
// ORDER:           %[[OLD:.*]] = memref.load %[[SUMS]]
// ORDER:           memref.load %[[INTEGERS]]
// ORDER:           %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f64
// ORDER:           memref.store %[[NEW]], %[[SUMS]]
// ORDER:         memref.dealloc %[[INTEGERS]]
// REMARK: remark: {{.*}}terms are added in integers, so that their order does not matter
func.func @scatter(%at: memref<?x8xindex>, %x: memref<?x8xf32>, %n: index, %y: memref<10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %sums = memref.alloc() : memref<10xf64>
  scf.for %i = %c1 to %n step %c2 {
    scf.for %j = %c0 to %c8 step %c1 {
      %place = memref.load %at[%i, %j] : memref<?x8xindex>
      %old = memref.load %sums[%place] : memref<10xf64>
      %v = memref.load %x[%i, %j] : memref<?x8xf32>
      %term = arith.extf %v : f32 to f64
      %sum = arith.addf %old, %term : f64
      memref.store %sum, %sums[%place] : memref<10xf64>
    }
  }
  memref.copy %sums, %y : memref<10xf64> to memref<10xf64>
  memref.dealloc %sums : memref<10xf64>
  return
}

// -----

// Terms that read the sums, or that are multiplied, must come one by one.
// CHECK-LABEL: func @dependent(
// CHECK-COUNT-2: gpu.launch blocks(%{{.*}}) in (%{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}) threads(%{{.*}}) in (%{{.*}} = %c1
// CHECK-NOT:     atomic_rmw
// ORDER-LABEL: func @dependent(
// ORDER-NOT:     atomic_rmw
// REMARK-COUNT-2: remark: {{.*}}its iterations may depend on one another: one thread of the GPU runs them all
func.func @dependent(%at: memref<?xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sums = memref.alloc() : memref<10xf64>
  scf.for %i = %c0 to %n step %c1 {
    %place = memref.load %at[%i] : memref<?xindex>
    %old = memref.load %sums[%place] : memref<10xf64>
    %term = memref.load %sums[%c0] : memref<10xf64>
    %sum = arith.addf %old, %term : f64
    memref.store %sum, %sums[%place] : memref<10xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %place = memref.load %at[%i] : memref<?xindex>
    %old = memref.load %sums[%place] : memref<10xf64>
    %sum = arith.mulf %old, %old : f64
    memref.store %sum, %sums[%place] : memref<10xf64>
  }
  memref.dealloc %sums : memref<10xf64>
  return
}

// -----

// A loop that is left of a parallel one of one iteration: one thread, of which
// later kernels read the results. It is short, which needs no remark.
// CHECK-LABEL: func @extremes(
// CHECK-SAME:    %[[X:.*]]: memref<16xi1>, %[[Y:.*]]: memref<1xi1>
// CHECK:         %[[MEMORY:.*]] = memref.alloc() : memref<i1>
// CHECK:         gpu.launch
// CHECK:           %[[ALL:.*]] = scf.for
// CHECK:             memref.load %[[X]]
// CHECK:           memref.store %[[ALL]], %[[MEMORY]][]
// CHECK:         gpu.launch
// CHECK:           %[[READ:.*]] = memref.load %[[MEMORY]][]
// CHECK:           memref.store %[[READ]], %[[Y]][%c0]
// CHECK:         memref.dealloc %[[MEMORY]]
func.func @extremes(%x: memref<16xi1>, %y: memref<1xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %all = scf.for %i = %c0 to %c16 step %c1 iter_args(%so_far = %true) -> (i1) {
    %v = memref.load %x[%i] : memref<16xi1>
    %next = arith.andi %so_far, %v : i1
    scf.yield %next : i1
  }
  memref.store %all, %y[%c0] : memref<1xi1>
  return
}

// -----

// What decides what the host does is copied to it.
// CHECK-LABEL: func @host_reads(
// CHECK-SAME:    %[[N:.*]]: memref<4xindex, strided<[?], offset: ?>>
// CHECK:         %[[COPY:.*]] = memref.alloca() : memref<index>
// CHECK:         %[[ELEMENT:.*]] = memref.subview %[[N]][2] [1] [1] : {{.*}} to memref<index, strided<[], offset: ?>>
// CHECK:         gpu.memcpy %[[COPY]], %[[ELEMENT]]
// CHECK:         %[[M:.*]] = memref.load %[[COPY]][]
// CHECK:         memref.alloc(%[[M]])
// REMARK: remark: {{.*}}decides what the host does: the host waits for the GPU to read it
func.func @host_reads(%n: memref<4xindex, strided<[?], offset: ?>>, %x: f32) -> memref<?xf32> {
  %c2 = arith.constant 2 : index
  %m = memref.load %n[%c2] : memref<4xindex, strided<[?], offset: ?>>
  %y = memref.alloc(%m) : memref<?xf32>
  linalg.fill ins(%x : f32) outs(%y : memref<?xf32>)
  return %y : memref<?xf32>
}

// -----

// A parallel loop around kernels is a loop of the host, which starts them one
// after another.
// CHECK-LABEL: func @kernels_in_parallel(
// CHECK-SAME:    %[[X:.*]]: memref<4x8xf32>
// CHECK:         scf.for %[[I:.*]] = %c0 to %c4 step %c1
// CHECK:           gpu.launch
// CHECK:             memref.store %{{.*}}, %[[X]][%[[I]], %{{.*}}]
// CHECK-NOT:     scf.forall
// CHECK:         return
func.func @kernels_in_parallel(%x: memref<4x8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
      memref.store %one, %x[%i, %tx] : memref<4x8xf32>
      gpu.terminator
    }
  }
  return
}

// -----

// The host's value of an operand's element is kept where the operand is written;
// of one that is only read, kernels load it themselves.
// CHECK-LABEL: func @written_operand(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xf32>, %[[Y:[a-z0-9]+]]: memref<8xf32>, %[[OUT:[a-z0-9]+]]: memref<8xf32>)
// CHECK:         %[[COPY:.*]] = memref.alloc() : memref<f32>
// CHECK:         gpu.launch
// CHECK:           %[[A:.*]] = memref.load %[[X]][%c1]
// CHECK:           memref.store %[[A]], %[[COPY]][]
// CHECK:         gpu.launch
// CHECK:           memref.store %{{.*}}, %[[X]]
// CHECK:         gpu.launch
// CHECK-DAG:       memref.load %[[COPY]][]
// CHECK-DAG:       memref.load %[[Y]][%c1]
func.func @written_operand(%x: memref<8xf32>, %y: memref<8xf32>, %out: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %a = memref.load %x[%c1] : memref<8xf32>
  %b = memref.load %y[%c1] : memref<8xf32>
  linalg.fill ins(%z : f32) outs(%x : memref<8xf32>)
  %s = arith.addf %a, %b : f32
  linalg.fill ins(%s : f32) outs(%out : memref<8xf32>)
  return
}
