// How long each phase takes, on standard error.

// RUN: fovea-compile %s --time --emit=obj -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: fovea-compile %s --time --target=sm_90a --emit=ptx -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,PTX
// RUN: FileCheck %s --check-prefix=OUTPUT < %t
// RUN: fovea-compile %s --emit=obj -o %t 2>&1 | count 0

// CHECK:      Execution time report
// CHECK:      Total Execution Time:
// CHECK:      {{[0-9.]+}} ({{ *[0-9.]+}}%)  Parsing
// CHECK-NEXT: {{[0-9.]+}} ({{ *[0-9.]+}}%)  Passes of MLIR
// CHECK-NEXT: {{[0-9.]+}} ({{ *[0-9.]+}}%)    {{[A-Z]}}
// HOST:       {{[0-9.]+}} ({{ *[0-9.]+}}%)  Generation of the host's code
// PTX:        {{[0-9.]+}} ({{ *[0-9.]+}}%)  Translation to LLVM IR
// PTX-NEXT:   {{[0-9.]+}} ({{ *[0-9.]+}}%)  Optimisation of LLVM IR
// PTX-NEXT:   {{[0-9.]+}} ({{ *[0-9.]+}}%)  Generation of PTX
// CHECK-NOT:  Execution time report

// OUTPUT: .entry attend_0

!t = tensor<2x4x128x64xf16>
!s = tensor<2x4x128x128xf32>

func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}
