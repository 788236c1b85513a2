// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Several conditions on the key, and one that does not depend on it, are one number for
// each row: how many of the tile's keys it sees. It knows of keys that do not exist, so
// that elements are compared once, in 32 bits, and there is no other map for whole tiles.
// A number that may be so large that sums of it wrap is clamped first: no position is as
// far.

// CHECK-LABEL: func @lengths
// CHECK-SAME:    %{{[^:]*}}: tensor<{{[^>]*}}>, %[[LENGTHS:[^:]*]]: tensor<?xi32>, %[[COUNTS:[^:]*]]: tensor<?xi32>, %[[OFFSET:[^:]*]]: index
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to
// CHECK-NEXT:      %[[N:.*]] = affine.min
// CHECK:           tile.mma
// CHECK:           %[[NEEDED:.*]] = arith.ori
// CHECK-NEXT:      scf.if %[[NEEDED]]
// CHECK-NEXT:      %[[ENDS:.*]] = tile.map {
// CHECK-NEXT:      ^bb0(%[[R:[^:]*]]: index):
// CHECK-NEXT:        %[[LENGTH32:.*]] = memref.load
// CHECK-NEXT:        %[[LENGTH:.*]] = arith.index_cast %[[LENGTH32]]
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]]
// CHECK-NEXT:        %[[SUM:.*]] = arith.addi %[[ROW]], %[[OFFSET]] : index
// CHECK-NEXT:        %[[SMALL:.*]] = arith.minsi %[[SUM]], %c2305843009213693952
// CHECK-NEXT:        %[[LAST:.*]] = arith.maxsi %[[SMALL]], %c-2305843009213693952
// CHECK-NEXT:        %[[BEHIND:.*]] = arith.addi %[[LAST]], %c1
// CHECK-NEXT:        %[[END:.*]] = arith.minsi %[[LENGTH]], %[[BEHIND]]
// CHECK-NEXT:        %[[OWN:.*]] = memref.load
// CHECK-NEXT:        %[[SOME:.*]] = arith.cmpi sgt, %[[OWN]], %c0_i32
// CHECK-NEXT:        %[[ANY:.*]] = arith.select %[[SOME]], %[[END]], %c0
// CHECK-NEXT:        %[[LEFT:.*]] = arith.subi %[[ANY]], %[[J]]
// CHECK-NEXT:        %[[PRESENT:.*]] = arith.minsi %[[LEFT]], %[[N]]
// CHECK-NEXT:        %[[COUNT:.*]] = arith.maxsi %[[PRESENT]], %c0
// CHECK-NEXT:        %[[COUNT32:.*]] = arith.index_cast %[[COUNT]] : index to i32
// CHECK-NEXT:        tile.yield %[[COUNT32]]
// CHECK-NEXT:      } -> !tile.fragment<128xi32>
// CHECK-NEXT:      tile.map ins(%{{.*}}) rows(%[[ENDS]] : !tile.fragment<128xi32>) {
// CHECK-NEXT:      ^bb0(%[[X:[^:]*]]: f32, %[[KEPT:[^:]*]]: i32, %{{[^:]*}}: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:        %[[C32:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK-NEXT:        %[[IS:.*]] = arith.cmpi slt, %[[C32]], %[[KEPT]] : i32
// CHECK-NEXT:        %[[MASKED:.*]] = arith.select %[[IS]], %[[X]], %{{.*}} : f32
// CHECK-NEXT:        tile.yield %[[MASKED]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield
func.func @lengths(%q: tensor<2x4x?x64xf16>, %lengths: tensor<?xi32>, %counts: tensor<?xi32>, %offset: index) -> tensor<2x4x?x64xf16> {
  %c0_i32 = arith.constant 0 : i32
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %x : i32 to index
    %exists = arith.cmpi slt, %j, %n : index
    %p = arith.addi %i, %offset : index
    %seen = arith.cmpi sge, %p, %j : index
    %both = arith.andi %exists, %seen : i1
    %y = tensor.extract %counts[%b] : tensor<?xi32>
    %some = arith.cmpi sgt, %y, %c0_i32 : i32
    %keep = arith.andi %both, %some : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// So are conditions on the first key, of which the largest counts, and those in which
// the key is subtracted.

// CHECK-LABEL: func @first
// CHECK-SAME:    %{{[^:]*}}: tensor<{{[^>]*}}>, %{{[^:]*}}: tensor<?xi32>, %[[WIDTH:[^:]*]]: index
// CHECK:         scf.if
// CHECK-NEXT:      %[[ENDS:.*]] = tile.map {
// CHECK:           } -> !tile.fragment<128xi32>
// CHECK-NEXT:      %[[FIRSTS:.*]] = tile.map {
// CHECK-NEXT:      ^bb0(%[[R:[^:]*]]: index):
// CHECK:             %[[FIRST:.*]] = arith.index_cast
// CHECK-NEXT:        %[[SMALL:.*]] = arith.minsi %[[WIDTH]], %c2305843009213693952
// CHECK-NEXT:        %[[FAR:.*]] = arith.maxsi %[[SMALL]], %c-2305843009213693952
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %{{.*}}, %[[R]]
// CHECK-NEXT:        %[[NEAR:.*]] = arith.subi %[[ROW]], %[[FAR]]
// CHECK-NEXT:        %[[BEGIN:.*]] = arith.maxsi %[[FIRST]], %[[NEAR]]
// CHECK-NEXT:        %[[LESS:.*]] = arith.subi %[[BEGIN]], %{{.*}}
// CHECK-NEXT:        %[[MOST:.*]] = arith.minsi %[[LESS]], %c64
// CHECK-NEXT:        arith.maxsi %[[MOST]], %c0
// CHECK:           } -> !tile.fragment<128xi32>
// CHECK-NEXT:      tile.map ins(%{{.*}}) rows(%[[ENDS]], %[[FIRSTS]] : !tile.fragment<128xi32>, !tile.fragment<128xi32>) {
// CHECK-NEXT:      ^bb0(%{{[^:]*}}: f32, %[[END:[^:]*]]: i32, %[[ABOVE:[^:]*]]: i32, %{{[^:]*}}: index, %[[C:[^:]*]]: index):
// CHECK-NEXT:        %[[C32:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK-NEXT:        %[[IN:.*]] = arith.cmpi slt, %[[C32]], %[[END]] : i32
// CHECK-NEXT:        %[[FROM:.*]] = arith.cmpi sge, %[[C32]], %[[ABOVE]] : i32
// CHECK-NEXT:        arith.andi %[[IN]], %[[FROM]]
func.func @first(%q: tensor<2x4x?x64xf16>, %firsts: tensor<?xi32>, %width: index) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %firsts[%b] : tensor<?xi32>
    %n = arith.index_cast %x : i32 to index
    %begun = arith.cmpi sge, %j, %n : index
    %distance = arith.subi %i, %j : index
    %near = arith.cmpi sle, %distance, %width : index
    %keep = arith.andi %begun, %near : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// What else a mask says of a key is asked of each element, and clamps its reads in tiles
// that lack keys.

// CHECK-LABEL: func @rest
// CHECK:         %[[SHORT:.*]] = arith.cmpi slt, %{{.*}}, %c64{{ }}
// CHECK:         scf.if
// CHECK-NEXT:      scf.if %[[SHORT]]
// CHECK-NEXT:        %[[ENDS:.*]] = tile.map {
// CHECK:             tile.map ins(%{{.*}}) rows(%[[ENDS]]
// CHECK:               %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK:               arith.minsi
// CHECK:               memref.load
// CHECK:               %[[SET:.*]] = arith.cmpi ne
// CHECK:               arith.andi %[[IN]], %[[SET]]
// CHECK:           } else {
// CHECK-NEXT:        tile.map {
// CHECK:             tile.map ins(%{{.*}}) rows(
// CHECK-NOT:           arith.minsi
// CHECK:               memref.load
func.func @rest(%q: tensor<2x4x?x64xf16>, %lengths: tensor<?xi32>, %flags: tensor<?xi32>) -> tensor<2x4x?x64xf16> {
  %c0_i32 = arith.constant 0 : i32
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %x : i32 to index
    %exists = arith.cmpi slt, %j, %n : index
    %seen = arith.cmpi sge, %i, %j : index
    %both = arith.andi %exists, %seen : i1
    %y = tensor.extract %flags[%j] : tensor<?xi32>
    %set = arith.cmpi ne, %y, %c0_i32 : i32
    %keep = arith.andi %both, %set : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

// -----

// Numbers of 32 bits bound the keys, too, if no sum of them and the key wraps; those of 64
// are clamped as indices are.

// CHECK-LABEL: func @numbers
// CHECK-SAME:    %{{[^:]*}}: tensor<{{[^>]*}}>, %{{[^:]*}}: i32, %[[WIDE:[^:]*]]: i64
// CHECK:         %[[N:.*]] = arith.index_cast %[[WIDE]] : i64 to index
// CHECK:           tile.map {
// CHECK-NEXT:      ^bb0(
// CHECK-NEXT:        %[[BELOW:.*]] = arith.subi %{{.*}}, %c7
// CHECK-NEXT:        %[[SMALL:.*]] = arith.minsi %[[N]], %c2305843009213693952
// CHECK-NEXT:        %[[LAST:.*]] = arith.maxsi %[[SMALL]], %c-2305843009213693952
// CHECK-NEXT:        %[[BEHIND:.*]] = arith.addi %[[LAST]], %c1
// CHECK-NEXT:        arith.minsi %[[BELOW]], %[[BEHIND]]
// CHECK:           } -> !tile.fragment<128xi32>
// CHECK-LABEL: func @wraps
// CHECK-NOT:     fragment<128xi32>
// CHECK-LABEL: func private @end
func.func @numbers(%q: tensor<2x4x?x64xf16>, %n: i32, %m: i64) -> tensor<2x4x?x64xf16> {
  %c7_i32 = arith.constant 7 : i32
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %j32 = arith.index_cast %j : index to i32
    %behind = arith.addi %j32, %c7_i32 : i32
    %is = arith.cmpi slt, %behind, %n : i32
    %j64 = arith.index_cast %j : index to i64
    %last = arith.cmpi sle, %j64, %m : i64
    %keep = arith.andi %is, %last : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}
func.func @wraps(%q: tensor<2x4x?x64xf16>, %n: i32, %m: i32) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %j32 = arith.index_cast %j : index to i32
    %sum = arith.addi %j32, %n : i32
    %is = arith.cmpi slt, %sum, %m : i32
    %seen = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %is, %seen : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}
func.func private @end()

// -----

// One bound from each side stays a comparison of sums of coordinates, as elements share
// their difference; and so do conditions of which not all must hold, those without a
// sign, and those that have the key twice.

// CHECK-LABEL: func @window
// CHECK-NOT:     fragment<128xi32>
// CHECK-LABEL: func @either
// CHECK-NOT:     fragment<128xi32>
// CHECK-LABEL: func @others
// CHECK-NOT:     fragment<128xi32>
func.func @window(%q: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %c100 = arith.constant 100 : index
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %seen = arith.cmpi sge, %i, %j : index
    %distance = arith.subi %i, %j : index
    %near = arith.cmpi sle, %distance, %c100 : index
    %keep = arith.andi %seen, %near : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}
func.func @either(%q: tensor<2x4x?x64xf16>, %n: index) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %seen = arith.cmpi sge, %i, %j : index
    %first = arith.cmpi slt, %j, %n : index
    %keep = arith.ori %seen, %first : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}
func.func @others(%q: tensor<2x4x?x64xf16>, %n: index) -> tensor<2x4x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %unsigned = arith.cmpi ult, %j, %n : index
    %twice = arith.addi %j, %j : index
    %half = arith.cmpi sle, %twice, %i : index
    %seen = arith.cmpi sge, %i, %j : index
    %two = arith.andi %unsigned, %half : i1
    %keep = arith.andi %two, %seen : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2>}
    : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}
