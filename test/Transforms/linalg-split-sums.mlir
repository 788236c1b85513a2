// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --linalg-split-sums --canonicalize | FileCheck %s
// RUN: fovea-opt %s --linalg-split-sums --canonicalize | FileCheck %s --check-prefix=HOST

// 2048 columns, in eight tiles; 256 parts of the rows, of a number that is not known,
// and their sum.
// CHECK-LABEL: func @columns
// CHECK-SAME: %[[X:.*]]: tensor<?x2048xbf16>, %[[INIT:.*]]: tensor<2048xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[PARTS:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %[[X]]
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<2048x256xf32>
// CHECK: %[[ALL:.*]] = scf.forall (%[[T:.*]], %[[P:.*]]) in (8, 256) shared_outs(%[[O:.*]] = %[[OUT]])
// CHECK: %[[COLUMN:.*]] = arith.muli %[[T]], %{{.*}}
// CHECK: %[[SHARE:.*]] = arith.ceildivsi %[[ROWS]], %[[PARTS]]
// CHECK: %[[AT:.*]] = arith.muli %[[P]], %[[SHARE]]
// CHECK: %[[ROW:.*]] = arith.minsi %[[AT]], %[[ROWS]]
// CHECK: %[[REST:.*]] = arith.subi %[[ROWS]], %[[ROW]]
// CHECK: %[[SIZE:.*]] = arith.minsi %[[SHARE]], %[[REST]]
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[X]][%[[ROW]], %[[COLUMN]]] [%[[SIZE]], 256] [1, 1]
// CHECK: %[[ZEROS:.*]] = linalg.fill ins(%[[ZERO]] : f32)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[TILE]] : tensor<?x256xbf16>) outs(%[[ZEROS]] : tensor<256xf32>)
// CHECK: tensor.parallel_insert_slice %[[SUM]] into %[[O]][%[[COLUMN]], %[[P]]] [256, 1] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[ALL]] : tensor<2048x256xf32>) outs(%[[INIT]] : tensor<2048xf32>)
// HOST-LABEL: func @columns
// HOST-NOT: scf.forall
// HOST: return
func.func @columns(%x: tensor<?x2048xbf16>, %init: tensor<2048xf32>) -> tensor<2048xf32> {
  %s = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x2048xbf16>) outs(%init : tensor<2048xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %r = arith.addf %o, %w : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  return %s : tensor<2048xf32>
}

// Two results, of which one is a maximum; batches are whole in each item. 301 columns
// are no multiple of two tiles, and 1000 rows are few: 16 parts of 63.
// CHECK-LABEL: func @batches
// CHECK-SAME: %[[X:.*]]: tensor<?x1000x301xf32>, %[[Y:.*]]: tensor<?x301xf32>
// CHECK-DAG: arith.constant 0xFF800000 : f32
// CHECK: scf.forall (%[[T:.*]], %[[P:.*]]) in (2, 16) shared_outs(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<301x16xf32>, tensor<301x16xf32>)
// CHECK: tensor.extract_slice %[[X]][0, %{{.*}}, %{{.*}}] [%{{.*}}, %{{.*}}, %{{.*}}] [1, 1, 1]
// CHECK: tensor.extract_slice %[[Y]][0, %{{.*}}] [%{{.*}}, %{{.*}}] [1, 1]
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: scf.forall.in_parallel
// CHECK-COUNT-2: tensor.parallel_insert_slice
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.maximumf
func.func @batches(%x: tensor<?x1000x301xf32>, %y: tensor<?x301xf32>, %f: tensor<301xf32>) -> (tensor<301xf32>, tensor<301xf32>) {
  %s:2 = linalg.generic {indexing_maps = [affine_map<(d, b, n) -> (b, n, d)>, affine_map<(d, b, n) -> (b, d)>, affine_map<(d, b, n) -> (d)>, affine_map<(d, b, n) -> (d)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %y : tensor<?x1000x301xf32>, tensor<?x301xf32>) outs(%f, %f : tensor<301xf32>, tensor<301xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %o, %m : f32
    %q = arith.maximumf %p, %a : f32
    linalg.yield %r, %q : f32, f32
  } -> (tensor<301xf32>, tensor<301xf32>)
  return %s#0, %s#1 : tensor<301xf32>, tensor<301xf32>
}

// Left alone: terms that are neighbours, few terms, results enough for all threads or
// of unknown number, a contraction, a body that is no sum, and rows read backwards.
// CHECK-LABEL: func @kept
// CHECK-NOT: scf.forall
// CHECK: return
func.func @kept(%x: tensor<2048x?xf32>, %few: tensor<63x2048xf32>, %wide: tensor<?x2048xf32>, %many: tensor<?x1000000xf32>, %any: tensor<?x?xf32>,
                %rows: tensor<2048xf32>, %a: tensor<1000000xf32>, %b: tensor<?xf32>, %c: tensor<64x64xf32>, %k: tensor<?x64xf32>, %hundred: tensor<100x2048xf32>)
    -> (tensor<2048xf32>, tensor<2048xf32>, tensor<1000000xf32>, tensor<?xf32>, tensor<64x64xf32>, tensor<2048xf32>, tensor<2048xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (d, n)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2048x?xf32>) outs(%rows : tensor<2048xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%few : tensor<63x2048xf32>) outs(%rows : tensor<2048xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%many : tensor<?x1000000xf32>) outs(%a : tensor<1000000xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<1000000xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%any : tensor<?x?xf32>) outs(%b : tensor<?xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%k, %k : tensor<?x64xf32>, tensor<?x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%wide : tensor<?x2048xf32>) outs(%rows : tensor<2048xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %o, %i : f32
    %r = arith.addf %m, %i : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d, n) -> (n, d)>, affine_map<(d, n) -> (99 - n, d)>, affine_map<(d, n) -> (d)>], iterator_types = ["parallel", "reduction"]} ins(%hundred, %hundred : tensor<100x2048xf32>, tensor<100x2048xf32>) outs(%rows : tensor<2048xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2048xf32>, tensor<2048xf32>, tensor<1000000xf32>, tensor<?xf32>, tensor<64x64xf32>, tensor<2048xf32>, tensor<2048xf32>
}
