// RUN: fovea-opt %s --convert-attn-to-vector | FileCheck %s

// The keys of three queries are read in lines of two vectors of features, and
// converted in registers; the line 16 kB behind is asked for. The lanes of 12 sums, of
// four keys, are added up by four steps: a lane of each key is empty.
// CHECK-LABEL: func @three
// CHECK-SAME: %{{.*}}: memref<1x1x64x16xf32>, %[[K:[^:]*]]: memref<1x1x128x64xf16>, %[[V:[^:]*]]: memref<1x1x128x32xf16>
// CHECK-NOT: memref<128x64xf32>
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}}: memref<3x64xf32>
// CHECK: %[[SCORES:.*]] = memref.alloca() {{.*}}: memref<1x512xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64{{.*}} step %c1{{(_[0-9]+)?}} {
// CHECK-COUNT-3: memref.store %{{.*}}, %[[ROWS]]
// CHECK: %[[USED:.*]] = arith.constant dense<[true, true, true, false, true, true, true, false,
// CHECK: %[[LOWEST:.*]] = scf.for %{{.*}} = %{{.*}} to %c128{{.*}} step %c4
// CHECK: %[[EXISTS:.*]] = vector.create_mask
// CHECK: %[[KEPT:.*]] = arith.andi %[[EXISTS]], %[[USED]] : vector<16xi1>
// CHECK: %[[KEY:.*]] = arith.minsi
// CHECK-NEXT: %[[ROWS_AHEAD:.*]] = arith.constant 128 : index
// CHECK-NEXT: %[[AHEAD:.*]] = arith.addi %[[KEY]], %[[ROWS_AHEAD]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64{{.*}} step %c32
// CHECK-COUNT-6: vector.load %[[ROWS]]
// CHECK: memref.prefetch %[[K]][%{{.*}}, %{{.*}}, %[[AHEAD]], %{{.*}}], read, locality<2>, data
// CHECK: %[[X:.*]] = vector.load %[[K]][%{{.*}}, %{{.*}}, %[[KEY]], %{{.*}}] {{.*}} vector<16xf16>
// CHECK: %[[F:.*]] = arith.extf %[[X]]
// CHECK: %[[Y:.*]] = vector.load %[[K]]{{.*}} vector<16xf16>
// CHECK: %[[G:.*]] = arith.extf %[[Y]]
// CHECK: vector.fma %[[F]]
// CHECK: vector.fma %[[G]]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 16, 17,
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 16, 17, 18, 19,
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16,

// All four keys' scores are one vector up to the weights. The maxima of eight and
// then of four keys' lanes are the queries'; rows beyond the third repeat it.
// CHECK: %[[SCORE:.*]] = arith.select %[[KEPT]],
// CHECK: vector.store %[[SCORE]], %[[SCORES]]
// CHECK: arith.cmpf ogt, %[[SCORE]], %{{.*}}
// CHECK: vector.shuffle %[[LOWEST]], %[[LOWEST]] [8, 9, 10, 11, 12, 13, 14, 15, 0,
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
// CHECK: %[[SHIFT:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 0, 1, 2, 3, 0,
// CHECK: scf.for %{{.*}} = %{{.*}} to %c128{{.*}} step %c4
// CHECK: %[[S:.*]] = vector.load %[[SCORES]]
// CHECK: arith.subf %[[S]], %[[SHIFT]]
// CHECK: vector.store {{.*}}, %[[SCORES]]

// Values are converted where they are read, too.
// CHECK: memref.prefetch %[[V]]
// CHECK: vector.load %[[V]]{{.*}} vector<16xf16>
// CHECK-NEXT: arith.extf
func.func @three(%q: memref<1x1x64x16xf32>, %k: memref<1x1x128x64xf16>, %v: memref<1x1x128x32xf16>,
                 %acc: memref<1x1x16x32xf32>, %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c3 = arith.constant 3 : index
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x128x64xf16>, memref<1x1x128x32xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
  return
}

// In bf16 a line's even numbers are one vector, and its odd ones another: queries and
// sums lie as these do.
// CHECK-LABEL: func @pairs
// CHECK-SAME: %{{.*}}: memref<1x1x64x16xf32>, %[[K:[^:]*]]: memref<1x1x128x64xbf16>, %[[V:[^:]*]]: memref<1x1x128x32xbf16>, %[[ACC:[^:]*]]: memref<1x1x16x32xf32>
// CHECK: scf.for %[[LINE:.*]] = %{{.*}} to %c64{{.*}} step %c32
// CHECK: scf.for %[[LANE:.*]] = %{{.*}} to %c16
// CHECK: %[[TWICE:.*]] = arith.muli %[[LANE]], %c2
// CHECK: arith.addi %[[LINE]], %[[TWICE]]
// CHECK: arith.addi %[[LINE]], %[[LANE]]
// CHECK: %[[X:.*]] = vector.load %[[K]]{{.*}} vector<32xbf16>
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[X]] : vector<32xbf16> to vector<16xi32>
// CHECK: %[[C16:.*]] = arith.constant dense<16> : vector<16xi32>
// CHECK: arith.shli %[[WORDS]], %[[C16]]
// CHECK: %[[UPPER:.*]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK: arith.andi %[[WORDS]], %[[UPPER]]
// CHECK: vector.load %[[ACC]]
// CHECK: vector.shuffle %[[LOW:.*]], %[[HIGH:.*]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.shuffle %[[LOW]], %[[HIGH]] [1, 3, 5,
// CHECK: vector.load %[[V]]{{.*}} vector<32xbf16>
// CHECK: vector.shuffle %[[EVEN:.*]], %[[ODD:.*]] [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23]
// CHECK: vector.shuffle %[[EVEN]], %[[ODD]] [8, 24, 9,
func.func @pairs(%q: memref<1x1x64x16xf32>, %k: memref<1x1x128x64xbf16>, %v: memref<1x1x128x32xbf16>,
                 %acc: memref<1x1x16x32xf32>, %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c1 = arith.constant 1 : index
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x128x64xbf16>, memref<1x1x128x32xbf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c1)
  return
}

// A region takes each key's scores for itself.
// CHECK-LABEL: func @region
// CHECK: memref.alloca() {{.*}}: memref<128x16xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6]
func.func @region(%q: memref<1x1x64x16xf32>, %k: memref<1x1x128x64xf16>, %v: memref<1x1x128x32xf16>,
                  %acc: memref<1x1x16x32xf32>, %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c3 = arith.constant 3 : index
  attn.online_attention scale(0.125) update(all) ins(%q, %k, %v : memref<1x1x64x16xf32>, memref<1x1x128x64xf16>, memref<1x1x128x32xf16>)
    outs(%acc, %max, %sum : memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>) packed(%c3)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    }
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
