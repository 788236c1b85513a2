// Elementwise work on numbers of all kinds, views, and what is returned as it came.
// Each is checked against its float64 reference, run kernel by kernel and fused.
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=unfused --dims=1
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=fused --dims=1
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=unfused --dims=37
// RUN: fovea-run %s --entry=ints --random=3 --check --strategy=fused --dims=37
// RUN: fovea-run %s --entry=boolsel --random=3 --check --strategy=unfused --dims=45
// RUN: fovea-run %s --entry=boolsel --random=3 --check --strategy=fused --dims=45
// RUN: fovea-run %s --entry=zerod --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=zerod --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=same --random=3 --check --strategy=unfused --dims=7
// RUN: fovea-run %s --entry=same --random=3 --check --strategy=fused --dims=7
// RUN: fovea-run %s --entry=strided --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=strided --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=consts --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=consts --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=vec1 --random=3 --check --strategy=unfused --dims=100000
// RUN: fovea-run %s --entry=vec1 --random=3 --check --strategy=fused --dims=100000
// RUN: fovea-run %s --entry=vec1 --random=3 --check --strategy=unfused --dims=3
// RUN: fovea-run %s --entry=vec1 --random=3 --check --strategy=fused --dims=3
// RUN: fovea-run %s --entry=outer --random=3 --check --strategy=unfused --dims=9
// RUN: fovea-run %s --entry=outer --random=3 --check --strategy=fused --dims=9
// RUN: fovea-run %s --entry=collapse --random=3 --check --strategy=unfused --dims=9
// RUN: fovea-run %s --entry=collapse --random=3 --check --strategy=fused --dims=9
// RUN: fovea-run %s --entry=generate --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=generate --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=slices --random=3 --check --strategy=unfused --dims=23
// RUN: fovea-run %s --entry=slices --random=3 --check --strategy=fused --dims=23
// RUN: fovea-run %s --entry=gelu --random=3 --check --strategy=unfused --dims=9
// RUN: fovea-run %s --entry=gelu --random=3 --check --strategy=fused --dims=9

func.func @ints(%a: tensor<3x?xi32>, %b: tensor<3x?xi32>) -> (tensor<3x?xi32>, tensor<3x?xi1>, tensor<3x?xi64>) {
  %c = arith.addi %a, %b : tensor<3x?xi32>
  %d = arith.cmpi slt, %a, %b : tensor<3x?xi32>
  %e = arith.extsi %c : tensor<3x?xi32> to tensor<3x?xi64>
  return %c, %d, %e : tensor<3x?xi32>, tensor<3x?xi1>, tensor<3x?xi64>
}

func.func @boolsel(%m: tensor<5x?xi1>, %x: tensor<5x?xf16>, %y: tensor<5x?xf16>) -> tensor<5x?xf16> {
  %r = arith.select %m, %x, %y : tensor<5x?xi1>, tensor<5x?xf16>
  return %r : tensor<5x?xf16>
}

func.func @zerod(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %r = arith.addf %x, %y : tensor<f32>
  return %r, %x : tensor<f32>, tensor<f32>
}

func.func @same(%x: tensor<4x?xf32>) -> (tensor<4x?xf32>, tensor<4x?xf32>) {
  %s = math.exp %x : tensor<4x?xf32>
  return %s, %s : tensor<4x?xf32>, tensor<4x?xf32>
}

func.func @strided(%x: tensor<8x20xf32>) -> tensor<8x10xf32> {
  %s = tensor.extract_slice %x[0, 1] [8, 10] [1, 2] : tensor<8x20xf32> to tensor<8x10xf32>
  %t = arith.mulf %s, %s : tensor<8x10xf32>
  return %t : tensor<8x10xf32>
}

func.func @consts(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>) {
  %c = arith.constant dense<[[1.0,2.0,3.0],[4.0,5.0,6.0]]> : tensor<2x3xf32>
  %i = arith.constant dense<7> : tensor<2x3xi32>
  %s = arith.constant dense<0.5> : tensor<2x2xf32>
  %r = arith.addf %x, %c : tensor<2x3xf32>
  return %r, %i, %s : tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>
}

func.func @vec1(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %a = arith.mulf %x, %y : tensor<?xf32>
  %b = math.sqrt %a : tensor<?xf32>
  %c = arith.addf %a, %x : tensor<?xf32>
  return %c : tensor<?xf32>
}

func.func @outer(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i)>, affine_map<(i,j)->(j)>, affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%x, %y: tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m1 = arith.mulf %a, %b : f32
    linalg.yield %m1 : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @collapse(%x: tensor<2x3x?xf32>) -> tensor<6x?xf32> {
  %y = tensor.collapse_shape %x [[0,1],[2]] : tensor<2x3x?xf32> into tensor<6x?xf32>
  return %y : tensor<6x?xf32>
}

func.func @generate(%n: index) -> tensor<?x4xf32> {
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %f = arith.sitofp %t : i32 to f32
    tensor.yield %f : f32
  } : tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}

func.func @slices(%x: tensor<8x?xf32>) -> (tensor<4x?xf32>, tensor<8x?xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<8x?xf32>
  %s = tensor.extract_slice %x[1, 0] [4, %n] [2, 1] : tensor<8x?xf32> to tensor<4x?xf32>
  %t = math.exp %s : tensor<4x?xf32>
  %u = tensor.insert_slice %t into %x[2, 0] [4, %n] [1, 1] : tensor<4x?xf32> into tensor<8x?xf32>
  return %s, %u : tensor<4x?xf32>, tensor<8x?xf32>
}

func.func @gelu(%x: tensor<2x?x48xbf16>) -> tensor<2x?x48xbf16> {
  %y = attn.elementwise %x {
  ^bb0(%a: bf16):
    %f = arith.extf %a : bf16 to f32
    %h = arith.constant 0.5 : f32
    %k = arith.constant 0.70710678 : f32
    %one = arith.constant 1.0 : f32
    %m = arith.mulf %f, %k : f32
    %e = math.erf %m : f32
    %s = arith.addf %e, %one : f32
    %p = arith.mulf %f, %h : f32
    %q = arith.mulf %p, %s : f32
    %t = arith.truncf %q : f32 to bf16
    attn.yield %t : bf16
  } : (tensor<2x?x48xbf16>) -> tensor<2x?x48xbf16>
  return %y : tensor<2x?x48xbf16>
}
