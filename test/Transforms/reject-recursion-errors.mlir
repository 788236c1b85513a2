// RUN: fovea-opt %s --split-input-file --verify-diagnostics --reject-recursion

// expected-error@+1 {{@f calls itself; recursive functions are not supported}}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{called here}}
  %b = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// expected-error@+1 {{@f calls itself by way of @g; recursive functions are not supported}}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{called here}}
  %b = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// A call in a loop, from a function that calls others as well.
func.func private @leaf(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
// expected-error@+1 {{@middle calls itself by way of @last; recursive functions are not supported}}
func.func private @middle(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = func.call @leaf(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %l) -> tensor<4xf32> {
    // expected-note@+1 {{called here}}
    %u = func.call @last(%t, %i) : (tensor<4xf32>, index) -> tensor<4xf32>
    scf.yield %u : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func private @last(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %b = func.call @middle(%a, %n) : (tensor<4xf32>, index) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @entry(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %b = func.call @middle(%a, %n) : (tensor<4xf32>, index) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Calls without a cycle, of one function twice, and of one that is elsewhere.
func.func private @elsewhere(%a: tensor<4xf32>) -> tensor<4xf32>
func.func private @leaf(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = func.call @elsewhere(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @entry(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = func.call @leaf(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @leaf(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
