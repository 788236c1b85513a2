// RUN: fovea-opt %s --attn-fuse | FileCheck %s
// RUN: fovea-run %s --entry=naive --random=1 --check
// RUN: fovea-run %s --entry=guard --random=1 --check
// RUN: fovea-run %s --entry=fused2 --random=1 --check
// RUN: fovea-run %s --entry=base_two --random=1 --check
// RUN: fovea-run %s --entry=logsm --random=1 --check
// RUN: fovea-run %s --entry=late --random=1 --check
// RUN: fovea-run %s --entry=safe --random=1 --check
// RUN: fovea-run %s --entry=log_sum_exp --random=1 --dims=21 --check | FileCheck %s --check-prefix=SUM
// RUN: fovea-run %s --entry=log_sum_exp --random=1 --dims=21 --check --grad | FileCheck %s --check-prefix=SUM
// RUN: fovea-run %s --entry=log_sum_exp_rounded --random=1 --check | FileCheck %s --check-prefix=SUM
// SUM: check: result 1: max error
// SUM-NOT: FAILED

// A softmax of steps, in many orders.

// Exponentials without a maximum.
// CHECK-LABEL: @naive(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @naive(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = tensor.empty() : tensor<9x11xf32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7 : tensor<9x11xf32>) outs(%v8 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %r = math.exp %in0 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v10 = arith.constant 0.000000e+00 : f32
  %v11 = tensor.empty() : tensor<9xf32>
  %v12 = linalg.fill ins(%v10 : f32) outs(%v11 : tensor<9xf32>) -> tensor<9xf32>
  %v13 = linalg.reduce { arith.addf } ins(%v9 : tensor<9x11xf32>) outs(%v12 : tensor<9xf32>) dimensions = [1]
  %v14 = tensor.empty() : tensor<9x11xf32>
  %v15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v9, %v13 : tensor<9x11xf32>, tensor<9xf32>) outs(%v14 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v16 = arith.constant 0.000000e+00 : f32
  %v17 = tensor.empty() : tensor<9x8xf32>
  %v18 = linalg.fill ins(%v16 : f32) outs(%v17 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v19 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v15, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v18 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v19 : tensor<9x8xf32>
}

// A maximum that is replaced where it is minus infinity.
// CHECK-LABEL: @guard(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @guard(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = arith.constant 0xFF800000 : f32
  %v9 = tensor.empty() : tensor<9xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<9xf32>) -> tensor<9xf32>
  %v11 = linalg.reduce { arith.maximumf } ins(%v7 : tensor<9x11xf32>) outs(%v10 : tensor<9xf32>) dimensions = [1]
  %v12 = arith.constant 0.000000e+00 : f32
  %v13 = arith.constant 0xFF800000 : f32
  %v14 = tensor.empty() : tensor<9xf32>
  %v15 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v11 : tensor<9xf32>) outs(%v14 : tensor<9xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %c = arith.cmpf oeq, %in0, %v13 : f32
    %r = arith.select %c, %v12, %in0 : f32
    linalg.yield %r : f32
  } -> tensor<9xf32>
  %v16 = tensor.empty() : tensor<9x11xf32>
  %v17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7, %v15 : tensor<9x11xf32>, tensor<9xf32>) outs(%v16 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %d = arith.subf %in0, %in1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v18 = arith.constant 0.000000e+00 : f32
  %v19 = tensor.empty() : tensor<9xf32>
  %v20 = linalg.fill ins(%v18 : f32) outs(%v19 : tensor<9xf32>) -> tensor<9xf32>
  %v21 = linalg.reduce { arith.addf } ins(%v17 : tensor<9x11xf32>) outs(%v20 : tensor<9xf32>) dimensions = [1]
  %v22 = tensor.empty() : tensor<9x11xf32>
  %v23 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v17, %v21 : tensor<9x11xf32>, tensor<9xf32>) outs(%v22 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v24 = arith.constant 0.000000e+00 : f32
  %v25 = tensor.empty() : tensor<9x8xf32>
  %v26 = linalg.fill ins(%v24 : f32) outs(%v25 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v27 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v23, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v26 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v27 : tensor<9x8xf32>
}

// Exponentials and their sum by one op with two results.
// CHECK-LABEL: @fused2(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @fused2(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = arith.constant 0xFF800000 : f32
  %v9 = tensor.empty() : tensor<9xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<9xf32>) -> tensor<9xf32>
  %v11 = linalg.reduce { arith.maximumf } ins(%v7 : tensor<9x11xf32>) outs(%v10 : tensor<9xf32>) dimensions = [1]
  %v13 = tensor.empty() : tensor<9x11xf32>
  %v14 = arith.constant 0.000000e+00 : f32
  %v15 = tensor.empty() : tensor<9xf32>
  %v16 = linalg.fill ins(%v14 : f32) outs(%v15 : tensor<9xf32>) -> tensor<9xf32>
  %v12:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v7, %v11 : tensor<9x11xf32>, tensor<9xf32>) outs(%v13, %v16 : tensor<9x11xf32>, tensor<9xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32, %s: f32):
    %d = arith.subf %a, %m : f32
    %x = math.exp %d : f32
    %t = arith.addf %s, %x : f32
    linalg.yield %x, %t : f32, f32
  } -> (tensor<9x11xf32>, tensor<9xf32>)
  %v17 = tensor.empty() : tensor<9x11xf32>
  %v18 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v12#0, %v12#1 : tensor<9x11xf32>, tensor<9xf32>) outs(%v17 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v19 = arith.constant 0.000000e+00 : f32
  %v20 = tensor.empty() : tensor<9x8xf32>
  %v21 = linalg.fill ins(%v19 : f32) outs(%v20 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v22 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v18, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v21 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v22 : tensor<9x8xf32>
}

// Exponentials in base two, whose exponent is scaled.
// CHECK-LABEL: @base_two(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @base_two(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = arith.constant 0xFF800000 : f32
  %v9 = tensor.empty() : tensor<9xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<9xf32>) -> tensor<9xf32>
  %v11 = linalg.reduce { arith.maximumf } ins(%v7 : tensor<9x11xf32>) outs(%v10 : tensor<9xf32>) dimensions = [1]
  %v12 = arith.constant 1.442695e+00 : f32
  %v13 = tensor.empty() : tensor<9x11xf32>
  %v14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7, %v11 : tensor<9x11xf32>, tensor<9xf32>) outs(%v13 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %d = arith.subf %in0, %in1 : f32
    %m = arith.mulf %d, %v12 : f32
    %r = math.exp2 %m : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v15 = arith.constant 0.000000e+00 : f32
  %v16 = tensor.empty() : tensor<9xf32>
  %v17 = linalg.fill ins(%v15 : f32) outs(%v16 : tensor<9xf32>) -> tensor<9xf32>
  %v18 = linalg.reduce { arith.addf } ins(%v14 : tensor<9x11xf32>) outs(%v17 : tensor<9xf32>) dimensions = [1]
  %v19 = tensor.empty() : tensor<9x11xf32>
  %v20 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v14, %v18 : tensor<9x11xf32>, tensor<9xf32>) outs(%v19 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v21 = arith.constant 0.000000e+00 : f32
  %v22 = tensor.empty() : tensor<9x8xf32>
  %v23 = linalg.fill ins(%v21 : f32) outs(%v22 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v24 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v20, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v23 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v24 : tensor<9x8xf32>
}

// The exponential of a logarithmic softmax.
// CHECK-LABEL: @logsm(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @logsm(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = arith.constant 0xFF800000 : f32
  %v9 = tensor.empty() : tensor<9xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<9xf32>) -> tensor<9xf32>
  %v11 = linalg.reduce { arith.maximumf } ins(%v7 : tensor<9x11xf32>) outs(%v10 : tensor<9xf32>) dimensions = [1]
  %v12 = tensor.empty() : tensor<9x11xf32>
  %v13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7, %v11 : tensor<9x11xf32>, tensor<9xf32>) outs(%v12 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.subf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v14 = tensor.empty() : tensor<9x11xf32>
  %v15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v13 : tensor<9x11xf32>) outs(%v14 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %r = math.exp %in0 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v16 = arith.constant 0.000000e+00 : f32
  %v17 = tensor.empty() : tensor<9xf32>
  %v18 = linalg.fill ins(%v16 : f32) outs(%v17 : tensor<9xf32>) -> tensor<9xf32>
  %v19 = linalg.reduce { arith.addf } ins(%v15 : tensor<9x11xf32>) outs(%v18 : tensor<9xf32>) dimensions = [1]
  %v20 = math.log %v19 : tensor<9xf32>
  %v21 = tensor.empty() : tensor<9x11xf32>
  %v22 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v13, %v20 : tensor<9x11xf32>, tensor<9xf32>) outs(%v21 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.subf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v23 = tensor.empty() : tensor<9x11xf32>
  %v24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v22 : tensor<9x11xf32>) outs(%v23 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %r = math.exp %in0 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v25 = arith.constant 0.000000e+00 : f32
  %v26 = tensor.empty() : tensor<9x8xf32>
  %v27 = linalg.fill ins(%v25 : f32) outs(%v26 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v28 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v24, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v27 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v28 : tensor<9x8xf32>
}

// The division by the sum comes after the values.
// CHECK-LABEL: @late(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @late(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<9xf32>) -> tensor<9xf32>
  %v8 = linalg.reduce { arith.maximumf } ins(%v4 : tensor<9x11xf32>) outs(%v7 : tensor<9xf32>) dimensions = [1]
  %v9 = tensor.empty() : tensor<9x11xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4, %v8 : tensor<9x11xf32>, tensor<9xf32>) outs(%v9 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %d = arith.subf %in0, %in1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v11 = arith.constant 0.000000e+00 : f32
  %v12 = tensor.empty() : tensor<9xf32>
  %v13 = linalg.fill ins(%v11 : f32) outs(%v12 : tensor<9xf32>) -> tensor<9xf32>
  %v14 = linalg.reduce { arith.addf } ins(%v10 : tensor<9x11xf32>) outs(%v13 : tensor<9xf32>) dimensions = [1]
  %v15 = arith.constant 0.000000e+00 : f32
  %v16 = tensor.empty() : tensor<9x8xf32>
  %v17 = linalg.fill ins(%v15 : f32) outs(%v16 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v18 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v10, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v17 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v19 = tensor.empty() : tensor<9x8xf32>
  %v20 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v18, %v14 : tensor<9x8xf32>, tensor<9xf32>) outs(%v19 : tensor<9x8xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x8xf32>
  return %v20 : tensor<9x8xf32>
}

// Zeros are selected in rows without a key.
// CHECK-LABEL: @safe(
// CHECK-NOT: math.exp
// CHECK: attn.attention {{.*}} scale({{1.000000e\+00|9.9999.*e-01|0\.99999.*|1\.00000.*}})
// CHECK-NOT: math.exp
// CHECK: return
func.func @safe(%arg0: tensor<9x16xf32>, %arg1: tensor<11x16xf32>, %arg2: tensor<11x8xf32>) -> tensor<9x8xf32> {
  %v1 = arith.constant 0.000000e+00 : f32
  %v2 = tensor.empty() : tensor<9x11xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%arg0, %arg1 : tensor<9x16xf32>, tensor<11x16xf32>) outs(%v3 : tensor<9x11xf32>) -> tensor<9x11xf32>
  %v5 = arith.constant 0xFF800000 : f32
  %v6 = tensor.empty() : tensor<9x11xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v4 : tensor<9x11xf32>) outs(%v6 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %r = arith.select %c, %in0, %v5 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v8 = arith.constant 0xFF800000 : f32
  %v9 = tensor.empty() : tensor<9xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<9xf32>) -> tensor<9xf32>
  %v11 = linalg.reduce { arith.maximumf } ins(%v7 : tensor<9x11xf32>) outs(%v10 : tensor<9xf32>) dimensions = [1]
  %v12 = arith.constant 0.000000e+00 : f32
  %v13 = arith.constant 0xFF800000 : f32
  %v14 = tensor.empty() : tensor<9xf32>
  %v15 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v11 : tensor<9xf32>) outs(%v14 : tensor<9xf32>) {
  ^bb0(%in0: f32, %out: f32):
    %c = arith.cmpf oeq, %in0, %v13 : f32
    %r = arith.select %c, %v12, %in0 : f32
    linalg.yield %r : f32
  } -> tensor<9xf32>
  %v16 = tensor.empty() : tensor<9x11xf32>
  %v17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7, %v15 : tensor<9x11xf32>, tensor<9xf32>) outs(%v16 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %d = arith.subf %in0, %in1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v18 = arith.constant 0.000000e+00 : f32
  %v19 = tensor.empty() : tensor<9xf32>
  %v20 = linalg.fill ins(%v18 : f32) outs(%v19 : tensor<9xf32>) -> tensor<9xf32>
  %v21 = linalg.reduce { arith.addf } ins(%v17 : tensor<9x11xf32>) outs(%v20 : tensor<9xf32>) dimensions = [1]
  %v22 = tensor.empty() : tensor<9x11xf32>
  %v23 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v17, %v21 : tensor<9x11xf32>, tensor<9xf32>) outs(%v22 : tensor<9x11xf32>) {
  ^bb0(%in0: f32, %in1: f32, %out: f32):
    %r = arith.divf %in0, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v24 = arith.constant 0xFF800000 : f32
  %v25 = arith.constant true
  %v26 = tensor.empty() : tensor<9x11xi1>
  %v27 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v7 : tensor<9x11xf32>) outs(%v26 : tensor<9x11xi1>) {
  ^bb0(%in0: f32, %out: i1):
    %c = arith.cmpf oeq, %in0, %v24 : f32
    %r = arith.xori %c, %v25 : i1
    linalg.yield %r : i1
  } -> tensor<9x11xi1>
  %v28 = arith.constant false
  %v29 = tensor.empty() : tensor<9x1xi1>
  %v30 = linalg.fill ins(%v28 : i1) outs(%v29 : tensor<9x1xi1>) -> tensor<9x1xi1>
  %v31 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]} ins(%v27 : tensor<9x11xi1>) outs(%v30 : tensor<9x1xi1>) {
  ^bb0(%in0: i1, %out: i1):
    %r = arith.ori %in0, %out : i1
    linalg.yield %r : i1
  } -> tensor<9x1xi1>
  %v32 = tensor.empty() : tensor<9x1xi1>
  %v33 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v31 : tensor<9x1xi1>) outs(%v32 : tensor<9x1xi1>) {
  ^bb0(%in0: i1, %out: i1):
    %r = arith.xori %in0, %v25 : i1
    linalg.yield %r : i1
  } -> tensor<9x1xi1>
  %v34 = arith.constant 0.000000e+00 : f32
  %v35 = tensor.empty() : tensor<9x11xf32>
  %v36 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v33, %v23 : tensor<9x1xi1>, tensor<9x11xf32>) outs(%v35 : tensor<9x11xf32>) {
  ^bb0(%in0: i1, %in1: f32, %out: f32):
    %r = arith.select %in0, %v34, %in1 : f32
    linalg.yield %r : f32
  } -> tensor<9x11xf32>
  %v37 = arith.constant 0.000000e+00 : f32
  %v38 = tensor.empty() : tensor<9x8xf32>
  %v39 = linalg.fill ins(%v37 : f32) outs(%v38 : tensor<9x8xf32>) -> tensor<9x8xf32>
  %v40 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%v36, %arg2 : tensor<9x11xf32>, tensor<11x8xf32>) outs(%v39 : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %v40 : tensor<9x8xf32>
}

// The logarithm of the softmax's sum is attention's second result. What reads it
// may stand before the values.
// CHECK-LABEL: func.func @log_sum_exp
// CHECK-NOT: attn.scores
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention {{.*}} scale(1.250000e-01) mask
// CHECK: tensor<1x4x?x64xf32>, tensor<1x4x?xf32>
// CHECK-NOT: attn.log_sum_exp
// CHECK: %[[E:.*]] = math.exp %[[L]]
// CHECK: return %[[O]], %[[E]]
func.func @log_sum_exp(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>) -> (tensor<1x4x?x64xf32>, tensor<1x4x?xf32>) {
  %s = attn.scores %q, %k : tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32> -> tensor<1x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<1x4x?x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi sge, %i, %j : index
    attn.yield %c : i1
  } : tensor<1x4x?x?xf32>
  %l = attn.log_sum_exp %m : tensor<1x4x?x?xf32> -> tensor<1x4x?xf32>
  %e = math.exp %l : tensor<1x4x?xf32>
  %p = attn.softmax %m : tensor<1x4x?x?xf32> -> tensor<1x4x?x?xf32>
  %o = attn.values %p, %v : tensor<1x4x?x?xf32>, tensor<1x4x?x64xf32> -> tensor<1x4x?x64xf32>
  return %o, %e : tensor<1x4x?x64xf32>, tensor<1x4x?xf32>
}

// In another layout, and rounded.
// CHECK-LABEL: func.func @log_sum_exp_rounded
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention
// CHECK-SAME: tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf32>, tensor<1x2x8xf32>
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[L]] {{\[\[}}0, 1], [2]]
// CHECK: %[[R:.*]] = arith.truncf %[[C]] : tensor<2x8xf32> to tensor<2x8xf16>
// CHECK: return %{{.*}}, %[[R]]
func.func @log_sum_exp_rounded(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf32>, tensor<2x8xf16>) {
  %s = attn.scores %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2], [3]] : tensor<1x2x8x8xf32> into tensor<2x8x8xf32>
  %p = attn.softmax %c : tensor<2x8x8xf32> -> tensor<2x8x8xf32>
  %l = attn.log_sum_exp %c : tensor<2x8x8xf32> -> tensor<2x8xf16>
  %x = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 2, 8, 8] : tensor<2x8x8xf32> into tensor<1x2x8x8xf32>
  %o = attn.values %x, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf32>
  return %o, %l : tensor<1x2x8x16xf32>, tensor<2x8xf16>
}
