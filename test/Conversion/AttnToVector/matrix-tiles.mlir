// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse --split-input-file | FileCheck %s

// One block of 64 keys with 32 features, 48 queries in pairs of features; values
// of 80 features, for which five tiles of sums take two rounds.

// CHECK-LABEL: func @block
// CHECK-SAME: %[[Q:.*]]: memref<1x1x16x96xbf16>, %[[K:.*]]: memref<1x1x64x32xbf16>, %[[V:.*]]: memref<1x1x64x80xbf16>, %[[ACC:[a-z0-9]*]]: memref<1x1x48x80xf32>
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x48xf32>
// CHECK-DAG: %[[KEYS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xbf16>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<48x64xbf16>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x160xbf16>
// CHECK: call @fovea_use_matrix_tiles() : () -> ()

// The block's keys are copied as they lie.
// CHECK: scf.for
// CHECK: vector.load %[[K]]
// CHECK: vector.store {{.*}}, %[[KEYS]]

// 16 keys times 3 tiles of queries; then the factor, and the maximum.
// CHECK: scf.for %[[KEY:.*]] = {{.*}} step %[[C16]] {
// CHECK-COUNT-3: amx.tile_zero : !amx.tile<16x16xf32>
// CHECK: %[[LEFT:.*]] = amx.tile_load %[[KEYS]][%[[KEY]], {{.*}}] {{.*}} into !amx.tile<16x32xbf16>
// CHECK: %[[RIGHT:.*]] = amx.tile_load %[[Q]]
// CHECK: amx.tile_mulf %[[LEFT]], %[[RIGHT]]
// CHECK-COUNT-2: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-3: amx.tile_store %[[P]]
// CHECK: scf.for
// CHECK: arith.mulf {{.*}}, %[[FACTOR]]
// CHECK: vector.store {{.*}}, %[[P]]

// Pairs of keys of the values; weights of a query in a row.
// CHECK: vector.load %[[V]]
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK: vector.store {{.*}}, %[[VALUES]]
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-COUNT-16: vector.store {{.*}}, %[[WEIGHTS]]

// The accumulator is rescaled; sums of four tiles, then of one.
// CHECK: vector.store {{.*}}, %[[ACC]]
// CHECK-COUNT-4: amx.tile_load %[[ACC]]
// CHECK: amx.tile_load %[[WEIGHTS]]
// CHECK: amx.tile_load %[[VALUES]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[ACC]]
// CHECK: amx.tile_load %[[ACC]]
// CHECK-COUNT-2: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: amx.tile_store %[[ACC]]
// CHECK-NOT: amx.tile_mulf
// CHECK: func private @fovea_use_matrix_tiles()
func.func @block(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16>,
    %v: memref<1x1x64x80xbf16>, %acc: memref<1x1x48x80xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x80xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x80xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

// Features that are not contiguous are read one by one. The maximum alone needs
// no values.

// CHECK-LABEL: func @strided
// CHECK: memref.load {{.*}} : memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>
// CHECK-COUNT-3: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
func.func @strided(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x48x16xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(max)
      ins(%q, %k, %v : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x16xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

// Pairs of features of 16 queries: a transpose of 32-bit elements.

// CHECK-LABEL: func @pack
// CHECK-SAME: %[[Q:.*]]: memref<1x1x?x64xbf16>, %[[P:.*]]: memref<1x1x32x32xbf16>
// CHECK-COUNT-16: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK-NOT: arith.mulf
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-16: vector.store {{.*}}, %[[P]]
func.func @pack(%q: memref<1x1x?x64xbf16>, %p: memref<1x1x32x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xbf16>) outs(%p : memref<1x1x32x32xbf16>)
  return
}

// -----

// CHECK-LABEL: func @pack_strided
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: vector
func.func @pack_strided(%q: memref<1x1x?x64xbf16, strided<[?, ?, ?, 2]>>, %p: memref<1x1x32x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xbf16, strided<[?, ?, ?, 2]>>) outs(%p : memref<1x1x32x32xbf16>)
  return
}
