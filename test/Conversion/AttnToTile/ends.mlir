// RUN: fovea-opt %s --attn-online-softmax --attn-tile='fuse-producers=false fuse-consumers=false' --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// A group of warps ends its loop at the ends of the parts that its rows are in, if it has
// rows; and a warp masks where by the extremes of what the mask reads one of its own rows
// may not see all keys of a step, or where the step has fewer keys. What is read of a row
// is as for the mask itself.

// CHECK-LABEL: func @sequences
// CHECK:       tile.launch
// CHECK:       ^bb0({{.*}}, %[[MFIRST:[^:]*]]: memref<?xi32, {{[^>]*>}}>, %[[MEND:[^:]*]]: memref<?xi32, {{[^>]*>}}>, %{{[^:]*}}: memref<1x4x?x64xbf16, {{[^>]*>}}>):
// CHECK:         %[[END:.*]] = tile.of_rows %[[WHOLE:.*]] rows 128 {
// CHECK-NEXT:    ^bb0(%[[FROM:.*]]: index, %[[TO:.*]]: index):
// CHECK-DAG:       %[[LESS:.*]] = arith.cmpi slt, %[[FROM]], %c64
// CHECK-DAG:       %[[FROM0:.*]] = arith.cmpi sge, %[[TO]], %c0
// CHECK:           %[[IN0:.*]] = arith.andi %[[LESS]], %[[FROM0]]
// CHECK:           arith.select %[[IN0]], %[[E0:.*]], %c0
// CHECK-DAG:       arith.cmpi slt, %[[FROM]], %c128
// CHECK-DAG:       arith.cmpi sge, %[[TO]], %c64
// CHECK:           arith.select %{{.*}}, %[[E1:.*]], %c0
// CHECK:           arith.maxsi
// CHECK:           %[[HAS:.*]] = arith.cmpi slt, %[[FROM]], %[[ROWS:.*]] :
// CHECK:           arith.select %[[HAS]]
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %[[END]] step %c64
// CHECK:           %[[COUNT:.*]] = affine.min
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %[[COUNT]], %c64 : index
// CHECK:           %[[FIRSTS:.*]] = tile.map {
// CHECK:             %[[FIRST:.*]] = memref.load %[[MFIRST]][
// CHECK-NEXT:        tile.yield %[[FIRST]] : i32
// CHECK:           } -> !tile.fragment<128xi32>
// CHECK-NEXT:      %{{.*}}, %[[GREATEST32:.*]] = tile.extremes %[[FIRSTS]]
// CHECK-NEXT:      %[[GREATEST:.*]] = arith.index_cast %[[GREATEST32]] : i32 to index
// CHECK:           %[[ENDS:.*]] = tile.map {
// CHECK:             %[[OWNEND:.*]] = memref.load %[[MEND]][
// CHECK-NEXT:        tile.yield %[[OWNEND]] : i32
// CHECK:           } -> !tile.fragment<128xi32>
// CHECK-NEXT:      %[[LEAST32:.*]], %{{.*}} = tile.extremes %[[ENDS]]
// CHECK-NEXT:      %[[LEAST:.*]] = arith.index_cast %[[LEAST32]] : i32 to index
// CHECK:           %[[LASTKEY:.*]] = arith.addi %[[J]], %c63 : index
// CHECK:           %[[BEGUN:.*]] = arith.cmpi sle, %[[GREATEST]], %[[J]] : index
// CHECK:           %[[GOESON:.*]] = arith.cmpi slt, %[[LASTKEY]], %[[LEAST]] : index
// CHECK:           %[[ALL:.*]] = arith.andi %[[BEGUN]], %[[GOESON]] : i1
// CHECK:           %[[PARTIAL:.*]] = arith.xori %[[ALL]], %true : i1
// CHECK-NEXT:      %[[OWN:.*]] = tile.of_rows %[[PARTIAL]] rows 128 {
// CHECK:             tile.yield %[[PARTIAL]] : i1
// CHECK:           %[[IS:.*]] = arith.ori %[[OWN]], %[[SHORT]] : i1
// CHECK-NEXT:      scf.if %[[IS]] -> (!tile.fragment<128x64xf32>) {
// CHECK-NEXT:        scf.if %[[SHORT]] -> (!tile.fragment<128x64xf32>) {
// CHECK-NEXT:          tile.map ins(%[[S]] :
// CHECK-NEXT:          ^bb0(%{{.*}}: f32, %{{.*}}: index, %[[C:.*]]: index):
// CHECK-NEXT:            arith.cmpi slt, %[[C]], %[[COUNT]] : index
// CHECK:             } else {
// CHECK-NEXT:          tile.map ins(%[[S]] :
// CHECK-NOT:             arith.cmpi slt, %{{.*}} : index
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[S]]
func.func @sequences(%q: tensor<1x4x?x64xbf16>, %first: tensor<?xi32>, %end: tensor<?xi32>) -> tensor<1x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %first[%i] : tensor<?xi32>
      %m = arith.index_cast %x : i32 to index
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %from = arith.cmpi sge, %j, %m : index
      %to = arith.cmpi slt, %j, %n : index
      %keep = arith.andi %from, %to : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// A tile of which no parts are known has one end, but its warps ask for their own rows,
// too. Only the lowest end matters.

// CHECK-LABEL: func @long_steps
// CHECK:       tile.launch
// CHECK:         %[[WHOLE:.*]] = arith.maxsi %{{.*}}, %c0 : index
// CHECK-NEXT:    tile.of_rows %[[WHOLE]] rows 128 {
// CHECK-NEXT:    ^bb0(
// CHECK-NEXT:      arith.maxsi %[[WHOLE]], %c0 : index
// CHECK-NOT:       arith.maxsi
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %{{.*}}, %c128 : index
// CHECK:           %[[LEAST32:.*]], %{{.*}} = tile.extremes %{{.*}} : !tile.fragment<128xi32>
// CHECK:           %[[LEAST:.*]] = arith.index_cast %[[LEAST32]] : i32 to index
// CHECK:           %[[LASTKEY:.*]] = arith.addi %[[J]], %c127 : index
// CHECK:           %[[PARTIAL:.*]] = arith.cmpi sge, %[[LASTKEY]], %[[LEAST]] : index
// CHECK-NEXT:      %[[OWN:.*]] = tile.of_rows %[[PARTIAL]] rows 128 {
// CHECK:             tile.yield %[[PARTIAL]] : i1
// CHECK:           %[[IS:.*]] = arith.ori %[[OWN]], %[[SHORT]] : i1
// CHECK-NEXT:      scf.if %[[IS]] -> (!tile.fragment<128x128xf32>) {
// CHECK:             tile.map ins(%{{.*}} : !tile.fragment<128x128xf32>)
func.func @long_steps(%q: tensor<1x4x?x64xbf16>, %end: tensor<?xi32>) -> tensor<1x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// What rows have in 64 bits has no extremes of 32: tables say for the whole tile whether
// the mask is applied.

// CHECK-LABEL: func @wide_ends
// CHECK:       tile.launch
// CHECK:       ^bb0({{.*}}, %[[TABLE:[^:]*]]: memref<?xindex, {{[^>]*>}}>, %[[OTHER:[^:]*]]: memref<?xindex, {{[^>]*>}}>, %[[MEND:[^:]*]]: memref<?xi64, {{[^>]*>}}>, %{{[^:]*}}: memref<1x4x?x64xbf16, {{[^>]*>}}>):
// CHECK-NOT:     tile.extremes
// CHECK:         %[[LEAST:.*]] = memref.load %[[TABLE]][
// CHECK-NOT:     tile.extremes
// CHECK:         scf.for
// CHECK-NOT:       tile.extremes
// CHECK:           arith.cmpi sge, %{{.*}}, %[[LEAST]] : index
// CHECK-NOT:       tile.extremes
// CHECK:           memref.load %[[MEND]][
// CHECK-NOT:     tile.extremes
// CHECK:       return
func.func @wide_ends(%q: tensor<1x4x?x64xbf16>, %end: tensor<?xi64>) -> tensor<1x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<?xi64>
      %n = arith.index_cast %e : i64 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// Numbers of 8 bits are extended by their sign, conditions by zeros: the least of these is
// 1 where all are true.

// CHECK-LABEL: func @few_bits
// CHECK:       tile.launch
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           tile.map {
// CHECK:             %[[X8:.*]] = memref.load %{{.*}} : memref<?xi8,
// CHECK-NEXT:        %[[X:.*]] = arith.extsi %[[X8]] : i8 to i32
// CHECK-NEXT:        tile.yield %[[X]] : i32
// CHECK:           %[[LEAST32:.*]], %{{.*}} = tile.extremes
// CHECK-NEXT:      %[[LEAST:.*]] = arith.index_cast %[[LEAST32]] : i32 to index
// CHECK:           tile.map {
// CHECK:             %[[Y1:.*]] = memref.load %{{.*}} : memref<?xi1,
// CHECK-NEXT:        %[[Y:.*]] = arith.extui %[[Y1]] : i1 to i32
// CHECK-NEXT:        tile.yield %[[Y]] : i32
// CHECK:           %[[ALL32:.*]], %{{.*}} = tile.extremes
// CHECK-NEXT:      %[[ALL:.*]] = arith.trunci %[[ALL32]] : i32 to i1
// CHECK:           %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[LEAST]] : index
// CHECK:           %[[KEEP:.*]] = arith.andi %[[IN]], %[[ALL]] : i1
// CHECK:           %[[PARTIAL:.*]] = arith.xori %[[KEEP]], %true
// CHECK-NEXT:      %[[OWN:.*]] = tile.of_rows %[[PARTIAL]] rows 128 {
// CHECK:             tile.yield %[[PARTIAL]] : i1
// CHECK:           %[[IS:.*]] = arith.ori %[[OWN]], %
// CHECK-NEXT:      scf.if %[[IS]] -> (!tile.fragment<128x64xf32>) {
func.func @few_bits(%q: tensor<1x4x?x64xbf16>, %end: tensor<?xi8>, %used: tensor<?xi1>) -> tensor<1x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %end[%i] : tensor<?xi8>
      %n = arith.index_cast %e : i8 to index
      %to = arith.cmpi slt, %j, %n : index
      %is = tensor.extract %used[%i] : tensor<?xi1>
      %keep = arith.andi %to, %is : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// A mask that compares with the row, too, is tested with the first row of the warp group's
// own; the extremes are of a warp, and found outside of the region.

// CHECK-LABEL: func @documents
// CHECK:       tile.launch
// CHECK:         %[[I:.*]] = arith.muli %{{.*}}, %c128 overflow<nsw> : index
// CHECK:         scf.for
// CHECK:           tile.load %{{.*}}[%c0, %{{.*}}, %[[J:[^,]*]], %c0] {{.*}} -> !tile.shared<64x64xbf16>
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %{{.*}}, %c64 : index
// CHECK:           %[[FIRSTS:.*]] = tile.map {
// CHECK:           %{{.*}}, %[[GREATEST32:.*]] = tile.extremes %[[FIRSTS]] : !tile.fragment<128xi32>
// CHECK-NEXT:      %[[GREATEST:.*]] = arith.index_cast %[[GREATEST32]] : i32 to index
// CHECK-NEXT:      %[[LASTKEY:.*]] = arith.addi %[[J]], %c63 : index
// CHECK-NEXT:      %[[BEGUN:.*]] = arith.cmpi sle, %[[GREATEST]], %[[J]] : index
// CHECK-NEXT:      %[[SEEN:.*]] = arith.cmpi sle, %[[LASTKEY]], %[[I]] : index
// CHECK-NEXT:      %[[ALL:.*]] = arith.andi %[[BEGUN]], %[[SEEN]] : i1
// CHECK-NEXT:      %[[PARTIAL:.*]] = arith.xori %[[ALL]], %true : i1
// CHECK-NEXT:      %[[OWN:.*]] = tile.of_rows %[[PARTIAL]] rows 128 {
// CHECK-NEXT:      ^bb0(%[[FROM:.*]]: index, %{{.*}}: index):
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %[[I]], %[[FROM]] : index
// CHECK-NEXT:        %[[OWNSEEN:.*]] = arith.cmpi sle, %[[LASTKEY]], %[[ROW]] : index
// CHECK-NEXT:        %[[OWNALL:.*]] = arith.andi %[[BEGUN]], %[[OWNSEEN]] : i1
// CHECK-NEXT:        %[[OWNPARTIAL:.*]] = arith.xori %[[OWNALL]], %true : i1
// CHECK-NEXT:        tile.yield %[[OWNPARTIAL]] : i1
// CHECK:           %[[IS:.*]] = arith.ori %[[OWN]], %[[SHORT]] : i1
// CHECK-NEXT:      scf.if %[[IS]] -> (!tile.fragment<128x64xf32>) {
func.func @documents(%q: tensor<1x4x?x64xbf16>, %first: tensor<?xi32>) -> tensor<1x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %first[%i] : tensor<?xi32>
      %m = arith.index_cast %x : i32 to index
      %from = arith.cmpi sge, %j, %m : index
      %causal = arith.cmpi sle, %j, %i : index
      %keep = arith.andi %from, %causal : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x?x64xbf16>
  return %o : tensor<1x4x?x64xbf16>
}

// A group of warps ends its loop by a length that the program has read of its sequence, and
// tests by it whether its first row needs the mask. Nothing is read again for that.

// CHECK-LABEL: func @length
// CHECK:       tile.launch
// CHECK:       ^bb0(%{{[^:]*}}: index, %{{[^:]*}}: index, %[[B:[^:]*]]: index, %{{[^:]*}}: memref<2x4x?x64xbf16, {{[^>]*>}}>, %[[LENGTHS:[^:]*]]: memref<2xi32, {{[^>]*>}}>,
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c128 overflow<nsw> : index
// CHECK-NEXT:    %[[ROWS:.*]] = affine.min
// CHECK:         %[[LENGTH32:.*]] = memref.load %[[LENGTHS]][%[[B]]]
// CHECK-NEXT:    %[[LENGTH:.*]] = arith.index_cast %[[LENGTH32]] : i32 to index
// CHECK-NOT:     memref.load
// CHECK:         %[[WHOLE:.*]] = arith.maxsi %{{.*}}, %c0 : index
// CHECK-NEXT:    %[[END:.*]] = tile.of_rows %[[WHOLE]] rows 128 {
// CHECK-NEXT:    ^bb0(%[[FROM:.*]]: index, %[[TO:.*]]: index):
// CHECK-NEXT:      %[[LASTOFTILE:.*]] = arith.addi %[[ROWS]], %c-1 : index
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[TO]], %[[LASTOFTILE]] : index
// CHECK-NEXT:      %[[ROW:.*]] = arith.addi %[[FIRST]], %[[LAST]] : index
// CHECK-NEXT:      %[[KEY:.*]] = arith.addi %[[LENGTH]], %[[ROW]] : index
// CHECK-NEXT:      %[[OWN:.*]] = arith.addi %[[KEY]], %c1 : index
// CHECK-NEXT:      %[[LESS:.*]] = arith.minsi %[[OWN]], %[[WHOLE]] : index
// CHECK-NEXT:      %[[SOME:.*]] = arith.maxsi %[[LESS]], %c0 : index
// CHECK-NEXT:      %[[HAS:.*]] = arith.cmpi slt, %[[FROM]], %[[ROWS]] : index
// CHECK-NEXT:      %[[ENDS:.*]] = arith.select %[[HAS]], %[[SOME]], %c0 : index
// CHECK-NEXT:      tile.yield %[[ENDS]] : index
// CHECK-NOT:     memref.load
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %[[END]] step %c64
// CHECK:           %[[LASTKEY:.*]] = arith.addi %{{.*}}, %c-1 : index
// CHECK-NEXT:      %[[PARTIAL:.*]] = arith.cmpi sgt, %[[LASTKEY]], %{{.*}} : index
// CHECK-NEXT:      tile.of_rows %[[PARTIAL]] rows 128 {
// CHECK-NEXT:      ^bb0(%[[FROM:.*]]: index, %{{.*}}: index):
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %[[FIRST]], %[[FROM]] : index
// CHECK-NEXT:        %[[SEEN:.*]] = arith.addi %[[ROW]], %[[LENGTH]] : index
// CHECK-NEXT:        %[[MASKED:.*]] = arith.cmpi sgt, %[[LASTKEY]], %[[SEEN]] : index
// CHECK-NEXT:        tile.yield %[[MASKED]] : i1
func.func @length(%q: tensor<2x4x?x64xbf16>, %lengths: tensor<2xi32>) -> tensor<2x4x?x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %lengths[%b] : tensor<2xi32>
      %n = arith.index_cast %x : i32 to index
      %last = arith.addi %i, %n : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale>}
    : tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16> -> tensor<2x4x?x64xbf16>
  return %o : tensor<2x4x?x64xbf16>
}
