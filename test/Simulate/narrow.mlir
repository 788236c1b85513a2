// A mask and a score of quotients, remainders and numbers that are read, at
// lengths that no tile divides.
//
// RUN: fovea-run %s --target=sm_90a --simulate --random=1 --dims=100 --check --grad | FileCheck %s
// RUN: fovea-run %s --target=sm_80 --simulate --random=2 --dims=77 --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
func.func @attend(%q: tensor<1x2x?x32xf16>, %bias: tensor<2x20xf32>) -> tensor<1x2x?x32xf16> {
  %o = attn.attention %q, %q, %q scale(0.2)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c0 = arith.constant 0 : index
        %c9 = arith.constant 9 : index
        %c19 = arith.constant 19 : index
        %c8 = arith.constant 8 : index
        %y = arith.divsi %i, %c8 : index
        %z = arith.divsi %j, %c8 : index
        %d = arith.subi %y, %z : index
        %from = arith.addi %d, %c9 : index
        %low = arith.maxsi %from, %c0 : index
        %place = arith.minsi %low, %c19 : index
        %x = tensor.extract %bias[%h, %place] : tensor<2x20xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %c0 = arith.constant 0 : index
        %c3 = arith.constant 3 : index
        %c4 = arith.constant 4 : index
        %width = arith.constant 10 : index
        %reach = arith.constant 3 : index
        %u = arith.remsi %i, %width : index
        %v = arith.remsi %j, %width : index
        %columns = arith.subi %u, %v : index
        %left = arith.subi %c0, %columns : index
        %distance = arith.maxsi %columns, %left : index
        %beside = arith.cmpi sle, %distance, %reach : index
        %d = arith.subi %i, %j : index
        %third = arith.remsi %d, %c3 : index
        %is_third = arith.cmpi eq, %third, %c0 : index
        %fourth = arith.remsi %d, %c4 : index
        %is_other = arith.cmpi ne, %fourth, %c0 : index
        %0 = arith.ori %is_third, %is_other : i1
        %keep = arith.andi %beside, %0 : i1
        attn.yield %keep : i1
      }
      : tensor<1x2x?x32xf16>, tensor<1x2x?x32xf16>, tensor<1x2x?x32xf16> -> tensor<1x2x?x32xf16>
  return %o : tensor<1x2x?x32xf16>
}
