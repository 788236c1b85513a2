// Reductions, gathers, transposes, padding, loops, branches and calls.
// Each is checked against its float64 reference, run kernel by kernel and fused.
// RUN: fovea-run %s --entry=transpose --random=3 --check --strategy=unfused --dims=70
// RUN: fovea-run %s --entry=transpose --random=3 --check --strategy=fused --dims=70
// RUN: fovea-run %s --entry=transpose --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=transpose --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=padcat --random=3 --check --strategy=unfused --dims=9
// RUN: fovea-run %s --entry=padcat --random=3 --check --strategy=fused --dims=9
// RUN: fovea-run %s --entry=pool --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=pool --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=reduceall --random=3 --check --strategy=unfused --dims=45
// RUN: fovea-run %s --entry=reduceall --random=3 --check --strategy=fused --dims=45
// RUN: fovea-run %s --entry=reduceall --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=reduceall --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=argmax --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=argmax --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=embed --random=3 --check --strategy=unfused --dims=11
// RUN: fovea-run %s --entry=embed --random=3 --check --strategy=fused --dims=11
// RUN: fovea-run %s --entry=gather --random=3 --check --strategy=unfused --dims=41
// RUN: fovea-run %s --entry=gather --random=3 --check --strategy=fused --dims=41
// RUN: fovea-run %s --entry=loop --random=3 --check --strategy=unfused --dims=23
// RUN: fovea-run %s --entry=loop --random=3 --check --strategy=fused --dims=23
// RUN: fovea-run %s --entry=branch --random=3 --check --strategy=unfused --dims=23
// RUN: fovea-run %s --entry=branch --random=3 --check --strategy=fused --dims=23
// RUN: fovea-run %s --entry=caller --random=3 --check --strategy=unfused --dims=23
// RUN: fovea-run %s --entry=caller --random=3 --check --strategy=fused --dims=23
// RUN: fovea-run %s --entry=steps --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=steps --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=steps --random=3 --check --target=sm_90a --simulate
// RUN: fovea-run %s --entry=steps --random=3 --check --target=sm_80 --simulate
// RUN: fovea-run %s --entry=steps --random=3 --check --grad --target=sm_90a --simulate
// RUN: fovea-run %s --entry=parallel --random=3 --check
// RUN: fovea-run %s --entry=parallel --random=3 --check --target=sm_90a --simulate
// RUN: fovea-compile %s --target=sm_90a --emit=llvm -o /dev/null

func.func @transpose(%x: tensor<2x?x3x17xf32>) -> tensor<2x3x17x?xf32> {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<2x?x3x17xf32>
  %e = tensor.empty(%d) : tensor<2x3x17x?xf32>
  %t = linalg.transpose ins(%x : tensor<2x?x3x17xf32>) outs(%e : tensor<2x3x17x?xf32>) permutation = [0, 2, 3, 1]
  return %t : tensor<2x3x17x?xf32>
}

func.func @padcat(%x: tensor<3x?xf32>, %y: tensor<3x5xf32>) -> tensor<6x?xf32> {
  %c0 = arith.constant 1.5 : f32
  %c = tensor.concat dim(1) %x, %y : (tensor<3x?xf32>, tensor<3x5xf32>) -> tensor<3x?xf32>
  %p = tensor.pad %c low[1, 2] high[2, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c0 : f32
  } : tensor<3x?xf32> to tensor<6x?xf32>
  return %p : tensor<6x?xf32>
}

func.func @pool(%x: tensor<1x14x14x3xf32>) -> tensor<1x12x12x3xf32> {
  %e = tensor.empty() : tensor<1x12x12x3xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %z = arith.constant 0xFF800000 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x12x12x3xf32>) -> tensor<1x12x12x3xf32>
  %r = linalg.pooling_nhwc_max ins(%x, %w : tensor<1x14x14x3xf32>, tensor<3x3xf32>) outs(%f : tensor<1x12x12x3xf32>) -> tensor<1x12x12x3xf32>
  return %r : tensor<1x12x12x3xf32>
}

func.func @reduceall(%a: tensor<?x64xf32>) -> (tensor<f32>, tensor<64xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<f32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce { arith.addf } ins(%a : tensor<?x64xf32>) outs(%f : tensor<f32>) dimensions = [0, 1]
  %e1 = tensor.empty() : tensor<64xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %r1 = linalg.reduce { arith.addf } ins(%a : tensor<?x64xf32>) outs(%f1 : tensor<64xf32>) dimensions = [0]
  %n = arith.constant 0xFF800000 : f32
  %fn = linalg.fill ins(%n : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %m = linalg.reduce { arith.maximumf } ins(%a : tensor<?x64xf32>) outs(%fn : tensor<f32>) dimensions = [0, 1]
  return %r, %r1, %m : tensor<f32>, tensor<64xf32>, tensor<f32>
}

func.func @argmax(%a: tensor<5x64xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
  %e = tensor.empty() : tensor<5xf32>
  %ei = tensor.empty() : tensor<5xi64>
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %fi = linalg.fill ins(%zi : i64) outs(%ei : tensor<5xi64>) -> tensor<5xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i)>, affine_map<(i,j)->(i)>], iterator_types=["parallel","reduction"]} ins(%a: tensor<5x64xf32>) outs(%f, %fi : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%x: f32, %m: f32, %im: i64):
    %j = linalg.index 1 : index
    %ji = arith.index_cast %j : index to i64
    %g = arith.cmpf ogt, %x, %m : f32
    %nm = arith.select %g, %x, %m : f32
    %ni = arith.select %g, %ji, %im : i64
    linalg.yield %nm, %ni : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xi64>
}

func.func @embed(%t: tensor<100x48xf32>, %ids: tensor<3x?xi64>) -> tensor<3x?x48xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %ids, %c1 : tensor<3x?xi64>
  %e = tensor.empty(%n) : tensor<3x?x48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b,s,d)->(b,s)>, affine_map<(b,s,d)->(b,s,d)>], iterator_types=["parallel","parallel","parallel"]} ins(%ids: tensor<3x?xi64>) outs(%e : tensor<3x?x48xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %v = tensor.extract %t[%i, %d] : tensor<100x48xf32>
    linalg.yield %v : f32
  } -> tensor<3x?x48xf32>
  return %r : tensor<3x?x48xf32>
}

func.func @gather(%t: tensor<100xf32>, %ids: tensor<3x?xi32>) -> tensor<3x?xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %ids, %c1 : tensor<3x?xi32>
  %e = tensor.empty(%n) : tensor<3x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b,s)->(b,s)>, affine_map<(b,s)->(b,s)>], iterator_types=["parallel","parallel"]} ins(%ids: tensor<3x?xi32>) outs(%e : tensor<3x?xf32>) {
  ^bb0(%id: i32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %v = tensor.extract %t[%i] : tensor<100xf32>
    linalg.yield %v : f32
  } -> tensor<3x?xf32>
  return %r : tensor<3x?xf32>
}

func.func @loop(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<4x?xf32> {
    %t = math.tanh %a : tensor<4x?xf32>
    %u = arith.addf %t, %x : tensor<4x?xf32>
    scf.yield %u : tensor<4x?xf32>
  }
  return %r : tensor<4x?xf32>
}

func.func @branch(%x: tensor<4x?xf32>, %n: i64) -> tensor<4x?xf32> {
  %z = arith.constant 3 : i64
  %c = arith.cmpi sgt, %n, %z : i64
  %r = scf.if %c -> tensor<4x?xf32> {
    %t = math.tanh %x : tensor<4x?xf32>
    scf.yield %t : tensor<4x?xf32>
  } else {
    scf.yield %x : tensor<4x?xf32>
  }
  return %r : tensor<4x?xf32>
}

func.func @caller(%x: tensor<4x?xf32>) -> (tensor<4x?xf32>, tensor<4x?xf32>) {
  %y = func.call @callee(%x) : (tensor<4x?xf32>) -> tensor<4x?xf32>
  %z = func.call @callee(%y) : (tensor<4x?xf32>) -> tensor<4x?xf32>
  return %y, %z : tensor<4x?xf32>, tensor<4x?xf32>
}
func.func private @callee(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %t = math.sin %x : tensor<4x?xf32>
  return %t : tensor<4x?xf32>
}

// Attention of every other row, feature and head.
func.func @steps(%x: tensor<1x6x140x32xf16>) -> tensor<1x2x70x16xf16> {
  %q = tensor.extract_slice %x[0, 0, 1, 0] [1, 2, 70, 16] [1, 1, 2, 1] : tensor<1x6x140x32xf16> to tensor<1x2x70x16xf16>
  %k = tensor.extract_slice %x[0, 2, 70, 1] [1, 2, 70, 16] [1, 2, 1, 2] : tensor<1x6x140x32xf16> to tensor<1x2x70x16xf16>
  %v = tensor.extract_slice %x[0, 4, 0, 16] [1, 2, 70, 16] [1, 1, 1, 1] : tensor<1x6x140x32xf16> to tensor<1x2x70x16xf16>
  %o = attn.attention %q, %k, %v scale(0.25) : tensor<1x2x70x16xf16>, tensor<1x2x70x16xf16>, tensor<1x2x70x16xf16> -> tensor<1x2x70x16xf16>
  return %o : tensor<1x2x70x16xf16>
}

// Attention in a parallel loop that the graph has.
func.func @parallel(%q: tensor<4x2x20x16xf16>) -> tensor<4x2x20x16xf16> {
  %e = tensor.empty() : tensor<4x2x20x16xf16>
  %r = scf.forall (%i) in (4) shared_outs(%out = %e) -> (tensor<4x2x20x16xf16>) {
    %s = tensor.extract_slice %q[%i, 0, 0, 0] [1, 2, 20, 16] [1, 1, 1, 1] : tensor<4x2x20x16xf16> to tensor<1x2x20x16xf16>
    %o = attn.attention %s, %s, %s scale(0.25) : tensor<1x2x20x16xf16>, tensor<1x2x20x16xf16>, tensor<1x2x20x16xf16> -> tensor<1x2x20x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %out[%i, 0, 0, 0] [1, 2, 20, 16] [1, 1, 1, 1] : tensor<1x2x20x16xf16> into tensor<4x2x20x16xf16>
    }
  }
  return %r : tensor<4x2x20x16xf16>
}
