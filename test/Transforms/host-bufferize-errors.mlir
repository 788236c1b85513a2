// RUN: fovea-opt --host-bufferize --split-input-file --verify-diagnostics %s

// The old elements are still needed: an update in memory of its own would leave
// the caller's as it was.
func.func @late(%x: tensor<4xf32> {bufferization.writable = true}) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{updates operand 0 of @late, which is writable, but its elements from before the update are read later}}
  %u = tensor.insert %z into %x[%c0] : tensor<4xf32>
  %new = tensor.extract %u[%c0] : tensor<4xf32>
  %old = tensor.extract %x[%c0] : tensor<4xf32>
  return %new, %old : f32, f32
}
