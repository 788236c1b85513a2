// RUN: fovea-opt %s --verify-diagnostics --split-input-file

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

// expected-error@+1 {{expected a shape of positive sizes}}
#layout_size = #tile.layout<0x8, registers = [], threads = [8:1d1]>

// -----

// expected-error@+1 {{expected digits of at least 2 values along one of 2 dimensions, got 1 along dimension 0}}
#layout_trivial_digit = #tile.layout<8x8, registers = [1:1d0, 8:1d0], threads = [8:1d1]>

// -----

// expected-error@+1 {{expected digits of at least 2 values along one of 2 dimensions, got 8 along dimension 2}}
#layout_dimension = #tile.layout<8x8, registers = [8:1d0], threads = [8:1d2]>

// -----

// expected-error@+1 {{a register digit must not replicate}}
#layout_replicated_register = #tile.layout<8, registers = [8:1d0, 2:r], threads = []>

// -----

// A hole: elements 4 to 7 have no place.
// expected-error@+1 {{digits along dimension 0 must count it: expected one of stride 4, got 8}}
#layout_hole = #tile.layout<16, registers = [4:1d0], threads = [2:8d0]>

// -----

// Two places for one element.
// expected-error@+1 {{digits along dimension 0 must count it: expected one of stride 4, got 2}}
#layout_overlap = #tile.layout<16, registers = [4:1d0], threads = [4:2d0]>

// -----

// expected-error@+1 {{digits along dimension 1 count 4 elements, expected 8}}
#layout_short = #tile.layout<8x8, registers = [4:1d1], threads = [8:1d0]>

// -----

// expected-error@+1 {{expected a dimension as in `4:2d1`}}
#layout_digit = #tile.layout<8, registers = [8:1x0], threads = []>

// -----

// expected-error@+1 {{expected a dimension as in `4:2d1`}}
#layout_no_dimension = #tile.layout<8, registers = [8:1d], threads = []>

// -----

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

// expected-error@+1 {{expected one or two positive sizes}}
func.func private @fragment_rank(!tile.fragment<2x2x2xf32>)

// -----

// expected-error@+1 {{expected one or two positive sizes}}
func.func private @fragment_size(!tile.fragment<2x0xf32>)

// -----

// expected-error@+1 {{expected integers or floats, got 'index'}}
func.func private @fragment_element(!tile.fragment<2x2xindex>)

// -----

// expected-error@+1 {{the layout is of 16 elements, the fragment of 8}}
func.func private @fragment_layout(!tile.fragment<8xf32, #tile.layout<16, registers = [], threads = [16:1d0]>>)

// -----

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

// expected-error@+1 {{expected rows and columns}}
func.func private @shared_rank(!tile.shared<64xbf16>)

// -----

// expected-error@+1 {{expected integers or floats, got 'complex<f32>'}}
func.func private @shared_element(!tile.shared<64x64xcomplex<f32>>)

// -----

// expected-error@+1 {{expected a swizzle of 32, 64 or 128 bytes, got 16}}
func.func private @shared_swizzle(!tile.shared<64x64xbf16, swizzle = 16>)

// -----

// expected-error@+1 {{with a swizzle expected rows in groups of 8, got 12}}
func.func private @shared_rows(!tile.shared<12x64xbf16, swizzle = 128>)

// -----

// expected-error@+1 {{expected runs of a multiple of 8 rows that divides 64, got 24}}
func.func private @shared_runs(!tile.shared<64x64xbf16, swizzle = 128, runs = 24>)

// -----

// expected-error@+1 {{expected runs of a multiple of 8 rows that divides 64, got 4}}
func.func private @shared_short_runs(!tile.shared<64x64xbf16, swizzle = 128, runs = 4>)

// -----

// expected-error@+1 {{expected a swizzle beside runs}}
func.func private @shared_runs_swizzle(!tile.shared<64x64xbf16, swizzle = 0, runs = 16>)

// -----

//===----------------------------------------------------------------------===//
// Rings and tensor maps
//===----------------------------------------------------------------------===//

// expected-error@+1 {{expected at least one stage, got 0}}
func.func private @ring_stages(!tile.ring<0 x !tile.shared<64x64xbf16>>)

// -----

// expected-error@+1 {{expected a tensor of rank 2 to 5, got 6}}
func.func private @tensor_map_rank(!tile.tensor_map<6 x !tile.shared<64x64xbf16>>)

// -----

// expected-error@+1 {{expected at most 256 rows and 256 columns a copy, got 512 and 64}}
func.func private @tensor_map_rows(!tile.tensor_map<2 x !tile.shared<512x64xbf16>>)

// -----

// expected-error@+1 {{expected at most 256 rows and 256 columns a copy, got 64 and 512}}
func.func private @tensor_map_columns(!tile.tensor_map<2 x !tile.shared<64x512xbf16>>)

// -----

// expected-error@+1 {{expected a tile that is one run, got '!tile.shared<64x128xbf16, swizzle = 128, runs = 16>'}}
func.func private @tensor_map_runs(!tile.tensor_map<3 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>)
