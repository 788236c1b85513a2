// The textbook LayerNorm -> Dropout -> Add: three operations, one kernel, one
// pass over memory.
//
//   fovea-run examples/norm_dropout_add.mlir --random=1 --check --report

func.func @block(%x: tensor<4096x1024xf32>, %weight: tensor<1024xf32>, %bias: tensor<1024xf32>,
                 %residual: tensor<4096x1024xf32>, %state: tensor<2xi64>) -> tensor<4096x1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seed = tensor.extract %state[%c0] : tensor<2xi64>
  %offset = tensor.extract %state[%c1] : tensor<2xi64>
  %n = attn.layer_norm %x weight(%weight : tensor<1024xf32>) bias(%bias : tensor<1024xf32>) epsilon(1.0e-5) : tensor<4096x1024xf32>
  %d = attn.dropout %n, 0.1 seed(%seed, %offset) : tensor<4096x1024xf32>
  %y = attn.residual_add %d, %residual : tensor<4096x1024xf32>, tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
