// RUN: fovea-opt --convert-linalg-to-vector --canonicalize --split-input-file %s \
// RUN:   | FileCheck %s
// RUN: fovea-opt --convert-linalg-to-vector=vector-bytes=1 --canonicalize \
// RUN:   --split-input-file %s | FileCheck %s --check-prefix=SCALAR

// Whole vectors, then what is left; the outer loops are parallel.
// CHECK-LABEL: func.func @elementwise
// CHECK: scf.forall
// CHECK:   scf.for
// CHECK:     vector.load {{.*}} vector<16xf32>
// CHECK:     math.exp %{{.*}} : vector<16xf32>
// CHECK:     vector.store
// CHECK:   scf.for
// CHECK:     memref.load
// CHECK:     math.exp %{{.*}} : f32
// CHECK:     memref.store
// CHECK: machine.grain = 64
// SCALAR-LABEL: func.func @elementwise
// SCALAR: scf.forall
// SCALAR-NOT: vector
// SCALAR: math.exp %{{.*}} : f32
func.func @elementwise(%x: memref<4x?xf32>, %y: memref<4x?xf32>) {
  linalg.exp ins(%x : memref<4x?xf32>) outs(%y : memref<4x?xf32>)
  return
}

// -----

// A sum along the row: partial sums in the lanes, combined once.
// CHECK-LABEL: func.func @row_sum
// CHECK: %[[SUMS:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<16xf32>)
// CHECK: vector.reduction <add>, %[[SUMS]], %{{.*}} fastmath<reassoc> : vector<16xf32> into f32
// CHECK: memref.store
func.func @row_sum(%x: memref<4x64xf32>, %y: memref<4xf32>) {
  linalg.reduce { arith.addf } ins(%x : memref<4x64xf32>) outs(%y : memref<4xf32>)
      dimensions = [1]
  return
}

// -----

// A sum of columns goes along the columns.
// CHECK-LABEL: func.func @column_sum
// CHECK: vector.load %{{.*}} : memref<64xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>)
// CHECK:   vector.load %{{.*}} : memref<4x64xf32>, vector<16xf32>
// CHECK-NOT: vector.reduction
func.func @column_sum(%x: memref<4x64xf32>, %y: memref<64xf32>) {
  linalg.reduce { arith.addf } ins(%x : memref<4x64xf32>) outs(%y : memref<64xf32>)
      dimensions = [0]
  return
}

// -----

// What is the same in all lanes stays a scalar; a load of consecutive places is
// one load, another is a gather.
// CHECK-LABEL: func.func @captured
// CHECK-SAME: %[[T:[^:]*]]: memref<128xf32>, %[[U:[^:]*]]: memref<8xf32>
// CHECK-DAG: memref.load %[[U]]
// CHECK-DAG: vector.load %[[T]]{{.*}} vector<16xf32>
// CHECK-COUNT-16: memref.load %[[T]]
// CHECK: vector.from_elements
func.func @captured(%t: memref<128xf32>, %u: memref<8xf32>, %y: memref<8x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      outs(%y : memref<8x64xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %a = memref.load %u[%i] : memref<8xf32>
    %j1 = arith.addi %j, %c1 : index
    %b = memref.load %t[%j1] : memref<128xf32>
    %j2 = arith.addi %j, %j : index
    %c = memref.load %t[%j2] : memref<128xf32>
    %s = arith.addf %a, %b : f32
    %r = arith.addf %s, %c : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// What four neighbours share (a counter of random numbers) is computed once, in
// a quarter of the lanes.
// CHECK-LABEL: func.func @by_fours
// CHECK: %[[G:.*]] = arith.addi %{{.*}} : vector<16xi32>
// CHECK: arith.muli %[[G]], %[[G]] : vector<16xi32>
// CHECK: vector.shuffle {{.*}}[0, 0, 0, 0, 1, 1, 1, 1, 2,
// CHECK: vector.store %{{.*}} : memref<128xi32>, vector<64xi32>
func.func @by_fours(%y: memref<128xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]} outs(%y : memref<128xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    %two = arith.constant 2 : i32
    %g = arith.shrui %c, %two : i32
    %q = arith.muli %g, %g : i32
    %r = arith.addi %q, %c : i32
    linalg.yield %r : i32
  }
  return
}

// -----

// Elements of one bit are not vectors in memory.
// CHECK-LABEL: func.func @bits
// CHECK-NOT: vector.store
// CHECK: memref.store %{{.*}} : memref<64xi1>
func.func @bits(%x: memref<64xi1>, %y: memref<64xi1>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%x : memref<64xi1>) outs(%y : memref<64xi1>) {
  ^bb0(%a: i1, %o: i1):
    %t = arith.constant true
    %n = arith.xori %a, %t : i1
    linalg.yield %n : i1
  }
  return
}

// -----

// Iterations that may write the same element stay in order.
// CHECK-LABEL: func.func @overlap
// CHECK-NOT: scf.forall
// CHECK-NOT: vector
// CHECK: memref.store
func.func @overlap(%x: memref<1024x64xf32>, %y: memref<1087xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                   affine_map<(i, j) -> (i + j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<1024x64xf32>) outs(%y : memref<1087xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func @copies
// CHECK-NOT: memref.copy
// CHECK: vector.load
// CHECK-NOT: vector.load
// CHECK: return
func.func @copies(%x: memref<64xf32>, %y: memref<64xf32>) {
  memref.copy %x, %y : memref<64xf32> to memref<64xf32>
  memref.copy %x, %x : memref<64xf32> to memref<64xf32>
  return
}

// -----

// Tensors are not for this pass.
// CHECK-LABEL: func.func @tensors
// CHECK: linalg.exp
func.func @tensors(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = linalg.exp ins(%x : tensor<64xf32>) outs(%x : tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// Rows that lie where a table says: its entry is read once, and that of a row
// further on for a prefetch of each of its lines.
// CHECK-LABEL: func @gather
// CHECK-SAME: %[[TABLE:[^:]+]]: memref<?xindex>, %[[ROWS:[^:]+]]: memref<?x64xf32>, %[[OUT:[^:]+]]: memref<?x64xf32>
// CHECK: scf.for %[[I:.+]] = %c0
// CHECK:   %[[LAST:.+]] = arith.subi %{{.+}}, %c1
// CHECK:   %[[AHEAD:.+]] = arith.addi %[[I]], %c32
// CHECK:   %[[NEXT:.+]] = arith.minsi %[[AHEAD]], %[[LAST]]
// CHECK:   %[[ROW:.+]] = memref.load %[[TABLE]][%[[NEXT]]]
// CHECK-COUNT-4: memref.prefetch %[[ROWS]][%[[ROW]], %c{{.+}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK:   %[[OWN:.+]] = memref.load %[[TABLE]][%[[I]]]
// CHECK:   scf.for %[[J:.+]] = %c0
// CHECK-NOT: memref.load
// CHECK:     %[[X:.+]] = vector.load %[[ROWS]][%[[OWN]], %[[J]]]
// CHECK:     vector.store %[[X]], %[[OUT]][%[[I]], %[[J]]]
func.func @gather(%table: memref<?xindex>, %rows: memref<?x64xf32>, %out: memref<?x64xf32>) {
  %c1 = arith.constant 1 : index
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%out : memref<?x64xf32>) {
    ^bb0(%unused: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %row = memref.load %table[%i] : memref<?xindex>
      %x = memref.load %rows[%row, %j] : memref<?x64xf32>
      linalg.yield %x : f32
    }
  }
  return
}

// -----

// Rows that follow one another need no prefetch, and columns of which there may
// be none no load ahead of them.
// CHECK-LABEL: func @in_order
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     memref.load %arg0
func.func @in_order(%factors: memref<?xf32>, %rows: memref<?x?xf32>, %out: memref<?x?xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%out : memref<?x?xf32>) {
    ^bb0(%unused: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %factor = memref.load %factors[%i] : memref<?xf32>
      %x = memref.load %rows[%i, %j] : memref<?x?xf32>
      %y = arith.mulf %x, %factor : f32
      linalg.yield %y : f32
    }
  }
  return
}

// -----

// In a reduction nothing is computed ahead.
// CHECK-LABEL: func @gather_and_sum
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @gather_and_sum(%table: memref<?xindex>, %rows: memref<?x64xf32>, %weights: memref<64xf32>, %out: memref<?xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%weights : memref<64xf32>) outs(%out : memref<?xf32>) {
    ^bb0(%weight: f32, %sum: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %row = memref.load %table[%i] : memref<?xindex>
      %x = memref.load %rows[%row, %j] : memref<?x64xf32>
      %product = arith.mulf %x, %weight : f32
      %y = arith.addf %product, %sum : f32
      linalg.yield %y : f32
    }
  }
  return
}
