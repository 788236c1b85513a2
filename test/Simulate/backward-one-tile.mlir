// Where all queries are in one tile there is no loop, and ops stay in the program's
// order: scores, delta and all sums together would need 248 registers of 240.
// RUN: fovea-run %s --target=sm_90a --simulate --grad --recompute=always --random=1 \
// RUN:   --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK: check: result 3: max error
// CHECK-NOT: FAILED
func.func @attend(%q: tensor<1x1x97x96xf16>, %k: tensor<1x1x25x96xf16>, %v: tensor<1x1x25x8xf16>) -> tensor<1x1x97x8xf16> {
  %o = attn.attention %q, %k, %v scale(0.1) : tensor<1x1x97x96xf16>, tensor<1x1x25x96xf16>, tensor<1x1x25x8xf16> -> tensor<1x1x97x8xf16>
  return %o : tensor<1x1x97x8xf16>
}
