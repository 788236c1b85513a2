// RUN: not fovea-opt %s --attn-online-softmax=passes=4 2>&1 | FileCheck %s

// CHECK: error: attn-online-softmax: expects option 'passes' to be 1, 2 or 3, but it is 4{{$}}
module {}
