func.func @mix(%a: tensor<?x5xf32>, %b: tensor<?x5xf32>, %c: tensor<?x5xi32>, %n: i32) -> tensor<?x5xf32> {
  // (a + b) * (c + n)
  %sum = linalg.add ins(%a, %b : tensor<?x5xf32>, tensor<?x5xf32>) outs(%a : tensor<?x5xf32>) -> tensor<?x5xf32>
  %r = attn.elementwise %sum, %c {
  ^bb0(%x: f32, %i: i32):
    %m = arith.addi %i, %n : i32
    %f = arith.sitofp %m : i32 to f32
    %y = arith.mulf %x, %f : f32
    attn.yield %y : f32
  } : (tensor<?x5xf32>, tensor<?x5xi32>) -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}
