// Contractions of every shape and type.
// Each is checked against its float64 reference, run kernel by kernel and fused.
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=unfused --dims=45
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=fused --dims=45
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=unfused --dims=1
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=fused --dims=1
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=unfused --dims=0
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=fused --dims=0
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=unfused --dims=300
// RUN: fovea-run %s --entry=mm16 --random=3 --check --strategy=fused --dims=300
// RUN: fovea-run %s --entry=mmacc --random=3 --check --strategy=unfused --dims=45
// RUN: fovea-run %s --entry=mmacc --random=3 --check --strategy=fused --dims=45
// RUN: fovea-run %s --entry=mmacc --random=3 --check --strategy=unfused --dims=100
// RUN: fovea-run %s --entry=mmacc --random=3 --check --strategy=fused --dims=100
// RUN: fovea-run %s --entry=mmbf --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=mmbf --random=3 --check --strategy=fused
// RUN: fovea-run %s --entry=matvec --random=3 --check --strategy=unfused --dims=45
// RUN: fovea-run %s --entry=matvec --random=3 --check --strategy=fused --dims=45
// RUN: fovea-run %s --entry=conv --random=3 --check --strategy=unfused
// RUN: fovea-run %s --entry=conv --random=3 --check --strategy=fused

func.func @mm16(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %b, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @mmacc(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>, %c: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf64>, tensor<?x?xf64>) outs(%c : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %r : tensor<?x?xf64>
}

func.func @mmbf(%a: tensor<70x33xbf16>, %b: tensor<33x50xbf16>) -> tensor<70x50xbf16> {
  %e = tensor.empty() : tensor<70x50xbf16>
  %z = arith.constant 0.0 : bf16
  %f = linalg.fill ins(%z : bf16) outs(%e : tensor<70x50xbf16>) -> tensor<70x50xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<70x33xbf16>, tensor<33x50xbf16>) outs(%f : tensor<70x50xbf16>) -> tensor<70x50xbf16>
  return %r : tensor<70x50xbf16>
}

func.func @matvec(%a: tensor<?x64xf32>, %b: tensor<64xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.matvec ins(%a, %b : tensor<?x64xf32>, tensor<64xf32>) outs(%f : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @conv(%x: tensor<1x14x14x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<1x12x12x8xf32> {
  %e = tensor.empty() : tensor<1x12x12x8xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x12x12x8xf32>) -> tensor<1x12x12x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x14x14x3xf32>, tensor<3x3x3x8xf32>) outs(%f : tensor<1x12x12x8xf32>) -> tensor<1x12x12x8xf32>
  return %r : tensor<1x12x12x8xf32>
}
