// RUN: fovea-opt %s --attn-online-softmax --attn-tile='fuse-producers=false fuse-consumers=false' --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// A group of warps ends its loop at the ends of the parts that its rows are in, if it has
// rows; and where some rows of the tile see not all keys of a step, a warp asks for its own
// whether it masks. What is read of a row is as for the mask itself.

// CHECK-LABEL: func @sequences
// CHECK:       tile.launch
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
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           scf.if %{{.*}} -> (!tile.fragment<128x64xf32>) {
// CHECK:             %[[FIRSTS:.*]] = tile.map {
// CHECK:               memref.load
// CHECK:             %[[ENDS:.*]] = tile.map {
// CHECK:               memref.load
// CHECK:             %[[TESTS:.*]] = tile.map ins(%[[FIRSTS]], %[[ENDS]] :
// CHECK:             } -> !tile.fragment<128xi1>
// CHECK:             %[[ANY:.*]] = tile.any %[[TESTS]]
// CHECK:             %[[IS:.*]] = arith.ori %{{.*}}, %[[ANY]]
// CHECK:             scf.if %[[IS]] -> (!tile.fragment<128x64xf32>) {
// CHECK:               tile.map ins(%[[S]] :
// CHECK:             } else {
// CHECK-NEXT:          scf.yield %[[S]]
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

// A tile of which no parts are known asks nothing for its rows.

// CHECK-LABEL: func @long_steps
// CHECK:         tile.of_rows %{{.*}} rows 128 {
// CHECK-NOT:       arith.maxsi
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK-NOT:         -> !tile.fragment<128xi1>
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
