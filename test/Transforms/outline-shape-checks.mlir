// RUN: fovea-opt %s --outline-shape-checks --canonicalize --cse --split-input-file | FileCheck %s

// The function stays, and a function of the sizes alone comes behind it.

// CHECK-LABEL: func.func @values(
// CHECK:         attn.values
// CHECK-LABEL: func.func @values.shapes(
// CHECK-SAME:    %[[P:.*]]: tensor<2x4x8x?xf32>, %[[V:.*]]: tensor<2x4x?x16xf32>) -> (index, index, index)
// CHECK-SAME:    machine.messages = ["dimension 3 of $0 is {0}, expected {1}, which is dimension 2 of $1, for 'attn.values' at line [[#]]"]
// CHECK-NOT:     attn.values
// CHECK-DAG:     %[[KEYS:.*]] = tensor.dim %[[P]], %{{.*}}
// CHECK-DAG:     %[[ROWS:.*]] = tensor.dim %[[V]], %{{.*}}
// CHECK:         %[[EQUAL:.*]] = arith.cmpi eq, %[[KEYS]], %[[ROWS]]
// CHECK:         %[[NUMBER:.*]] = arith.select %[[EQUAL]], %{{.*}}, %{{.*}} : index
// CHECK:         %[[LEFT:.*]] = arith.select %[[EQUAL]], %{{.*}}, %[[KEYS]]
// CHECK:         %[[RIGHT:.*]] = arith.select %[[EQUAL]], %{{.*}}, %[[ROWS]]
// CHECK:         return %[[NUMBER]], %[[LEFT]], %[[RIGHT]]
func.func @values(%p: tensor<2x4x8x?xf32>, %v: tensor<2x4x?x16xf32>) -> tensor<2x4x8x16xf32> {
  %o = attn.values %p, %v : tensor<2x4x8x?xf32>, tensor<2x4x?x16xf32> -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Static sizes were verified: nothing to do.

// CHECK-LABEL: func.func @static(
// CHECK-NOT:   @static.shapes
func.func @static(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>) -> tensor<2x4x8x8xf32> {
  %s = attn.scores %q, %k : tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32> -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}

// -----

// Grouped heads must divide; the sizes of scores are those of the operands,
// which the messages name; the size of the result must fit.

// CHECK-LABEL: func.func @heads.shapes(
// CHECK-SAME:    "dimension 1 of $0 is {0}, expected a multiple of {1}, which is dimension 1 of $1, for 'attn.scores' at line [[#]]"
// CHECK-SAME:    "the size of its result 0 does not fit 64 bits, for 'attn.scores' at line [[#]]"
// CHECK-SAME:    "dimension 2 of $1 is {0}, expected {1}, which is dimension 2 of $2, for 'attn.values' at line [[#]]"
// CHECK:         arith.remui
func.func @heads(%q: tensor<1x?x?x16xf32>, %k: tensor<1x?x?x16xf32>, %v: tensor<1x?x?x16xf32>) -> tensor<1x?x?x16xf32> {
  %s = attn.scores %q, %k : tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32> -> tensor<1x?x?x?xf32>
  %p = attn.softmax %s : tensor<1x?x?x?xf32> -> tensor<1x?x?x?xf32>
  %o = attn.values %p, %v : tensor<1x?x?x?xf32>, tensor<1x?x?x16xf32> -> tensor<1x?x?x16xf32>
  return %o : tensor<1x?x?x16xf32>
}

// -----

// Indices into captured tensors by intervals: here j - i + 7 goes from 0 to
// the number of keys + 6, so only the end is checked. An index that is data is
// not bounded.

// CHECK-LABEL: func.func @table.shapes(
// CHECK-SAME:    machine.messages = ["dimension 0 of $1 is {0}, expected at least {1}, which is what its indices in 'tensor.extract' need, for 'attn.modify' at line [[#]]"]
// CHECK-NOT:     tensor.extract %
func.func @table(%s: tensor<1x1x8x?xf32>, %table: tensor<?xf32>, %ids: tensor<8xindex>) -> tensor<1x1x8x?xf32> {
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c7 = arith.constant 7 : index
    %d = arith.subi %j, %i : index
    %at = arith.addi %d, %c7 : index
    %e = tensor.extract %table[%at] : tensor<?xf32>
    %id = tensor.extract %ids[%i] : tensor<8xindex>
    %f = tensor.extract %table[%id] : tensor<?xf32>
    %y = arith.addf %x, %e : f32
    %z = arith.addf %y, %f : f32
    attn.yield %z : f32
  } : tensor<1x1x8x?xf32>
  return %r : tensor<1x1x8x?xf32>
}

// -----

// A side of a select is needed only where its condition holds: with negative
// indices from the end, and with indices that are clamped, nothing is demanded but
// what a read needs. These indices are in -2 to 5, and all demands are constants.

// CHECK-LABEL: func.func @wrapped(
// CHECK-LABEL: func.func @wrapped.shapes(
// CHECK-SAME:    {machine.messages = ["dimension 0 of $1 is {0}, expected at least {1}, which is what its indices in 'tensor.extract' need, for 'attn.modify' at line [[#]]", "dimension 0 of $1 is
// CHECK-NOT:       , "
// CHECK:         %[[C6:.*]] = arith.constant 6 : index
// CHECK:         arith.cmpi sge, %{{.*}}, %[[C6]] : index
// CHECK-NOT:     arith.cmpi
func.func @wrapped(%s: tensor<1x1x8x1xf32>, %table: tensor<?xf32>, %eight: tensor<8xf32>) -> tensor<1x1x8x1xf32> {
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c8 = arith.constant 8 : index
    %at = arith.subi %i, %c2 : index
    // From the end.
    %negative = arith.cmpi slt, %at, %c0 : index
    %end = arith.addi %at, %c8 : index
    %wrapped = arith.select %negative, %end, %at : index
    %e = tensor.extract %eight[%wrapped] : tensor<8xf32>
    // Clamped to 0, by the condition the other way around.
    %positive = arith.cmpi sgt, %at, %c0 : index
    %clamped = arith.select %positive, %at, %c0 : index
    %f = tensor.extract %table[%clamped] : tensor<?xf32>
    // Two conditions at once, and a side that is never chosen.
    %low = arith.cmpi sge, %at, %c0 : index
    %high = arith.cmpi sle, %at, %c5 : index
    %inside = arith.andi %low, %high : i1
    %both = arith.select %inside, %at, %c0 : index
    %never = arith.cmpi slt, %both, %c0 : index
    %far = arith.muli %both, %c8 : index
    %picked = arith.select %never, %far, %both : index
    %g = tensor.extract %table[%picked] : tensor<?xf32>
    %y = arith.addf %x, %e : f32
    %z = arith.addf %y, %f : f32
    %w = arith.addf %z, %g : f32
    attn.yield %w : f32
  } : tensor<1x1x8x1xf32>
  return %r : tensor<1x1x8x1xf32>
}

// -----

// A select whose condition says nothing of its sides has the range of both.

// CHECK-LABEL: func.func @either(
// CHECK-LABEL: func.func @either.shapes(
// CHECK:         arith.constant 16 : index
func.func @either(%s: tensor<1x1x8x1xf32>, %table: tensor<?xf32>) -> tensor<1x1x8x1xf32> {
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %above = arith.cmpf ogt, %x, %zero : f32
    %far = arith.addi %i, %c8 : index
    %at = arith.select %above, %far, %i : index
    %e = tensor.extract %table[%at] : tensor<?xf32>
    attn.yield %e : f32
  } : tensor<1x1x8x1xf32>
  return %r : tensor<1x1x8x1xf32>
}

// -----

// The larger of two numbers is at least half of their sum, and an absolute value is
// one of a number and its negative; the smaller is at most half. Nothing is demanded
// of the static tables here.

// CHECK-LABEL: func.func @absolute(
// CHECK-LABEL: func.func @absolute.shapes(
// CHECK-SAME:    {machine.messages = ["dimension 0 of $1 is {0}, expected at least {1}, which is what its indices in 'tensor.extract' need, for 'attn.modify' at line [[#]]"]}
// CHECK:         %[[C8:.*]] = arith.constant 8 : index
// CHECK:         arith.cmpi sge, %{{.*}}, %[[C8]] : index
// CHECK-NOT:     arith.cmpi
func.func @absolute(%s: tensor<1x1x8x4xf32>, %table: tensor<?xf32>, %eight: tensor<8xf32>, %five: tensor<5xf32>) -> tensor<1x1x8x4xf32> {
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c9 = arith.constant 9 : index
    // -3 to 7.
    %distance = arith.subi %i, %j : index
    %opposite = arith.subi %c0, %distance : index
    %larger = arith.maxsi %distance, %opposite : index
    %e = tensor.extract %eight[%larger] : tensor<8xf32>
    %absolute = math.absi %distance : index
    %f = tensor.extract %table[%absolute] : tensor<?xf32>
    // Of 0 to 7 and 9 to 2: 5 to 9, and 0 to 4.
    %rest = arith.subi %c9, %i : index
    %most = arith.maxsi %rest, %i : index
    %beyond = arith.subi %most, %c5 : index
    %g = tensor.extract %five[%beyond] : tensor<5xf32>
    %least = arith.minsi %i, %rest : index
    %below = arith.subi %c4, %least : index
    %k = tensor.extract %five[%below] : tensor<5xf32>
    %y = arith.addf %x, %e : f32
    %z = arith.addf %y, %f : f32
    %v = arith.addf %z, %g : f32
    %w = arith.addf %v, %k : f32
    attn.yield %w : f32
  } : tensor<1x1x8x4xf32>
  return %r : tensor<1x1x8x4xf32>
}

// -----

// linalg and tensor ops.

// CHECK-LABEL: func.func @others.shapes(
// CHECK-SAME:    "dimension 0 of $0 is {0}, expected {1}, which is dimension 0 of $1, for 'linalg.add' at line [[#]]"
// CHECK-SAME:    "dimension 0 of $0 is {0}, expected at least {1}, which is the end of the slice, for 'tensor.extract_slice' at line [[#]]"
func.func @others(%a: tensor<?xf32>, %b: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  %d = tensor.extract_slice %c[%n] [4] [1] : tensor<?xf32> to tensor<4xf32>
  %e = tensor.cast %d : tensor<4xf32> to tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// What other code calls is its caller's to check, and control flow is left out.

// CHECK-LABEL: func.func private @private(
// CHECK-NOT:   @private.shapes
func.func private @private(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return %c : tensor<?xf32>
}

// -----

// Coordinates of attention are computed in 32 bits; sizes that are known to fit
// are not asked for.

// CHECK-LABEL: func.func @largest.shapes(
// CHECK-SAME:    "dimension 2 of $0 is {0}, expected at most {1}, which is the largest size of attention, for 'attn.attention' at line [[#]]"
// CHECK-SAME:    "dimension 2 of $1 is {0}, expected at most {1}, which is the largest size of attention, for 'attn.attention' at line [[#]]"
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 1073741824 : index
// CHECK:         arith.cmpi sle, %{{.*}}, %[[MOST]]
// CHECK:         arith.cmpi sle, %{{.*}}, %[[MOST]]
func.func @largest(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %o = attn.attention %q, %k, %k scale(1.0) : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}
