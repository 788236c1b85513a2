// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse --split-input-file | FileCheck %s

// 64 keys and queries with 32 features, values of 64.

// CHECK-LABEL: func @block
// CHECK-SAME: %[[Q:[a-z0-9]*]]: memref<1x1x64x32xbf16>, %[[DO:[a-z0-9]*]]: memref<1x1x64x64xbf16>, %[[K:[a-z0-9]*]]: memref<1x1x64x32xbf16>, %[[V:[a-z0-9]*]]: memref<1x1x64x64xbf16>
// CHECK-SAME: %[[PQ:[a-z0-9]*]]: memref<1x1x16x128xbf16>, %[[PDO:[a-z0-9]*]]: memref<1x1x32x128xbf16>
// CHECK-SAME: %[[DQ:[a-z0-9]*]]: memref<1x1x64x32xf32>, %[[DK:[a-z0-9]*]]: memref<1x1x64x32xf32>, %[[DV:[a-z0-9]*]]: memref<1x1x64x64xf32>
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK: call @fovea_use_matrix_tiles() : () -> ()

// Pairs of queries are 16 apart, once for all keys.
// CHECK: scf.for %{{.*}} step %[[C32]] {
// CHECK: %[[FIRST:.*]] = arith.addi
// CHECK: vector.load %[[Q]][{{.*}}, %[[FIRST]],
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[C16]]
// CHECK: vector.load %[[Q]][{{.*}}, %[[SECOND]],
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK: vector.store {{.*}}, %[[QUERIES:.*]][
// CHECK: vector.load %[[DO]]
// CHECK: vector.store {{.*}}, %[[GRADIENTS:.*]][

// Keys and values are read as they lie; pairs of keys are neighbours.
// CHECK: memref.subview %[[K]]
// CHECK: %[[KEYS:.*]] = memref.cast
// CHECK: memref.subview %[[V]]
// CHECK: %[[VALUES:.*]] = memref.cast
// CHECK: scf.for %{{.*}} step %[[C2]] {
// CHECK: vector.load %[[K]]
// CHECK: vector.store {{.*}}, %[[PAIRS:.*]][

// Scores, 16 keys times four tiles of queries; the probabilities, with the factor.
// CHECK: scf.for {{.*}} step %[[C16]] {
// CHECK: amx.tile_load %[[KEYS]]
// CHECK: amx.tile_load %[[PQ]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[P:[a-z0-9_]*]][
// CHECK: %[[SCORE:.*]] = vector.load %[[P]]
// CHECK: vector.fma %[[SCORE]], %[[FACTOR]], %{{.*}} : vector<16xf32>

// Their gradients, over 64 features of values; both are rounded, two vectors of
// queries to a line.
// CHECK: amx.tile_load %[[VALUES]]
// CHECK: amx.tile_load %[[PDO]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[S:[a-z0-9_]*]][
// CHECK: scf.for
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: vector.store {{.*}}, %[[WEIGHTS:.*]][{{.*}}vector<32xbf16>
// CHECK: vector.store {{.*}}, %[[S]]
// CHECK: vector.store {{.*}}, %[[ROWS:.*]][{{.*}}vector<32xbf16>

// The gradients once more, those of a query in a row.
// CHECK: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-COUNT-16: vector.store {{.*}}, %[[COLUMNS:.*]][

// Sums of 16 rows stay in tiles for all queries, or for all keys.
// CHECK: %[[OWN:.*]] = memref.subview %[[DV]]
// CHECK: %[[SUMS:.*]] = arith.select
// CHECK-COUNT-4: amx.tile_load %[[SUMS]]
// CHECK: amx.tile_load %[[WEIGHTS]]
// CHECK: amx.tile_load %[[GRADIENTS]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: memref.subview %[[DK]]
// CHECK: amx.tile_load %[[ROWS]]
// CHECK: amx.tile_load %[[QUERIES]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: memref.subview %[[DQ]]
// CHECK: amx.tile_load %[[COLUMNS]]
// CHECK: amx.tile_load %[[PAIRS]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
func.func @block(%q: memref<1x1x64x32xbf16>, %do: memref<1x1x64x64xbf16>,
    %k: memref<1x1x64x32xbf16>, %v: memref<1x1x64x64xbf16>,
    %lse: memref<1x1x64xf32>, %delta: memref<1x1x64xf32>,
    %pq: memref<1x1x16x128xbf16>, %pdo: memref<1x1x32x128xbf16>,
    %dq: memref<1x1x64x32xf32>, %dk: memref<1x1x64x32xf32>, %dv: memref<1x1x64x64xf32>) {
  attn.online_backward scale(0.125)
      packed(%pq, %pdo : memref<1x1x16x128xbf16>, memref<1x1x32x128xbf16>)
      ins(%q, %do, %k, %v, %lse, %delta
          : memref<1x1x64x32xbf16>, memref<1x1x64x64xbf16>, memref<1x1x64x32xbf16>,
            memref<1x1x64x64xbf16>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      outs(%dq, %dk, %dv : memref<1x1x64x32xf32>, memref<1x1x64x32xf32>, memref<1x1x64x64xf32>)
  return
}

// -----

// Keys whose features are not contiguous are copied; a negative factor comes
// before the probabilities; queries that a mask keeps from a block of keys are
// zeros there.

// CHECK-LABEL: func @strided
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant dense<-0.180336878> : vector<16xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: %[[COPY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xbf16>
// CHECK: memref.load {{.*}} : memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>
// CHECK: memref.store {{.*}}, %[[COPY]]
// CHECK: amx.tile_load %[[COPY]]
// CHECK: arith.mulf {{.*}}, %[[FACTOR]]
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, {{.*}}, %[[ZERO]]
// CHECK: arith.select %[[NONE]], %[[ZERO]],
func.func @strided(%q: memref<1x1x64x32xbf16>, %k: memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>,
    %l: memref<1x1x64xf32>, %pq: memref<1x1x16x128xbf16>, %dq: memref<1x1x64x32xf32>) {
  attn.online_backward scale(-0.125)
      packed(%pq, %pq : memref<1x1x16x128xbf16>, memref<1x1x16x128xbf16>)
      ins(%q, %q, %k, %q, %l, %l
          : memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>,
            memref<1x1x64x32xbf16>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      outs(%dq, %dq, %dq : memref<1x1x64x32xf32>, memref<1x1x64x32xf32>, memref<1x1x64x32xf32>)
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %keep = arith.cmpi sge, %i, %j : index
        attn.yield %keep : i1
      }
  return
}

// -----

// In f16 keys and values, too, are copied in two parts, and so are P and S: three
// products of tiles for each.

// CHECK-LABEL: func @half
// CHECK-SAME: %[[PQ:[a-z0-9]*]]: memref<1x1x32x128xbf16>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x128xbf16>
// CHECK-DAG: %[[PAIRS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x64xbf16>
// CHECK: amx.tile_load %{{.*}} : memref<32x64xbf16> into
// CHECK: amx.tile_load %[[PQ]]
// CHECK-COUNT-12: amx.tile_mulf
// CHECK-NEXT: amx.tile_store
// CHECK: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK: amx.tile_load %[[WEIGHTS]]
// CHECK: amx.tile_load %[[PAIRS]]
// CHECK-COUNT-6: amx.tile_mulf
func.func @half(%q: memref<1x1x64x32xf16>, %k: memref<1x1x32x32xf16>, %l: memref<1x1x64xf32>,
    %pq: memref<1x1x32x128xbf16>, %dq: memref<1x1x64x32xf32>, %dk: memref<1x1x32x32xf32>) {
  attn.online_backward scale(0.125)
      packed(%pq, %pq : memref<1x1x32x128xbf16>, memref<1x1x32x128xbf16>)
      ins(%q, %q, %k, %k, %l, %l
          : memref<1x1x64x32xf16>, memref<1x1x64x32xf16>, memref<1x1x32x32xf16>,
            memref<1x1x32x32xf16>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      outs(%dq, %dk, %dk : memref<1x1x64x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>)
  return
}
