// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Only reads have clamped coordinates: the diagonal is compared at those of the
// element. A tile that has all of its keys has no clamps of keys, and no test
// that they exist. Numbers of 64 bits that are read may have any value, and keep
// their bits.

// CHECK-LABEL: func @documents
// CHECK:         tile.mma
// CHECK:         %[[SHORT:.*]] = arith.cmpi slt, %[[N:.*]], %c64{{ }}
// CHECK:         %[[NEEDED:.*]] = arith.ori %{{.*}}, %[[SHORT]]
// CHECK:         scf.if %[[NEEDED]]
// CHECK-NEXT:      scf.if %[[SHORT]]
// CHECK-NEXT:      tile.map ins(%{{.*}}) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-DAG:       %[[EXISTS:.*]] = arith.cmpi slt, %[[C]], %[[N]]
// CHECK-DAG:       %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]] : index
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %{{.*}}, %[[C]] : index
// CHECK-DAG:       %[[SEEN:.*]] = arith.cmpi sge, %[[ROW]], %[[KEY]] : index
// CHECK-DAG:       %[[R32:.*]] = arith.index_cast %[[R]] : index to i32
// CHECK-DAG:       %[[C32:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK-DAG:       %[[ROW32:.*]] = arith.minsi %[[R32]], %{{.*}} : i32
// CHECK-DAG:       %[[KEY32:.*]] = arith.minsi %[[C32]], %{{.*}} : i32
// CHECK-DAG:       %[[ROWPLACE32:.*]] = arith.addi %{{.*}}, %[[ROW32]] : i32
// CHECK-DAG:       %[[KEYPLACE32:.*]] = arith.addi %{{.*}}, %[[KEY32]] : i32
// CHECK-DAG:       %[[ROWPLACE:.*]] = arith.index_castui %[[ROWPLACE32]] : i32 to index
// CHECK-DAG:       %[[KEYPLACE:.*]] = arith.index_castui %[[KEYPLACE32]] : i32 to index
// CHECK-DAG:       %[[ROWID:.*]] = memref.load %{{.*}}[%[[ROWPLACE]]]
// CHECK-DAG:       %[[KEYID:.*]] = memref.load %{{.*}}[%[[KEYPLACE]]]
// CHECK:           %[[SAME:.*]] = arith.cmpi eq, %[[ROWID]], %[[KEYID]] : i64
// CHECK:           tile.yield
// CHECK:         } else {
// CHECK-NEXT:      tile.map ins(%{{.*}}) {
// CHECK-NEXT:    ^bb0(%{{[^:]*}}: f32, %[[R2:[^:]*]]: index, %[[C2:[^:]*]]: index):
// CHECK-NOT:       arith.cmpi slt
// CHECK-DAG:       %[[KEY2:.*]] = arith.addi %{{.*}}, %[[C2]] : index
// CHECK-DAG:       arith.cmpi sge, %{{.*}}, %[[KEY2]] : index
// CHECK-DAG:       arith.index_cast %[[R2]] : index to i32
// CHECK-DAG:       arith.minsi
// CHECK-DAG:       memref.load %{{.*}}[%[[KEY2]]]
// CHECK-NOT:       arith.minsi
// CHECK:           tile.yield
func.func @documents(%q: tensor<2x4x?x64xf16>, %ids: tensor<?xi64>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %seen = arith.cmpi sge, %i, %j : index
    %x = tensor.extract %ids[%i] : tensor<?xi64>
    %y = tensor.extract %ids[%j] : tensor<?xi64>
    %same = arith.cmpi eq, %x, %y : i64
    %keep = arith.andi %seen, %same : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Quotients and remainders of coordinates have 32 bits and no sign. The larger of
// a number and its opposite is compared as both are, with the query's part on one
// side and the key's on the other, which is not negated. To know in each step whether a warp group's own
// rows need this mask would take longer than it saves.

// CHECK-LABEL: func @neighbourhood
// CHECK-NOT:     tile.of_rows
// CHECK:         tile.mma
// CHECK:         tile.map ins(%{{.*}}) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-NOT:       arith.max
// CHECK-DAG:       %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]] : index
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %{{.*}}, %[[C]] : index
// CHECK-DAG:       %[[I:.*]] = arith.index_cast %[[ROW]] : index to i32
// CHECK-DAG:       %[[J:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK-DAG:       %[[Y:.*]] = arith.divui %[[I]], %c50_i32 : i32
// CHECK-DAG:       %[[Z:.*]] = arith.divui %[[J]], %c50_i32 : i32
// CHECK-DAG:       %[[TOP:.*]] = arith.addi %[[Y]], %c-6_i32 overflow<nsw> : i32
// CHECK-DAG:       arith.cmpi sle, %[[TOP]], %[[Z]] : i32
// CHECK-DAG:       %[[U:.*]] = arith.remui %[[I]], %c50_i32 : i32
// CHECK-DAG:       %[[V:.*]] = arith.remui %[[J]], %c50_i32 : i32
// CHECK-DAG:       %[[FROM:.*]] = arith.addi %[[U]], %c-6_i32 overflow<nsw> : i32
// CHECK-DAG:       arith.cmpi sle, %[[FROM]], %[[V]] : i32
// CHECK-DAG:       %[[TO:.*]] = arith.addi %[[U]], %c6_i32 overflow<nsw> : i32
// CHECK-DAG:       arith.cmpi sle, %[[V]], %[[TO]] : i32
// CHECK-NOT:       arith.subi %c0_i32
// CHECK:           tile.yield
func.func @neighbourhood(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c6 = arith.constant 6 : index
    %width = arith.constant 50 : index
    %y = arith.divsi %i, %width : index
    %z = arith.divsi %j, %width : index
    %rows = arith.subi %y, %z : index
    %up = arith.subi %c0, %rows : index
    %height = arith.maxsi %rows, %up : index
    %near = arith.cmpi sle, %height, %c6 : index
    %u = arith.remsi %i, %width : index
    %v = arith.remsi %j, %width : index
    %columns = arith.subi %u, %v : index
    %left = arith.subi %c0, %columns : index
    %distance = arith.maxsi %columns, %left : index
    %beside = arith.cmpi sle, %distance, %c6 : index
    %keep = arith.andi %near, %beside : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Every second key, and every third: both coordinates have the same remainder.
// The window is compared by the difference of the coordinates, which elements
// share.

// CHECK-LABEL: func @dilated
// CHECK:         tile.mma
// CHECK:         tile.map ins(%{{.*}}) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-DAG:       %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]] : index
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %{{.*}}, %[[C]] : index
// CHECK-DAG:       %[[D:.*]] = arith.subi %[[ROW]], %[[KEY]] : index
// CHECK-DAG:       arith.cmpi sle, %[[D]], %c64 : index
// CHECK-DAG:       %[[I:.*]] = arith.index_cast %[[ROW]] : index to i32
// CHECK-DAG:       %[[J:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK-DAG:       %[[A:.*]] = arith.andi %[[I]], %c1_i32 : i32
// CHECK-DAG:       %[[B:.*]] = arith.andi %[[J]], %c1_i32 : i32
// CHECK-DAG:       arith.cmpi eq, %[[A]], %[[B]] : i32
// CHECK-DAG:       %[[E:.*]] = arith.remui %[[I]], %c3_i32 : i32
// CHECK-DAG:       %[[F:.*]] = arith.remui %[[J]], %c3_i32 : i32
// CHECK-DAG:       arith.cmpi ne, %[[E]], %[[F]] : i32
// CHECK-NOT:       arith.remsi
// CHECK:           tile.yield
func.func @dilated(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %width = arith.constant 64 : index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi sle, %d, %width : index
    %r = arith.remsi %d, %c2 : index
    %negative = arith.cmpi slt, %r, %c0 : index
    %positive = arith.addi %r, %c2 : index
    %floored = arith.select %negative, %positive, %r : index
    %even = arith.cmpi eq, %floored, %c0 : index
    %third = arith.remsi %d, %c3 : index
    %other = arith.cmpi ne, %third, %c0 : index
    %0 = arith.andi %near, %even : i1
    %keep = arith.andi %0, %other : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// What may not fit stays: a product of two coordinates, and a sum with a number
// of 64 bits. A product of their quotients fits, and a place that is read has it
// as an index again. The smaller of two is below a number where one of them is.

// CHECK-LABEL: func @wide
// CHECK:         tile.mma
// CHECK:         tile.map ins(%{{.*}}) {
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[R:[^:]*]]: index, %[[C:[^:]*]]: index):
// CHECK-DAG:       %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]] : index
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %{{.*}}, %[[C]] : index
// CHECK-DAG:       %[[AREA:.*]] = arith.muli %[[ROW]], %[[KEY]] : index
// CHECK-DAG:       arith.cmpi slt, %[[AREA]], %c1000 : index
// CHECK-DAG:       arith.divui %{{.*}}, %c65536_i32 : i32
// CHECK-DAG:       %[[SMALL:.*]] = arith.muli %{{.*}}, %{{.*}} overflow<nsw> : i32
// CHECK-DAG:       %[[PLACE:.*]] = arith.index_castui %[[SMALL]] : i32 to index
// CHECK-DAG:       memref.load %{{.*}}[%[[PLACE]]]
// CHECK-DAG:       %[[ONE:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}} : index
// CHECK-DAG:       %[[OTHER:.*]] = arith.cmpi slt, %[[KEY]], %{{.*}} : index
// CHECK-DAG:       arith.ori %[[ONE]], %[[OTHER]] : i1
// CHECK:           tile.yield
func.func @wide(%q: tensor<2x4x?x64xf16>, %t: tensor<?xi1>, %n: index) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %many = arith.constant 1000 : index
    %block = arith.constant 65536 : index
    %area = arith.muli %i, %j : index
    %0 = arith.cmpi slt, %area, %many : index
    %y = arith.divsi %i, %block : index
    %z = arith.divsi %j, %block : index
    %small = arith.muli %y, %z : index
    %1 = tensor.extract %t[%small] : tensor<?xi1>
    %least = arith.minsi %i, %j : index
    %2 = arith.cmpi sgt, %n, %least : index
    %3 = arith.andi %0, %1 : i1
    %keep = arith.andi %2, %3 : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// A length is read for the batch: no coordinate is clamped for it.

// CHECK-LABEL: func @lengths
// CHECK:         tile.mma
// CHECK:         scf.if
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        tile.map ins(%{{.*}}) {
// CHECK-NOT:           arith.minsi
// CHECK:               memref.load
// CHECK-NOT:           arith.minsi
// CHECK:               tile.yield
// CHECK:           } else {
// CHECK-NEXT:        tile.map ins(%{{.*}}) {
// CHECK-NOT:           arith.minsi
// CHECK:               memref.load
// CHECK-NOT:           arith.minsi
// CHECK:               tile.yield
func.func @lengths(%q: tensor<2x4x?x64xf16>, %n: tensor<2xindex>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %length = tensor.extract %n[%b] : tensor<2xindex>
    %0 = arith.cmpi slt, %j, %length : index
    %1 = arith.cmpi sge, %i, %j : index
    %keep = arith.ori %0, %1 : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Booleans, and numbers of fewer bits than 32, are compared as they are.

// CHECK-LABEL: func @few_bits
// CHECK:         %[[OFROW:.*]] = arith.cmpi sge, %{{.*}} : i{{.*}}
// CHECK:         arith.cmpi eq, %{{.*}}, %{{.*}} : i1
// CHECK:         arith.remsi %{{.*}} : i8
// CHECK:         arith.cmpi eq, %{{.*}} : i8
// CHECK:         arith.cmpi ult, %{{.*}} : i16
func.func @few_bits(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %half = arith.constant 100 : index
    %c127 = arith.constant 127 : index
    %two = arith.constant 2 : i8
    %zero = arith.constant 0 : i8
    %late = arith.cmpi sge, %i, %half : index
    %late_key = arith.cmpi sge, %j, %half : index
    %same = arith.cmpi eq, %late, %late_key : i1
    %row = arith.andi %i, %c127 : index
    %key = arith.andi %j, %c127 : index
    %r8 = arith.index_cast %row : index to i8
    %k8 = arith.index_cast %key : index to i8
    %d = arith.subi %r8, %k8 : i8
    %rest = arith.remsi %d, %two : i8
    %even = arith.cmpi eq, %rest, %zero : i8
    %r16 = arith.extsi %r8 : i8 to i16
    %k16 = arith.extsi %k8 : i8 to i16
    %r2 = arith.muli %r16, %r16 : i16
    %before = arith.cmpi ult, %k16, %r2 : i16
    %0 = arith.ori %same, %even : i1
    %keep = arith.ori %0, %before : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}
