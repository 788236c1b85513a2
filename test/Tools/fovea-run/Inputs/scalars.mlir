func.func @scalars(%which: i1, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %z = arith.select %which, %x, %y : tensor<f32>
  return %z : tensor<f32>
}
