// New rows of a cache in pages, written in place in front of attention. In a
// simulation operands are copies, and the results are those of the graph.
//
// RUN: fovea-run %examples/append.mlir --target=sm_90a --simulate --seeds=2 --random=1 --integers=1:31 --check | FileCheck %s
// RUN: fovea-run %examples/append.mlir --target=sm_80 --simulate --random=2 --integers=1:31 --check | FileCheck %s
// RUN: fovea-run %examples/append.mlir --random=1 --integers=1:31 --check | FileCheck %s
//
// CHECK: check: result 0: max error {{.*}} (bound 0.032)
// CHECK-NOT: FAILED
//
// The rows are written by one launch, in the operands themselves.
// RUN: fovea-compile %examples/append.mlir --target=sm_90a --emit=gpu | FileCheck %s --check-prefix=GPU
// GPU:      func.func @append(%{{[a-z0-9]+}}: memref<{{[^,]*}}, {{[^%]*}}%[[K:[a-z0-9]+]]: {{[^%]*}}%[[V:[a-z0-9]+]]:
// GPU-NOT:  memref.copy
// GPU:      gpu.launch_func @kernels::@append_0 {{.*}}%[[K]] : {{.*}}%[[V]] :
// GPU:      gpu.func @append_0
