// RUN: fovea-opt %s --convert-attn-to-vector --split-input-file | FileCheck %s

// Three queries read keys and values where a table says that they lie. The copies are
// no more: lists of places are made instead, and rows are found in these.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func @pages
// CHECK-SAME: %[[TABLE:[^:]*]]: memref<?xindex>, %[[POOL:[^:]*]]: memref<?x16x64xf16, strided<[?, ?, 1], offset: ?>>,
// CHECK-NOT: memref<1x1x?x64xf16>
// CHECK: memref.extract_strided_metadata %[[POOL]]
// CHECK-SAME: -> memref<f16>, index, index, index, index, index, index
// CHECK: %[[PLACES:.*]] = memref.alloc(%{{.*}}) {{.*}}: memref<?xindex>
// CHECK: linalg.generic {{.*}} outs(%[[PLACES]] : memref<?xindex>)
// CHECK:   %[[KEY:.*]] = linalg.index 0
// CHECK:   %[[PAGE:.*]] = arith.divui %[[KEY]]
// CHECK:   memref.load %[[TABLE]][%[[PAGE]]]
// CHECK:   linalg.yield
// CHECK: %[[MEMORY:.*]] = memref.reinterpret_cast {{.*}} strides: [1, 1, 1, 1]
// CHECK: memref.alloc(%{{.*}}) {{.*}}: memref<?xindex>
// CHECK: linalg.generic
// CHECK: %[[PLACE:.*]] = memref.load %[[PLACES]]
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK: %[[NEXT:.*]] = arith.minsi %{{.*}}, %[[LAST]]
// CHECK: %[[AHEAD:.*]] = memref.load %[[PLACES]][%[[NEXT]]]
// CHECK: memref.prefetch %[[MEMORY]][%{{.*}}, %{{.*}}, %[[AHEAD]], %{{.*}}], read
// CHECK: vector.load %[[MEMORY]][%{{.*}}, %{{.*}}, %[[PLACE]], %{{.*}}]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @pages(%table: memref<?xindex>, %pool: memref<?x16x64xf16, strided<[?, ?, 1], offset: ?>>, %keys: index,
                 %q: memref<1x1x64x16xf32>) {
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %acc = memref.alloca() : memref<1x1x16x64xf32>
  %max = memref.alloca() : memref<1x1x16xf32>
  %sum = memref.alloca() : memref<1x1x16xf32>
  %k = memref.alloc(%keys) : memref<1x1x?x64xf16>
  %v = memref.alloc(%keys) : memref<1x1x?x64xf16>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%k : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %entry = arith.divui %key, %c16 : index
    %slot = arith.remui %key, %c16 : index
    %page = memref.load %table[%entry] : memref<?xindex>
    %x = memref.load %pool[%page, %slot, %d] : memref<?x16x64xf16, strided<[?, ?, 1], offset: ?>>
    linalg.yield %x : f16
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%v : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %entry = arith.divui %key, %c16 : index
    %slot = arith.remui %key, %c16 : index
    %page = memref.load %table[%entry] : memref<?xindex>
    %x = memref.load %pool[%page, %slot, %d] : memref<?x16x64xf16, strided<[?, ?, 1], offset: ?>>
    linalg.yield %x : f16
  }
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  memref.dealloc %k : memref<1x1x?x64xf16>
  memref.dealloc %v : memref<1x1x?x64xf16>
  return
}

// -----

// One copy of keys that are values, too.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func @both
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @both(%table: memref<?xindex>, %pool: memref<?x64xf16>, %keys: index, %q: memref<1x1x64x16xf32>) {
  %c3 = arith.constant 3 : index
  %acc = memref.alloca() : memref<1x1x16x64xf32>
  %max = memref.alloca() : memref<1x1x16xf32>
  %sum = memref.alloca() : memref<1x1x16xf32>
  %k = memref.alloc(%keys) : memref<1x1x?x64xf16>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%k : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %row = memref.load %table[%key] : memref<?xindex>
    %x = memref.load %pool[%row, %d] : memref<?x64xf16>
    linalg.yield %x : f16
  }
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %k : memref<1x1x64x16xf32>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  memref.dealloc %k : memref<1x1x?x64xf16>
  return
}

// -----

// Left alone: keys that are computed from what is read, values whose feature is not
// the last index.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func @computed
// CHECK: linalg.generic {{.*}} outs(%[[K:.*]] : memref<1x1x?x64xf16>)
// CHECK: linalg.generic {{.*}} outs(%[[V:.*]] : memref<1x1x?x64xf16>)
// CHECK-NOT: memref<?xindex>,
// CHECK: vector.load %[[K]]
// CHECK: vector.load %[[V]]
func.func @computed(%rows: memref<?x64xf16>, %columns: memref<64x?xf16>, %keys: index, %q: memref<1x1x64x16xf32>) {
  %c3 = arith.constant 3 : index
  %acc = memref.alloca() : memref<1x1x16x64xf32>
  %max = memref.alloca() : memref<1x1x16xf32>
  %sum = memref.alloca() : memref<1x1x16xf32>
  %k = memref.alloc(%keys) : memref<1x1x?x64xf16>
  %v = memref.alloc(%keys) : memref<1x1x?x64xf16>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%k : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = memref.load %rows[%key, %d] : memref<?x64xf16>
    %y = arith.negf %x : f16
    linalg.yield %y : f16
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%v : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = memref.load %columns[%d, %key] : memref<64x?xf16>
    linalg.yield %x : f16
  }
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  memref.dealloc %k : memref<1x1x?x64xf16>
  memref.dealloc %v : memref<1x1x?x64xf16>
  return
}

// -----

// Left alone: rows that are written before they are read, and a copy with another
// reader.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func @written
// CHECK: linalg.generic {{.*}} outs(%[[K:.*]] : memref<1x1x?x64xf16>)
// CHECK: linalg.generic {{.*}} outs(%[[V:.*]] : memref<1x1x?x64xf16>)
// CHECK: memref.store
// CHECK: vector.load %[[K]]
// CHECK: vector.load %[[V]]
func.func @written(%rows: memref<?x64xf16>, %others: memref<?x64xf16>, %keys: index, %q: memref<1x1x64x16xf32>) -> f16 {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f16
  %acc = memref.alloca() : memref<1x1x16x64xf32>
  %max = memref.alloca() : memref<1x1x16xf32>
  %sum = memref.alloca() : memref<1x1x16xf32>
  %k = memref.alloc(%keys) : memref<1x1x?x64xf16>
  %v = memref.alloc(%keys) : memref<1x1x?x64xf16>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%k : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = memref.load %rows[%key, %d] : memref<?x64xf16>
    linalg.yield %x : f16
  }
  memref.store %zero, %rows[%c0, %c0] : memref<?x64xf16>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%v : memref<1x1x?x64xf16>) {
  ^bb0(%out: f16):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = memref.load %others[%key, %d] : memref<?x64xf16>
    linalg.yield %x : f16
  }
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  %first = memref.load %v[%c0, %c0, %c0, %c0] : memref<1x1x?x64xf16>
  memref.dealloc %k : memref<1x1x?x64xf16>
  memref.dealloc %v : memref<1x1x?x64xf16>
  return %first : f16
}

// -----

// Left alone: more queries than rows would be read once for.

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func @many
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : memref<1x1x?x64xf32>)
func.func @many(%rows: memref<?x64xf32>, %keys: index, %q: memref<1x1x64x16xf32>) {
  %c16 = arith.constant 16 : index
  %acc = memref.alloca() : memref<1x1x16x64xf32>
  %max = memref.alloca() : memref<1x1x16xf32>
  %sum = memref.alloca() : memref<1x1x16xf32>
  %k = memref.alloc(%keys) : memref<1x1x?x64xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%k : memref<1x1x?x64xf32>) {
  ^bb0(%out: f32):
    %key = linalg.index 2 : index
    %d = linalg.index 3 : index
    %x = memref.load %rows[%key, %d] : memref<?x64xf32>
    linalg.yield %x : f32
  }
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %k : memref<1x1x64x16xf32>, memref<1x1x?x64xf32>, memref<1x1x?x64xf32>)
    outs(%acc, %max, %sum : memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c16)
  memref.dealloc %k : memref<1x1x?x64xf32>
  return
}
