// A mask that compares booleans, and numbers of 8 and 16 bits.
//
// RUN: fovea-run %s --target=sm_90a --simulate --random=1 --dims=150 --check --grad | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED
func.func @attend(%q: tensor<1x1x?x32xf16>) -> tensor<1x1x?x32xf16> {
  %o = attn.attention %q, %q, %q scale(0.2)
      mask {
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
        %before = arith.cmpi ult, %k16, %r16 : i16
        %0 = arith.andi %even, %before : i1
        %keep = arith.ori %same, %0 : i1
        attn.yield %keep : i1
      }
      : tensor<1x1x?x32xf16>, tensor<1x1x?x32xf16>, tensor<1x1x?x32xf16> -> tensor<1x1x?x32xf16>
  return %o : tensor<1x1x?x32xf16>
}
