// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// The loop over keys counts its tiles up, and visits them from the last one. A part
// of the tile's rows begins it later by the tiles behind its own last key. Whether the
// mask is needed follows from the keys that are visited.

// CHECK-LABEL: func @causal
// CHECK:       tile.launch
// CHECK:         %[[I:.*]] = affine.apply
// CHECK:         %[[LESS:.*]] = arith.minsi
// CHECK-NEXT:    %[[ALL:.*]] = arith.maxsi %[[LESS]], %c0 : index
// CHECK:         %[[BEGIN:.*]] = tile.of_rows %c0 rows 128 {
// CHECK-NEXT:    ^bb0(%[[FIRST:.*]]: index, %[[LAST:.*]]: index):
// CHECK:           arith.select %{{.*}}, %{{.*}}, %c0
// CHECK:           %[[TILES:.*]] = arith.divsi %{{.*}}, %c64
// CHECK:           %[[OWN:.*]] = arith.divsi %{{.*}}, %c64
// CHECK-NEXT:      %[[BEHIND:.*]] = arith.subi %[[TILES]], %[[OWN]]
// CHECK-NEXT:      %[[PLACE:.*]] = arith.muli %[[BEHIND]], %c64
// CHECK-NEXT:      tile.yield %[[PLACE]]
// CHECK:         %[[COUNT:.*]] = arith.divsi %{{.*}}, %c64
// CHECK-NEXT:    %[[OTHERS:.*]] = arith.addi %[[COUNT]], %c-1
// CHECK-NEXT:    %[[ENDS:.*]] = arith.muli %[[OTHERS]], %c64
// CHECK:         scf.for %[[N:[^ ]*]] = %[[BEGIN]] to %[[ALL]] step %c64
// CHECK-NEXT:      %[[J:.*]] = arith.subi %[[ENDS]], %[[N]]
// CHECK-NOT:       %[[N]]{{[^0-9]}}
// CHECK:           tile.of_rows
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %c0]
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %c0]
// CHECK:           scf.yield
func.func @causal(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 2, keys = descending>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// 200 keys are 4 tiles of 64, the last of which is cut: the first one that is visited.

// CHECK-LABEL: func @full
// CHECK:         scf.for %[[N:[^ ]*]] = %c0 to %c200 step %c64
// CHECK-NEXT:      %[[J:.*]] = arith.subi %c192, %[[N]]
// CHECK-NEXT:      %[[SIZE:.*]] = affine.min {{.*}}(%[[J]])
// CHECK:           tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %c0]
// CHECK:           %[[LESS:.*]] = arith.cmpi slt, %[[SIZE]], %c64
// CHECK:           %[[SHORT:.*]] = tile.first_only %[[LESS]]
// CHECK:           scf.if %[[SHORT]]
func.func @full(%q: tensor<2x4x100x64xf16>, %k: tensor<2x4x200x64xf16>) -> tensor<2x4x100x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, keys = descending>}
    : tensor<2x4x100x64xf16>, tensor<2x4x200x64xf16>, tensor<2x4x200x64xf16> -> tensor<2x4x100x64xf16>
  return %o : tensor<2x4x100x64xf16>
}

// -----

// Ascending keys end with the tile that is cut.

// CHECK-LABEL: func @ascending
// CHECK:         arith.cmpi slt, %{{.*}}, %c64
// CHECK-NOT:     tile.first_only
// CHECK:         return
func.func @ascending(%q: tensor<2x4x100x64xf16>, %k: tensor<2x4x200x64xf16>) -> tensor<2x4x100x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x100x64xf16>, tensor<2x4x200x64xf16>, tensor<2x4x200x64xf16> -> tensor<2x4x100x64xf16>
  return %o : tensor<2x4x100x64xf16>
}

// -----

// Keys before 40 are absent: the last tile that is visited begins there, and is
// shorter.

// CHECK-LABEL: func @padded
// CHECK:         arith.cmpi slt, %{{.*}}, %c64
// CHECK-NOT:     tile.first_only
// CHECK:         return
func.func @padded(%q: tensor<2x4x100x64xf16>, %k: tensor<2x4x200x64xf16>) -> tensor<2x4x100x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c40 = arith.constant 40 : index
    %keep = arith.cmpi sge, %j, %c40 : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, keys = descending>}
    : tensor<2x4x100x64xf16>, tensor<2x4x200x64xf16>, tensor<2x4x200x64xf16> -> tensor<2x4x100x64xf16>
  return %o : tensor<2x4x100x64xf16>
}

// -----

// A window begins at a tile of keys other than the first: the ends' sum has both.

// CHECK-LABEL: func @window
// CHECK:         arith.divsi
// CHECK:         %[[OTHERS:.*]] = arith.addi %{{.*}}, %c-1
// CHECK-NEXT:    %[[WIDTH:.*]] = arith.muli %[[OTHERS]], %c64 :
// CHECK-NEXT:    %[[TWICE:.*]] = arith.addi %[[LOWER:[^ ]*]], %[[LOWER]] :
// CHECK-NEXT:    %[[ENDS:.*]] = arith.addi %[[TWICE]], %[[WIDTH]]
// CHECK:         scf.for %[[N:[^ ]*]] = %[[LOWER]] to
// CHECK-NEXT:      arith.subi %[[ENDS]], %[[N]]
func.func @window(%q: tensor<2x4x1024x64xf16>) -> tensor<2x4x1024x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c100 = arith.constant 100 : index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi slt, %d, %c100 : index
    %causal = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %near, %causal : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, keys = descending>}
    : tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16>, tensor<2x4x1024x64xf16> -> tensor<2x4x1024x64xf16>
  return %o : tensor<2x4x1024x64xf16>
}
