// RUN: fovea-opt %s --convert-attn-to-vector | FileCheck %s

// The keys of three queries are read as vectors of features, and converted in
// registers: the lanes of 12 sums, of four keys, are added up by four steps.
// CHECK-LABEL: func @three
// CHECK-SAME: %{{.*}}: memref<1x1x64x16xf32>, %[[K:[^:]*]]: memref<1x1x128x64xf16>, %[[V:[^:]*]]: memref<1x1x128x32xf16>
// CHECK-NOT: memref<128x64xf32>
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}}: memref<3x64xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64{{.*}} step %c1{{(_[0-9]+)?}} {
// CHECK-COUNT-3: memref.store %{{.*}}, %[[ROWS]]
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64{{.*}} step %c16
// CHECK-COUNT-3: vector.load %[[ROWS]]
// CHECK: %[[X:.*]] = vector.load %[[K]]{{.*}} vector<16xf16>
// CHECK: %[[F:.*]] = arith.extf %[[X]]
// CHECK-COUNT-3: vector.fma %[[F]]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 16, 17,
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 16, 17, 18, 19,
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16,
// Rows beyond the third repeat it.
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
// Values are converted where they are read, too.
// CHECK: vector.load %[[V]]{{.*}} vector<16xf16>
// CHECK-NEXT: arith.extf
func.func @three(%q: memref<1x1x64x16xf32>, %k: memref<1x1x128x64xf16>, %v: memref<1x1x128x32xf16>,
                 %acc: memref<1x1x16x32xf32>, %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c3 = arith.constant 3 : index
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x128x64xf16>, memref<1x1x128x32xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  return
}

// More than half of a vector, or features that are no whole vectors: queries are in
// lanes.
// CHECK-LABEL: func @nine
// CHECK-NOT: vector.shuffle
// CHECK: return
func.func @nine(%q: memref<1x1x64x16xf32>, %k: memref<1x1x128x64xf16>, %v: memref<1x1x128x32xf16>, %p: memref<1x1x40x16xf32>,
                %l: memref<1x1x128x40xf16>, %acc: memref<1x1x16x32xf32>, %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x128x64xf16>, memref<1x1x128x32xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c9)
  attn.online_attention scale(0.125) update(all) ins(%p, %l, %v : memref<1x1x40x16xf32>, memref<1x1x128x40xf16>, memref<1x1x128x32xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  return
}
