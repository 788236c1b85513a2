// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: fovea-opt %s --attn-online-softmax=passes=3 --attn-tile --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=THREE

// Each pass over the keys is a loop of the program; queries are loaded once.
// Where the maximum is final nothing is rescaled.

// TWO-LABEL: func @attend
// TWO:       tile.launch
// TWO:         tile.load
// TWO:         %[[A:.*]]:2 = scf.for
// TWO:           tile.reduce max
// TWO:           tile.reduce add
// TWO-NOT:       tile.mma {{.*}} into
// TWO:         scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}) -> (!tile.fragment<64x16xf32>)
// TWO-NOT:       tile.reduce
// TWO:           tile.map {{.*}} rows
// TWO:           tile.mma {{.*}} into %[[ACC]]
// TWO:         tile.store

// THREE-LABEL: func @attend
// THREE:       tile.launch
// THREE:         tile.load
// THREE:         %[[M:.*]] = scf.for
// THREE:           tile.reduce max
// THREE-NOT:       math.exp2
// THREE:         %[[S:.*]] = scf.for %{{.*}} iter_args(%[[SUM:[^ ]*]] = %{{.*}}) -> (!tile.fragment<64x4xf32>)
// THREE:           tile.map ins(%[[M]] :
// THREE:           %[[PARTS:.*]] = tile.reduce add %{{.*}} dim 1 : !tile.fragment<64x64xf32> -> !tile.fragment<64x8xf32>
// THREE:           tile.reduce add %[[PARTS]], %[[SUM]] dim 1 neighbors : !tile.fragment<64x8xf32> -> !tile.fragment<64x4xf32>
// THREE:         scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}) -> (!tile.fragment<64x16xf32>)
// THREE:           tile.mma {{.*}} into %[[ACC]]
// THREE:         %[[TOTAL:.*]] = tile.reduce add %[[S]],
// THREE:         tile.map ins(%[[TOTAL]] :
// THREE:         tile.store
func.func @attend(%q: tensor<1x2x256x16xf16>) -> tensor<1x2x256x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16> -> tensor<1x2x256x16xf16>
  return %o : tensor<1x2x256x16xf16>
}
