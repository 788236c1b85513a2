// Masks that join several bounds on the keys, with numbers so large that sums of them and
// positions wrap, or are near it: in 32 bits as the graph says, never in 64.
//
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate --random=1
// RUN: %{run} --input=60 --input=100 --input=20 --input=50 | FileCheck %s
// RUN: %{run} --input=2147483600 --input=5 --input=9223372036854775807 --input=9223372036854775807 | FileCheck %s
// RUN: %{run} --input=-2147483648 --input=-2147483600 --input=-9223372036854775808 --input=-9223372036854775808 | FileCheck %s
// RUN: %{run} --input=2147483647 --input=-2147483600 --input=9223372036854775700 --input=-1 | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK: check: result 1: max error
// CHECK: check: result 2: max error
// CHECK-NOT: FAILED

!t = tensor<1x2x100x64xbf16>
func.func @bounds(%n: i32, %m: i32, %w: index, %l: i64, %q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  %c7_i32 = arith.constant 7 : i32
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %j32 = arith.index_cast %j : index to i32
    %sum = arith.addi %j32, %n : i32
    %is = arith.cmpi slt, %sum, %m : i32
    %seen = arith.cmpi sge, %i, %j : index
    %keep = arith.andi %is, %seen : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  %p = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %near = arith.cmpi sle, %d, %w : index
    %seen = arith.cmpi sge, %i, %j : index
    %x = arith.addi %i, %w : index
    %y = arith.cmpi sgt, %x, %j : index
    %k1 = arith.andi %near, %seen : i1
    %keep = arith.andi %k1, %y : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  %r = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %j32 = arith.index_cast %j : index to i32
    %behind = arith.addi %j32, %c7_i32 : i32
    %is = arith.cmpi slt, %behind, %n : i32
    %j64 = arith.index_cast %j : index to i64
    %last = arith.cmpi sle, %j64, %l : i64
    %seen = arith.cmpi sge, %i, %j : index
    %k1 = arith.andi %is, %last : i1
    %keep = arith.andi %k1, %seen : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o, %p, %r : !t, !t, !t
}
