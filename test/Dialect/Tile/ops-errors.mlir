// RUN: fovea-opt %s --verify-diagnostics --split-input-file

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

func.func @launch_grid(%o: memref<?xf32>, %n: index) {
  // expected-error@+1 {{expected a grid of 1 to 3 dimensions, got 4}}
  tile.launch grid(%n, %n, %n, %n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%x: index, %y: index, %z: index, %w: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}

// -----

func.func @launch_warps(%o: memref<?xf32>, %n: index) {
  // expected-error@+1 {{attribute 'warps' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  tile.launch grid(%n) warps 0 outs(%o : memref<?xf32>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}

// -----

func.func @launch_arguments(%o: memref<?xf32>, %n: index) {
  // expected-error@+1 {{expected 2 region arguments, one for each dimension of the grid and each operand, got 1}}
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%x: index):
  }
  return
}

// -----

func.func @launch_argument_type(%o: memref<?x8xf32>, %n: index) {
  // expected-error@+1 {{expected region argument 1 of type 'memref<?x8xf32, strided<[?, 1], offset: ?>>', got 'memref<?x8xf32>'}}
  tile.launch grid(%n) warps 4 outs(%o : memref<?x8xf32>) {
  ^bb0(%x: index, %O: memref<?x8xf32>):
  }
  return
}

// -----

func.func @launch_index_type(%o: memref<?xf32>, %n: index) {
  // expected-error@+1 {{expected region argument 0 of type 'index', got 'i32'}}
  tile.launch grid(%n) warps 4 outs(%o : memref<?xf32>) {
  ^bb0(%x: i32, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}

// -----

func.func @launch_results(%o: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{expected a result for each tensor of outs, 1, got 0}}
  tile.launch grid(%n) warps 4 outs(%o : tensor<?xf32>) {
  ^bb0(%x: index, %O: memref<?xf32, strided<[1], offset: ?>>):
  }
  return
}

// -----

func.func @return_parent() {
  // expected-error@+1 {{expects parent op to be one of 'tile.launch, tile.role'}}
  tile.return
}

// -----

func.func @roles_content() {
  tile.roles {
    // expected-error@+1 {{must not stand among roles}}
    %c = arith.constant 0 : index
  }
  return
}

// -----

func.func @role_parent() {
  // expected-error@+1 {{expects parent op 'tile.roles'}}
  tile.role "load" warps 4 {
  }
  return
}

// -----

func.func @role_warp_groups() {
  tile.roles {
    tile.role "load" warps 4 registers 24 {
    }
    // expected-error@+1 {{with a register budget must end a warp group of 4 warps, got 6 warps to its end}}
    tile.role "store" warps 2 registers 24 {
    }
  }
  return
}

// -----

func.func @role_shared_group() {
  tile.roles {
    tile.role "load" warps 2 registers 24 {
    }
    // expected-error@+1 {{expected the register budget of role "load", with which it shares a warp group}}
    tile.role "store" warps 2 registers 32 {
    }
  }
  return
}

// -----

func.func @role_few_registers() {
  tile.roles {
    // expected-error@+1 {{expected a register budget of 24 to 256, a multiple of 8, got 16}}
    tile.role "load" warps 4 registers 16 {
    }
  }
  return
}

// -----

func.func @role_many_registers() {
  tile.roles {
    // expected-error@+1 {{expected a register budget of 24 to 256, a multiple of 8, got 264}}
    tile.role "load" warps 4 registers 264 {
    }
  }
  return
}

// -----

func.func @role_odd_registers() {
  tile.roles {
    // expected-error@+1 {{expected a register budget of 24 to 256, a multiple of 8, got 100}}
    tile.role "load" warps 4 registers 100 {
    }
  }
  return
}

// -----

func.func @group_outside(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    // expected-error@+1 {{expected to stand in a role}}
    %g = tile.group
  }
  return
}

// -----

func.func @group_of_one_thread(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "load" warps 4 single {
        // expected-error@+1 {{expected a role that whole warp groups of 4 warps run, got one thread in role "load"}}
        %g = tile.group
      }
    }
  }
  return
}

// -----

func.func @turn_outside(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    // expected-error@+1 {{expected to stand in a role}}
    tile.take_group_turn
  }
  return
}

// -----

func.func @turn_of_one_group(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "compute" warps 4 {
        // expected-error@+1 {{expected a role of at least 2 warp groups, got 1 in role "compute"}}
        tile.take_group_turn
      }
    }
  }
  return
}

// -----

func.func @turn_of_one_thread(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "load" warps 8 single {
        // expected-error@+1 {{expected a role that whole warp groups of 4 warps run, got one thread in role "load"}}
        tile.pass_group_turn
      }
    }
  }
  return
}

// -----

func.func @group_of_two_warps(%o: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%o : memref<?xf32>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "compute" warps 6 {
        // expected-error@+1 {{expected a role that whole warp groups of 4 warps run, got part of a group in role "compute"}}
        %g = tile.group
      }
    }
  }
  return
}

// -----

func.func @of_rows_arguments(%n: index) {
  // expected-error@+1 {{expected a region of two indices, the first and the last row}}
  %0 = tile.of_rows %n rows 64 {
  ^bb0(%first: index):
    tile.yield %first : index
  } : index
  return
}

// -----

func.func @of_rows_yield(%n: index, %x: i1) {
  // expected-error@+1 {{expected a region that yields 'index'}}
  %0 = tile.of_rows %n rows 64 {
  ^bb0(%first: index, %last: index):
    tile.yield %x : i1
  } : index
  return
}

// -----

func.func @of_no_rows(%n: index) {
  // expected-error@+1 {{attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = tile.of_rows %n rows 0 {
  ^bb0(%first: index, %last: index):
    tile.yield %n : index
  } : index
  return
}

// -----

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

func.func @load_element(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'f16', got 'bf16'}}
  %t = tile.load %m[%i, %i] dims [0, 1] : memref<?x?xf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_indices(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected 2 indices, got 1}}
  %t = tile.load %m[%i] dims [0, 1] : memref<?x?xf16> -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @load_rows(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected the first of the rows and their end, got 1 bounds}}
  %t = tile.load %m[%i, %i] dims [0, 1] rows(%i) : memref<?x?xf16> -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @load_rows_of_fragment(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected a tile in shared memory to bound the rows of, got '!tile.fragment<64x64xf16>'}}
  %t = tile.load %m[%i, %i] dims [0, 1] rows(%i, %i) : memref<?x?xf16> -> !tile.fragment<64x64xf16>
  return
}

// -----

func.func @load_dims(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected a dimension of the memref for each of the tile's 2, got 1}}
  %t = tile.load %m[%i, %i] dims [1] : memref<?x?xf16> -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @load_dim_range(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected different dimensions of a memref of rank 2, got 2}}
  %t = tile.load %m[%i, %i] dims [1, 2] : memref<?x?xf16> -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @load_dim_twice(%m: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected different dimensions of a memref of rank 2, got 1}}
  %t = tile.load %m[%i, %i] dims [1, 1] : memref<?x?xf16> -> !tile.fragment<64x64xf16>
  return
}

// -----

func.func @store_element(%m: memref<?x?xf16>, %i: index, %f: !tile.fragment<64x64xf32>) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'f16', got 'f32'}}
  tile.store %f, %m[%i, %i] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf16>
  return
}

// -----

func.func @store_indices(%m: memref<?x?xf32>, %i: index, %f: !tile.fragment<64x64xf32>) {
  // expected-error@+1 {{expected 2 indices, got 3}}
  tile.store %f, %m[%i, %i, %i] dims [0, 1] : !tile.fragment<64x64xf32>, memref<?x?xf32>
  return
}

// -----

func.func @store_dims(%m: memref<?x?xf32>, %i: index, %f: !tile.fragment<64xf32>) {
  // expected-error@+1 {{expected a dimension of the memref for each of the tile's 1, got 2}}
  tile.store %f, %m[%i, %i] dims [0, 1] : !tile.fragment<64xf32>, memref<?x?xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

func.func @fill_element(%x: f64) {
  // expected-error@+1 {{the value is an element of the result}}
  %f = "tile.fill"(%x) : (f64) -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @map_shape(%a: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected an operand of shape 8, 16, got '!tile.fragment<8x8xf32>'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x16xf32>
  return
}

// -----

func.func @map_row_shape(%a: !tile.fragment<16xf32>) {
  // expected-error@+1 {{expected an operand of shape 8, got '!tile.fragment<16xf32>'}}
  %f = tile.map rows(%a : !tile.fragment<16xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x16xf32>
  return
}

// -----

func.func @map_column_shape(%a: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected an operand of shape 16, got '!tile.fragment<8xf32>'}}
  %f = tile.map columns(%a : !tile.fragment<8xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x16xf32>
  return
}

// -----

func.func @map_rows_of_rank_1(%a: !tile.fragment<8xf32>) {
  // expected-error@+1 {{with rows or columns must have a result of rank 2}}
  %f = tile.map rows(%a : !tile.fragment<8xf32>) {
  ^bb0(%x: f32, %i: index):
    tile.yield %x : f32
  } -> !tile.fragment<8xf32>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>
#by_column = #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>

func.func @map_layout(%a: !tile.fragment<8x8xf32, #by_column>) {
  // expected-error@+1 {{expected an operand whose threads hold the result's elements, as in #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>, got '!tile.fragment<8x8xf32, #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>>'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32, #by_column>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32, #by_row>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>

func.func @map_no_layout(%a: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected an operand whose threads hold the result's elements, as in #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>, got '!tile.fragment<8x8xf32>'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32, #by_row>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>

func.func @map_layout_lost(%a: !tile.fragment<8x8xf32, #by_row>) {
  // expected-error@+1 {{expected an operand without a layout, as the result, got '!tile.fragment<8x8xf32, #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>>'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32, #by_row>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>
#threads = #tile.layout<8, registers = [], threads = [8:1d0]>

// Thread t holds row t, so it needs column j in every thread.
func.func @map_column_layout(%a: !tile.fragment<8xf32, #threads>) {
  // expected-error@+1 {{expected an operand whose threads hold the result's elements, as in #tile.layout<8, registers = [8:1d0], threads = [8:r]>}}
  %f = tile.map columns(%a : !tile.fragment<8xf32, #threads>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32, #by_row>
  return
}

// -----

func.func @map_arguments(%a: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected region arguments 'f32', 'index', 'index': one element of each operand, then 2 coordinates; got 'f32'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32>) {
  ^bb0(%x: f32):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @load_async_runs_slot(%m: memref<?x?x128xbf16, strided<[?, ?, 1]>>, %g: !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>, %s: !tile.shared<64x128xbf16, swizzle = 128, runs = 16>, %i: index) {
  // expected-error@+1 {{expected 'runs 16' to fill a slot '!tile.shared<64x128xbf16, swizzle = 128, runs = 16>'}}
  tile.load_async %m[%i, %i, %i] dims [1, 2] into %s signals %g[%i] : memref<?x?x128xbf16, strided<[?, ?, 1]>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  return
}

// -----

func.func @load_async_other_runs(%m: memref<?x?x128xbf16, strided<[?, ?, 1]>>, %g: !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>, %s: !tile.shared<64x128xbf16, swizzle = 128, runs = 16>, %i: index) {
  // expected-error@+1 {{expected 'runs 16' to fill a slot}}
  tile.load_async %m dims [1, 2] runs 32 {
  ^bb0(%r: index):
    tile.yield %i, %r : index, index
  } into %s signals %g[%i] : memref<?x?x128xbf16, strided<[?, ?, 1]>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128, runs = 16>>
  return
}

// -----

func.func @store_async_runs(%s: !tile.shared<64x128xbf16, swizzle = 128, runs = 16>, %m: memref<?x128xbf16, strided<[?, 1]>>, %i: index) {
  // expected-error@+1 {{expected a tile that is not in runs, got '!tile.shared<64x128xbf16, swizzle = 128, runs = 16>'}}
  tile.store_async %s, %m[%i, %i] dims [0, 1] : !tile.shared<64x128xbf16, swizzle = 128, runs = 16>, memref<?x128xbf16, strided<[?, 1]>>
  return
}

// -----

func.func @shift_rows_runs(%t: !tile.shared<128x128xbf16, swizzle = 128, runs = 16>, %by: index) {
  // expected-error@+1 {{expected a tile that is not in runs, got '!tile.shared<128x128xbf16, swizzle = 128, runs = 16>'}}
  %a = tile.shift_rows %t by %by : !tile.shared<128x128xbf16, swizzle = 128, runs = 16>
  return
}

// -----

func.func @tensor_map_runs_rank(%m: memref<?x?x128xbf16, strided<[?, ?, 1]>>) {
  // expected-error@+1 {{expected a map of rank 4, got 3}}
  %0 = tile.tensor_map %m dims [1, 2] : memref<?x?x128xbf16, strided<[?, ?, 1]>> -> !tile.tensor_map<3 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>
  return
}

// -----

func.func @tensor_map_runs_columns(%m: memref<?x?x120xbf16, strided<[?, ?, 1]>>) {
  // expected-error@+1 {{expected a memref of a multiple of 64 columns to copy panels of, got 'memref<?x?x120xbf16, strided<[?, ?, 1]>>'}}
  %0 = tile.tensor_map %m dims [1, 2] : memref<?x?x120xbf16, strided<[?, ?, 1]>> -> !tile.tensor_map<4 x !tile.shared<16x128xbf16, swizzle = 128, runs = 16>>
  return
}

// -----

func.func @map_yield(%a: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected the region to yield 'f16'}}
  %f = tile.map ins(%a : !tile.fragment<8x8xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x : f32
  } -> !tile.fragment<8x8xf16>
  return
}

// -----

func.func @yield_parent(%x: f32) {
  scf.execute_region {
    // expected-error@+1 {{expects parent op to be one of 'tile.map, tile.load, tile.load_async, tile.of_rows, tile.of_item, tile.combine_parts'}}
    tile.yield %x : f32
  }
  return
}

// -----

func.func @any_element(%a: !tile.fragment<8xi32>) {
  // expected-error@+1 {{expected a fragment of i1, got '!tile.fragment<8xi32>'}}
  %r = tile.any %a : !tile.fragment<8xi32>
  return
}

// -----

func.func @extremes_element(%a: !tile.fragment<8xi64>) {
  // expected-error@+1 {{expected a fragment of i32, got '!tile.fragment<8xi64>'}}
  %least, %greatest = tile.extremes %a : !tile.fragment<8xi64>
  return
}

// -----

func.func @diagonals_rank(%a: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a fragment of rank 2 of floats, got '!tile.fragment<8xf32>'}}
  %r = tile.sum_diagonals %a : !tile.fragment<8xf32>
  return
}

// -----

func.func @diagonals_element(%a: !tile.fragment<8x8xi32>) {
  // expected-error@+1 {{expected a fragment of rank 2 of floats, got '!tile.fragment<8x8xi32>'}}
  %r = tile.sum_diagonals %a : !tile.fragment<8x8xi32>
  return
}

// -----

func.func @launch_order(%o: memref<?x64xf32, strided<[?, 1], offset: ?>>, %n: index) {
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'persistent' [linear, snaked, shared, dealt]}}
  tile.launch grid(%n) persistent random warps 4 outs(%o : memref<?x64xf32, strided<[?, 1], offset: ?>>) {
  ^bb0(%i: index, %O: memref<?x64xf32, strided<[?, 1], offset: ?>>):
  }
  return
}

// -----

func.func @reduce_rank(%a: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a fragment of rank 2 and a dimension of it, got '!tile.fragment<8xf32>' and 0}}
  %r = tile.reduce max %a, %a dim 0 : !tile.fragment<8xf32> -> !tile.fragment<8xf32>
  return
}

// -----

func.func @reduce_dim(%a: !tile.fragment<8x8xf32>, %z: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a fragment of rank 2 and a dimension of it, got '!tile.fragment<8x8xf32>' and 2}}
  %r = tile.reduce max %a, %z dim 2 : !tile.fragment<8x8xf32> -> !tile.fragment<8xf32>
  return
}

// -----

func.func @reduce_shape(%a: !tile.fragment<8x16xf32>, %z: !tile.fragment<16xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f32', got '!tile.fragment<16xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf32> -> !tile.fragment<16xf32>
  return
}

// -----

func.func @reduce_element(%a: !tile.fragment<8x16xf16>, %z: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f16', got '!tile.fragment<8xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf16> -> !tile.fragment<8xf32>
  return
}

// -----

func.func @reduce_part_rows(%a: !tile.fragment<8x16xf32>, %z: !tile.fragment<4x8xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f32', or of rank 2 that is narrower along dimension 1 by a whole factor, got '!tile.fragment<4x8xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf32> -> !tile.fragment<4x8xf32>
  return
}

// -----

func.func @reduce_part_columns(%a: !tile.fragment<8x16xf32>, %z: !tile.fragment<8x6xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f32', or of rank 2 that is narrower along dimension 1 by a whole factor, got '!tile.fragment<8x6xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf32> -> !tile.fragment<8x6xf32>
  return
}

// -----

func.func @reduce_part_whole(%a: !tile.fragment<8x16xf32>, %z: !tile.fragment<8x16xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f32', or of rank 2 that is narrower along dimension 1 by a whole factor, got '!tile.fragment<8x16xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf32> -> !tile.fragment<8x16xf32>
  return
}

// -----

func.func @reduce_part_element(%a: !tile.fragment<8x16xf16>, %z: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected a result of 8 elements of 'f16', or of rank 2 that is narrower along dimension 1 by a whole factor, got '!tile.fragment<8x8xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x16xf16> -> !tile.fragment<8x8xf32>
  return
}

// -----

// Elements 0 and 4 of a row are in different threads.
#by_row = #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>
#part = #tile.layout<8x4, registers = [8:1d0], threads = [4:1d1, 2:r]>

func.func @reduce_part_layout(%a: !tile.fragment<8x8xf32, #by_row>, %z: !tile.fragment<8x4xf32, #part>) {
  // expected-error@+1 {{expected a result whose threads hold the places of their elements modulo its size, got '!tile.fragment<8x4xf32, #tile.layout<8x4, registers = [8:1d0], threads = [4:1d1, 2:r]>>' of '!tile.fragment<8x8xf32, #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x8xf32, #by_row> -> !tile.fragment<8x4xf32, #part>
  return
}

// -----

func.func @reduce_neighbors_rank(%a: !tile.fragment<8x8xf32>, %z: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a result of rank 2 of neighbors, got '!tile.fragment<8xf32>'}}
  %r = tile.reduce add %a, %z dim 1 neighbors : !tile.fragment<8x8xf32> -> !tile.fragment<8xf32>
  return
}

// -----

#by_column = #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>
#pairs = #tile.layout<8x4, registers = [8:1d0], threads = [4:1d1, 2:r]>
func.func @reduce_neighbors_layout(%a: !tile.fragment<8x8xf32, #by_column>, %z: !tile.fragment<8x4xf32, #pairs>) {
  // expected-error@+1 {{expected a result whose threads hold the places of their elements divided by the factor of the sizes, got '!tile.fragment<8x4xf32, #tile.layout<8x4, registers = [8:1d0], threads = [4:1d1, 2:r]>>' of '!tile.fragment<8x8xf32, #tile.layout<8x8, registers = [8:1d0], threads = [8:1d1]>>'}}
  %r = tile.reduce add %a, %z dim 1 neighbors : !tile.fragment<8x8xf32, #by_column> -> !tile.fragment<8x4xf32, #pairs>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>
#replicated = #tile.layout<8, registers = [8:1d0], threads = [8:r]>

func.func @reduce_layout(%a: !tile.fragment<8x8xf32, #by_row>, %z: !tile.fragment<8xf32, #replicated>) {
  // expected-error@+1 {{expected a result whose threads hold the rows or columns that remain, as in #tile.layout<8, registers = [], threads = [8:1d0]>, got '!tile.fragment<8xf32, #tile.layout<8, registers = [8:1d0], threads = [8:r]>>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x8xf32, #by_row> -> !tile.fragment<8xf32, #replicated>
  return
}

// -----

#by_row = #tile.layout<8x8, registers = [8:1d1], threads = [8:1d0]>

func.func @reduce_layout_lost(%a: !tile.fragment<8x8xf32, #by_row>, %z: !tile.fragment<8xf32>) {
  // expected-error@+1 {{expected a result with a layout if and only if the operand has one, got '!tile.fragment<8xf32>'}}
  %r = tile.reduce add %a, %z dim 1 : !tile.fragment<8x8xf32, #by_row> -> !tile.fragment<8xf32>
  return
}

// -----

// A column lives in all warps.
#rows = #tile.layout<64x8, registers = [8:1d1], threads = [64:1d0]>
#columns = #tile.layout<8, registers = [8:1d0], threads = [64:r]>

func.func @reduce_across_warps(%a: !tile.fragment<64x8xf32, #rows>, %z: !tile.fragment<8xf32, #columns>) {
  // expected-error@+1 {{expected a dimension that lies within warps of 32 threads, got dimension 0 of '!tile.fragment<64x8xf32, #tile.layout<64x8, registers = [8:1d1], threads = [64:1d0]>>'}}
  %r = tile.reduce add %a, %z dim 0 : !tile.fragment<64x8xf32, #rows> -> !tile.fragment<8xf32, #columns>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

func.func @mma_rank(%a: !tile.fragment<64xf16>, %b: !tile.shared<64x8xf16>) {
  // expected-error@+1 {{expected a left operand of rank 2}}
  %s = tile.mma %a, %b : !tile.fragment<64xf16>, !tile.shared<64x8xf16> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_types(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xbf16>) {
  // expected-error@+1 {{expected operands of one type of f16, bf16, f32 or f64, got 'f16' and 'bf16'}}
  %s = tile.mma %a, %b : !tile.shared<64x16xf16>, !tile.shared<16x8xbf16> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_bytes_type(%a: !tile.fragment<16x32xf16>, %b: !tile.shared<16x32xi8>) {
  // expected-error@+1 {{expected bytes of f8E4M3FN, got 'f8E5M2'}}
  %s = tile.mma %a, %b from f8E5M2 transpose_b : !tile.fragment<16x32xf16>, !tile.shared<16x32xi8> -> !tile.fragment<16x16xf32>
  return
}

// -----

func.func @mma_bytes_right(%a: !tile.fragment<16x32xf16>, %b: !tile.shared<16x32xf16>) {
  // expected-error@+1 {{expected a right operand of i8, which is widened to f16 or bf16, got 'f16' and 'f16'}}
  %s = tile.mma %a, %b from f8E4M3FN transpose_b : !tile.fragment<16x32xf16>, !tile.shared<16x32xf16> -> !tile.fragment<16x16xf32>
  return
}

// -----

func.func @mma_bytes_left(%a: !tile.fragment<16x32xf32>, %b: !tile.shared<16x32xi8>) {
  // expected-error@+1 {{expected a right operand of i8, which is widened to f16 or bf16, got 'i8' and 'f32'}}
  %s = tile.mma %a, %b from f8E4M3FN transpose_b : !tile.fragment<16x32xf32>, !tile.shared<16x32xi8> -> !tile.fragment<16x16xf32>
  return
}

// -----

func.func @mma_bytes_kind(%a: !tile.fragment<16x32xf16>, %b: !tile.shared<16x32xi8>) {
  // expected-error@+1 {{by wgmma expected no bytes to widen}}
  %s = tile.mma wgmma %a, %b from f8E4M3FN transpose_b : !tile.fragment<16x32xf16>, !tile.shared<16x32xi8> -> !tile.fragment<16x16xf32>
  return
}

// -----

func.func @mma_async_bytes(%a: !tile.fragment<16x32xf16>, %b: !tile.shared<16x32xi8>) {
  // expected-error@+1 {{expected no bytes to widen}}
  %s = tile.mma_async wgmma %a, %b transpose_b {from = f8E4M3FN} : !tile.fragment<16x32xf16>, !tile.shared<16x32xi8> -> !tile.token<!tile.fragment<16x16xf32>>
  return
}

// -----

#columns = #tile.layout<16x64, registers = [16:1d1], threads = [16:1d0, 2:r, 2:16d1, 2:32d1]>
#parts = #tile.layout<16x2, registers = [], threads = [16:1d0, 4:r, 2:1d1]>
func.func @reduce_neighbors_warps(%a: !tile.fragment<16x64xf32, #columns>, %z: !tile.fragment<16x2xf32, #parts>) {
  // expected-error@+1 {{expected a dimension that lies within warps of 32 threads, got dimension 1 of}}
  %r = tile.reduce add %a, %z dim 1 neighbors : !tile.fragment<16x64xf32, #columns> -> !tile.fragment<16x2xf32, #parts>
  return
}

// -----

func.func @mma_integers(%a: !tile.shared<64x16xi8>, %b: !tile.shared<16x8xi8>) {
  // expected-error@+1 {{expected operands of one type of f16, bf16, f32 or f64, got 'i8' and 'i8'}}
  %s = tile.mma %a, %b : !tile.shared<64x16xi8>, !tile.shared<16x8xi8> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @shift_rows_type(%t: !tile.shared<128x64xf16>, %by: index) {
  // expected-error@+1 {{failed to verify that all of {tile, result} have same type}}
  %a = "tile.shift_rows"(%t, %by) : (!tile.shared<128x64xf16>, index) -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @mma_inner(%a: !tile.shared<64x16xf16>, %b: !tile.shared<32x8xf16>) {
  // expected-error@+1 {{expected both operands to have one inner size, got 16 and 32}}
  %s = tile.mma %a, %b : !tile.shared<64x16xf16>, !tile.shared<32x8xf16> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_inner_transposed(%a: !tile.shared<64x16xf16>, %b: !tile.shared<8x32xf16>) {
  // expected-error@+1 {{expected both operands to have one inner size, got 16 and 32}}
  %s = tile.mma %a, %b transpose_b : !tile.shared<64x16xf16>, !tile.shared<8x32xf16> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_result(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xf16>) {
  // expected-error@+1 {{expected a result of 64x8 elements, got '!tile.fragment<8x64xf32>'}}
  %s = tile.mma %a, %b : !tile.shared<64x16xf16>, !tile.shared<16x8xf16> -> !tile.fragment<8x64xf32>
  return
}

// -----

func.func @mma_result_type(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xf16>) {
  // expected-error@+1 {{expected a result of f32, got 'f16'}}
  %s = tile.mma %a, %b : !tile.shared<64x16xf16>, !tile.shared<16x8xf16> -> !tile.fragment<64x8xf16>
  return
}

// -----

func.func @mma_f64(%a: !tile.shared<64x16xf64>, %b: !tile.shared<16x8xf64>) {
  // expected-error@+1 {{expected a result of f64, got 'f32'}}
  %s = tile.mma %a, %b : !tile.shared<64x16xf64>, !tile.shared<16x8xf64> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_accumulator(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xf16>, %c: !tile.fragment<64x16xf32>) {
  // expected-error@+1 {{expected an accumulator of the result's type '!tile.fragment<64x8xf32>', got '!tile.fragment<64x16xf32>'}}
  %s = tile.mma %a, %b into %c : !tile.shared<64x16xf16>, !tile.shared<16x8xf16>, !tile.fragment<64x16xf32> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_kind(%a: !tile.shared<64x16xf32>, %b: !tile.shared<16x8xf32>) {
  // expected-error@+1 {{by mma_sync expected operands of f16 or bf16, got 'f32'}}
  %s = tile.mma mma_sync %a, %b : !tile.shared<64x16xf32>, !tile.shared<16x8xf32> -> !tile.fragment<64x8xf32>
  return
}

// -----

func.func @mma_async_kind(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xf16>) {
  // expected-error@+1 {{expected wgmma, the only asynchronous product, got mma_sync}}
  %s = tile.mma_async mma_sync %a, %b : !tile.shared<64x16xf16>, !tile.shared<16x8xf16> -> !tile.token<!tile.fragment<64x8xf32>>
  return
}

// -----

func.func @mma_async_result(%a: !tile.shared<64x16xf16>, %b: !tile.shared<16x8xf16>) {
  // expected-error@+1 {{expected a result of 64x8 elements, got '!tile.fragment<64x16xf32>'}}
  %s = tile.mma_async wgmma %a, %b : !tile.shared<64x16xf16>, !tile.shared<16x8xf16> -> !tile.token<!tile.fragment<64x16xf32>>
  return
}

// -----

func.func @wait_mma_pending(%t: !tile.token<!tile.fragment<64x8xf32>>) {
  // expected-error@+1 {{expected 0 to 7 products pending, got 8}}
  %s = tile.wait_mma %t pending 8 : !tile.token<!tile.fragment<64x8xf32>>
  return
}

// -----

func.func @wait_mma_result(%t: !tile.token<!tile.fragment<64x8xf32>>) {
  // expected-error@+1 {{the result is the token's fragment}}
  %s = "tile.wait_mma"(%t) : (!tile.token<!tile.fragment<64x8xf32>>) -> !tile.fragment<64x16xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

func.func @ring_in_role() {
  tile.roles {
    tile.role "load" warps 4 {
      // expected-error@+1 {{must stand before the roles that share it}}
      %r = tile.ring : !tile.ring<2 x !tile.shared<64x64xbf16>>
    }
  }
  return
}

// -----

func.func @ring_groups() {
  // expected-error@+1 {{expected slots of its own for 2 groups, got '!tile.ring<3 x !tile.shared<64x64xbf16>>'}}
  %q = tile.ring groups 2 : !tile.ring<3 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @ring_groups_share() {
  %q = tile.ring : !tile.ring<2 x !tile.shared<64x64xbf16>>
  // expected-error@+1 {{expected slots of its own for 2 groups, got '!tile.ring<2 x !tile.shared<64x64xbf16>>' that shares others}}
  %o = tile.ring shares %q groups 2 : !tile.ring<2 x !tile.shared<64x64xbf16>>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

// A tile of 64 rows is that of a group where there are as many groups.
func.func @mma_rows_of_group(%a: !tile.shared<64x64xbf16>) {
  tile.roles {
    tile.role "compute" warps 12 {
      // expected-error@+1 {{expected a result of 64x64 elements, got '!tile.fragment<128x64xf32>'}}
      %s = tile.mma wgmma %a, %a : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
    }
  }
  return
}

// -----

func.func @mma_rows_of_group_kind(%a: !tile.shared<64x64xbf16>) {
  tile.roles {
    tile.role "compute" warps 8 {
      // expected-error@+1 {{expected a result of 64x64 elements, got '!tile.fragment<128x64xf32>'}}
      %s = tile.mma mma_sync %a, %a : !tile.shared<64x64xbf16>, !tile.shared<64x64xbf16> -> !tile.fragment<128x64xf32>
    }
  }
  return
}

// -----

func.func @write_rows_of_group(%x: !tile.fragment<192x64xbf16>, %s: !tile.shared<64x64xbf16>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %i: index) {
  tile.roles {
    tile.role "compute" warps 8 {
      // expected-error@+1 {{expected a tile of the fragment's shape and elements, '!tile.fragment<192x64xbf16>', got '!tile.shared<64x64xbf16>'}}
      tile.write %x into %s signals %r[%i] : !tile.fragment<192x64xbf16>, !tile.ring<2 x !tile.shared<64x64xbf16>>
    }
  }
  return
}

// -----

func.func @acquire_result(%r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %i: index) {
  // expected-error@+1 {{the result is the ring's tile}}
  %s = "tile.acquire"(%r, %i) : (!tile.ring<2 x !tile.shared<64x64xbf16>>, index) -> !tile.shared<64x32xbf16>
  return
}

// -----

func.func @wait_result(%r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %i: index) {
  // expected-error@+1 {{the result is the ring's tile}}
  %s = "tile.wait"(%r, %i) : (!tile.ring<2 x !tile.shared<64x64xbf16>>, index) -> !tile.shared<64x32xbf16>
  return
}

// -----

func.func @load_async_rows(%m: memref<?x?xbf16>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected the first of the rows and their end, got 3 bounds}}
  tile.load_async %m[%i, %i] dims [0, 1] rows(%i, %i, %i) into %s signals %r[%i] : memref<?x?xbf16>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @load_async_slot(%m: memref<?x?xbf16>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x32xbf16>, %i: index) {
  // expected-error@+1 {{the slot is of the ring's type}}
  "tile.load_async"(%m, %i, %i, %s, %r, %i) ({}) {dims = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 2, 1, 1, 1, 0>} : (memref<?x?xbf16>, index, index, !tile.shared<64x32xbf16>, !tile.ring<2 x !tile.shared<64x64xbf16>>, index) -> ()
  return
}

// -----

func.func @load_async_element(%m: memref<?x?xf16>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'f16', got 'bf16'}}
  tile.load_async %m[%i, %i] dims [0, 1] into %s signals %r[%i] : memref<?x?xf16>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @load_async_indices(%m: memref<?x?xbf16>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected 2 indices, got 1}}
  tile.load_async %m[%i] dims [0, 1] into %s signals %r[%i] : memref<?x?xbf16>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @load_async_map(%m: !tile.tensor_map<4 x !tile.shared<64x32xbf16>>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a tensor map of tiles '!tile.shared<64x64xbf16>', got '!tile.shared<64x32xbf16>'}}
  tile.load_async %m[%i, %i, %i, %i] dims [2, 3] into %s signals %r[%i] : !tile.tensor_map<4 x !tile.shared<64x32xbf16>>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @load_async_map_rank(%m: !tile.tensor_map<4 x !tile.shared<64x64xbf16>>, %r: !tile.ring<2 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected 4 indices, got 2}}
  tile.load_async %m[%i, %i] dims [0, 1] into %s signals %r[%i] : !tile.tensor_map<4 x !tile.shared<64x64xbf16>>, !tile.ring<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Host side
//===----------------------------------------------------------------------===//

func.func @tensor_map_element(%m: memref<?x?xf16>) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'f16', got 'bf16'}}
  %t = tile.tensor_map %m dims [0, 1] : memref<?x?xf16> -> !tile.tensor_map<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @tensor_map_rank(%m: memref<?x?x?xbf16>) {
  // expected-error@+1 {{expected a map of rank 3, got 2}}
  %t = tile.tensor_map %m dims [1, 2] : memref<?x?x?xbf16> -> !tile.tensor_map<2 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @tensor_map_clipped_rank(%m: memref<?x?x?xbf16>) {
  // expected-error@+1 {{expected a map of rank 4, got 3}}
  %t = tile.tensor_map clipped %m dims [1, 2] : memref<?x?x?xbf16> -> !tile.tensor_map<3 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @store_async_valid(%t: !tile.shared<64x64xbf16>, %m: memref<?x?x?x?x?xbf16>, %i: index) {
  // expected-error@+1 {{expected at most 4 dimensions where some rows are not written, got 5}}
  tile.store_async %t, %m[%i, %i, %i, %i, %i] dims [3, 4] valid(%i) : !tile.shared<64x64xbf16>, memref<?x?x?x?x?xbf16>
  return
}

// -----

func.func @claim_memref(%m: memref<?xi64>) {
  // expected-error@+1 {{expected a memref of one i32, got 'memref<?xi64>'}}
  %n = tile.claim %m : memref<?xi64>
  return
}

// -----

func.func @publish_slot(%n: i32, %u: index, %s: !tile.shared<1x4xf32>, %r: !tile.ring<1 x !tile.shared<1x4xf32>>) {
  // expected-error@+1 {{expected a slot of a row of i32, got '!tile.shared<1x4xf32>'}}
  tile.publish %n into %s signals %r[%u] : !tile.ring<1 x !tile.shared<1x4xf32>>, i32
  return
}

// -----

func.func @publish_room(%n: i32, %w: i64, %u: index, %s: !tile.shared<1x4xi32>, %r: !tile.ring<1 x !tile.shared<1x4xi32>>) {
  // expected-error@+1 {{expected a slot of 20 bytes for the numbers, got 16}}
  tile.publish %n, %w, %n into %s signals %r[%u] : !tile.ring<1 x !tile.shared<1x4xi32>>, i32, i64, i32
  return
}

// -----

func.func @publish_role(%n: i32, %u: index, %s: !tile.shared<1x4xi32>, %r: !tile.ring<1 x !tile.shared<1x4xi32>>, %o: memref<?xf32, strided<[1], offset: ?>>) {
  tile.launch grid(%u) warps 4 outs(%o : memref<?xf32, strided<[1], offset: ?>>) {
  ^bb0(%b: index, %O: memref<?xf32, strided<[1], offset: ?>>):
    tile.roles {
      tile.role "deal" warps 1 {
        // expected-error@+1 {{expected a role of one thread}}
        tile.publish %n into %s signals %r[%u] : !tile.ring<1 x !tile.shared<1x4xi32>>, i32
      }
    }
  }
  return
}

// -----

func.func @read_numbers_tile(%s: !tile.shared<2x4xi32>) {
  // expected-error@+1 {{expected a slot of a row of i32, got '!tile.shared<2x4xi32>'}}
  %n = tile.read_numbers %s : !tile.shared<2x4xi32> -> i32
  return
}

// -----

func.func @read_numbers_none(%s: !tile.shared<1x4xi32>) {
  // expected-error@+1 {{'tile.read_numbers' op expected at least one number}}
  "tile.read_numbers"(%s) : (!tile.shared<1x4xi32>) -> ()
  return
}

// -----

func.func @of_item_arguments(%n: index) {
  // expected-error@+1 {{expected a region of one index, a program's number}}
  %x = tile.of_item %n {
  ^bb0(%a: i32):
    tile.yield %a : i32
  } : i32
  return
}

// -----

func.func @of_item_yield(%n: index) {
  // expected-error@+1 {{expected a region that yields ('index', 'i32')}}
  %x:2 = tile.of_item %n {
  ^bb0(%a: index):
    tile.yield %a : index
  } : index, i32
  return
}

// -----

func.func @tensor_map_dims(%m: memref<?x?x?xbf16>) {
  // expected-error@+1 {{expected different dimensions of a memref of rank 3, got 3}}
  %t = tile.tensor_map %m dims [3, 2] : memref<?x?x?xbf16> -> !tile.tensor_map<3 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @tensor_map_columns(%m: memref<?x?x?xbf16>) {
  // expected-error@+1 {{expected the tile's columns along the memref's last dimension, got 1}}
  %t = tile.tensor_map %m dims [0, 1] : memref<?x?x?xbf16> -> !tile.tensor_map<3 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @to_shared_shape(%x: !tile.fragment<128x32xf32>) {
  // expected-error@+1 {{expected a tile of the fragment's shape and elements, '!tile.fragment<128x32xf32>', got '!tile.shared<128x64xf32>'}}
  %a = tile.to_shared %x : !tile.fragment<128x32xf32> -> !tile.shared<128x64xf32>
  return
}

// -----

func.func @to_shared_transposed(%x: !tile.fragment<128x32xf32>) {
  // expected-error@+1 {{expected a tile of the fragment's transposed shape and elements, '!tile.fragment<128x32xf32>', got '!tile.shared<128x32xf32>'}}
  %a = tile.to_shared %x transposed : !tile.fragment<128x32xf32> -> !tile.shared<128x32xf32>
  return
}

// -----

func.func @add_integers(%x: !tile.fragment<128x32xi32>, %o: memref<?x?xi32>, %i: index) {
  // expected-error@+1 {{expected elements of f16, bf16, f32 or f64 to add, got 'i32'}}
  tile.store add %x, %o[%i, %i] dims [0, 1] : !tile.fragment<128x32xi32>, memref<?x?xi32>
  return
}

// -----

func.func @turns_type(%t: memref<?xi64>, %i: index) {
  // expected-error@+1 {{expected a memref of i32 of rank 1 or more, got 'memref<?xi64>'}}
  tile.take_turn %t[%i] at %i : memref<?xi64>
  return
}

// -----

func.func @turns_indices(%t: memref<?x?xi32>, %i: index) {
  // expected-error@+1 {{expected 2 indices, got 1}}
  tile.pass_turn %t[%i] to %i : memref<?x?xi32>
  return
}

// -----

func.func @turns_lanes(%t: memref<2x?x?xi32>, %i: index) {
  // expected-error@+1 {{expected the dimension before the last to be of 2 lanes, got 'memref<2x?x?xi32>'}}
  tile.take_turn %t[%i, %i, %i] at %i lanes 2 : memref<2x?x?xi32>
  return
}

// -----

func.func @turns_no_lanes(%t: memref<?xi32>, %i: index) {
  // expected-error@+1 {{expected the dimension before the last to be of 2 lanes, got 'memref<?xi32>'}}
  tile.pass_turn %t[%i] to %i lanes 2 : memref<?xi32>
  return
}

// -----

func.func @write_shape(%x: !tile.fragment<128x32xf32>, %s: !tile.shared<32x128xf32>, %r: !tile.ring<1 x !tile.shared<32x128xf32>>, %i: index) {
  // expected-error@+1 {{expected a tile of the fragment's shape and elements, '!tile.fragment<128x32xf32>', got '!tile.shared<32x128xf32>'}}
  tile.write %x into %s signals %r[%i] : !tile.fragment<128x32xf32>, !tile.ring<1 x !tile.shared<32x128xf32>>
  return
}

// -----

func.func @write_column(%x: !tile.fragment<128x64xf32>, %s: !tile.shared<128x32xf32>, %r: !tile.ring<1 x !tile.shared<128x32xf32>>, %i: index) {
  // expected-error@+1 {{expected a first column that is a multiple of the slot's 32 and leaves as many of the fragment's 64, got 16}}
  tile.write %x column 16 into %s signals %r[%i] : !tile.fragment<128x64xf32>, !tile.ring<1 x !tile.shared<128x32xf32>>
  return
}

// -----

func.func @write_column_beyond(%x: !tile.fragment<128x64xf32>, %s: !tile.shared<128x32xf32>, %r: !tile.ring<1 x !tile.shared<128x32xf32>>, %i: index) {
  // expected-error@+1 {{expected a first column that is a multiple of the slot's 32 and leaves as many of the fragment's 64, got 64}}
  tile.write %x column 64 into %s signals %r[%i] : !tile.fragment<128x64xf32>, !tile.ring<1 x !tile.shared<128x32xf32>>
  return
}

// -----

func.func @write_column_rows(%x: !tile.fragment<128x64xf32>, %s: !tile.shared<64x32xf32>, %r: !tile.ring<1 x !tile.shared<64x32xf32>>, %i: index) {
  // expected-error@+1 {{expected a tile of the fragment's rows and elements, '!tile.fragment<128x64xf32>', got '!tile.shared<64x32xf32>'}}
  tile.write %x column 0 into %s signals %r[%i] : !tile.fragment<128x64xf32>, !tile.ring<1 x !tile.shared<64x32xf32>>
  return
}

// -----

func.func @shares_stages(%q: !tile.ring<2 x !tile.shared<128x64xf32>>) {
  // expected-error@+1 {{expected as many slots as the shared ring has, 2, got 1}}
  %o = tile.ring shares %q : !tile.ring<1 x !tile.shared<128x64xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
  return
}

// -----

func.func @shares_bytes(%q: !tile.ring<2 x !tile.shared<128x64xf32>>) {
  // expected-error@+1 {{expected slots of at most the shared ring's 32768 bytes, got 65536}}
  %o = tile.ring shares %q : !tile.ring<2 x !tile.shared<256x64xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
  return
}

// -----

func.func @shares_shared(%q: !tile.ring<2 x !tile.shared<128x64xf32>>) {
  %o = tile.ring shares %q : !tile.ring<2 x !tile.shared<128x64xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
  // expected-error@+1 {{must not share the slots of a ring that shares others}}
  %p = tile.ring shares %o : !tile.ring<2 x !tile.shared<128x64xf32>>, !tile.ring<2 x !tile.shared<128x64xf32>>
  return
}

// -----

func.func @to_shared_slots(%x: !tile.fragment<128x32xf32>, %i: index) {
  // expected-error@+1 {{expected at least 2 slots, got 1}}
  %a = tile.to_shared %x slot %i of 1 : !tile.fragment<128x32xf32> -> !tile.shared<128x32xf32>
  return
}

// -----

func.func @to_shared_slots_of_ring(%x: !tile.fragment<128x32xf32>, %i: index, %r: !tile.ring<1 x !tile.shared<128x32xf32>>) {
  // expected-error@+1 {{must not reuse a ring and have slots of its own}}
  %a = tile.to_shared %x reuses %r slot %i of 2 : !tile.fragment<128x32xf32>, !tile.ring<1 x !tile.shared<128x32xf32>> -> !tile.shared<128x32xf32>
  return
}

// -----

func.func @from_shared_shape(%t: !tile.shared<2x64xf32>) {
  // expected-error@+1 {{expected a fragment of the tile's shape and elements, or of its only row, '!tile.shared<2x64xf32>', got '!tile.fragment<64xf32>'}}
  %a = tile.from_shared %t : !tile.shared<2x64xf32> -> !tile.fragment<64xf32>
  return
}

// -----

func.func @from_shared_transposed(%t: !tile.shared<32x64xf32>) {
  // expected-error@+1 {{expected a matrix of the elements of the tile, its rows the tile's columns, '!tile.shared<32x64xf32>', got '!tile.fragment<32x64xf32>'}}
  %a = tile.from_shared %t transposed : !tile.shared<32x64xf32> -> !tile.fragment<32x64xf32>
  return
}

// -----

func.func @from_shared_transposed_elements(%t: !tile.shared<32x64xbf16>) {
  // expected-error@+1 {{expected a matrix of the elements of the tile}}
  %a = tile.from_shared %t transposed : !tile.shared<32x64xbf16> -> !tile.fragment<64x32xf32>
  return
}

// -----

func.func @from_shared_transposed_row(%t: !tile.shared<1x64xf32>) {
  // expected-error@+1 {{expected a matrix of the elements of the tile}}
  %a = tile.from_shared %t transposed : !tile.shared<1x64xf32> -> !tile.fragment<64xf32>
  return
}

// -----

func.func @from_shared_transposed_line(%t: !tile.shared<1x192xf32>, %first: index) {
  // expected-error@+1 {{expected 'transposed' or steps, not both}}
  %a = tile.from_shared %t transposed [%first] by [1, -1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
  return
}

// -----

func.func @from_shared_line_rows(%t: !tile.shared<2x64xf32>, %first: index) {
  // expected-error@+1 {{expected a matrix of the elements of a tile of one row by two steps, got '!tile.fragment<8x8xf32>' of '!tile.shared<2x64xf32>' by 2}}
  %a = tile.from_shared %t[%first] by [1, 1] : !tile.shared<2x64xf32> -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @from_shared_line_steps(%t: !tile.shared<1x64xf32>, %first: index) {
  // expected-error@+1 {{expected a matrix of the elements of a tile of one row by two steps, got '!tile.fragment<8x8xf32>' of '!tile.shared<1x64xf32>' by 1}}
  %a = tile.from_shared %t[%first] by [1] : !tile.shared<1x64xf32> -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @from_shared_line_elements(%t: !tile.shared<1x64xbf16>, %first: index) {
  // expected-error@+1 {{expected a matrix of the elements of a tile of one row}}
  %a = tile.from_shared %t[%first] by [1, 1] : !tile.shared<1x64xbf16> -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @from_shared_line_short(%t: !tile.shared<1x190xf32>, %first: index) {
  // expected-error@+1 {{expected a tile of at least 191 columns, got '!tile.shared<1x190xf32>'}}
  %a = tile.from_shared %t[%first] by [1, -1] : !tile.shared<1x190xf32> -> !tile.fragment<128x64xf32>
  return
}

// -----

func.func @from_shared_line_first(%t: !tile.shared<1x192xf32>, %first: index) {
  // expected-error@+1 {{expected a first column and steps, or neither}}
  %a = "tile.from_shared"(%t, %first) : (!tile.shared<1x192xf32>, index) -> !tile.fragment<128x64xf32>
  return
}

// -----

func.func @mma_inner(%a: !tile.shared<64x64xf16>, %b: !tile.shared<64x64xf16>) {
  // expected-error@+1 {{expected a range of inner indices of 64, in multiples of 16, got 16, 72}}
  %c = tile.mma %a, %b inner [16, 72] : !tile.shared<64x64xf16>, !tile.shared<64x64xf16> -> !tile.fragment<64x64xf32>
  return
}

// -----

func.func @to_shared_ring(%x: !tile.fragment<128x32xf32>, %r: !tile.ring<1 x !tile.shared<64x32xf32>>) {
  // expected-error@+1 {{expected a tile of at most the ring's 8192 bytes, got 16384}}
  %a = tile.to_shared %x reuses %r : !tile.fragment<128x32xf32>, !tile.ring<1 x !tile.shared<64x32xf32>> -> !tile.shared<128x32xf32>
  return
}

// -----

func.func @store_indices(%t: !tile.shared<64x32xf32>, %o: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected 2 indices, got 1}}
  tile.store_async %t, %o[%i] dims [0, 1] : !tile.shared<64x32xf32>, memref<?x?xf32>
  return
}

// -----

func.func @store_elements(%t: !tile.shared<64x32xf32>, %o: memref<?x?xf16>, %i: index) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'f16', got 'f32'}}
  tile.store_async %t, %o[%i, %i] dims [0, 1] : !tile.shared<64x32xf32>, memref<?x?xf16>
  return
}

// -----

func.func @store_map(%t: !tile.shared<64x32xf32>, %o: !tile.tensor_map<2 x !tile.shared<32x32xf32>>, %i: index) {
  // expected-error@+1 {{expected a tensor map of tiles '!tile.shared<64x32xf32>', got '!tile.shared<32x32xf32>'}}
  tile.store_async %t, %o[%i, %i] dims [0, 1] : !tile.shared<64x32xf32>, !tile.tensor_map<2 x !tile.shared<32x32xf32>>
  return
}

// -----

func.func @add_f64(%t: !tile.shared<64x32xf64>, %o: memref<?x?xf64>, %i: index) {
  // expected-error@+1 {{expected elements of f16, bf16 or f32 to add, got 'f64'}}
  tile.store_async add %t, %o[%i, %i] dims [0, 1] : !tile.shared<64x32xf64>, memref<?x?xf64>
  return
}

// -----

func.func @wait_stores() {
  // expected-error@+1 {{attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  tile.wait_stores pending -1
  return
}

// -----

func.func @prefetch_few_indices(%m: memref<?x?xi32>) {
  // expected-error@+1 {{expected an index for each dimension but the last of 'memref<?x?xi32>', got 0}}
  tile.prefetch %m[] : memref<?x?xi32>
  return
}

// -----

func.func @prefetch_many_indices(%m: memref<?x?xi32>, %i: index) {
  // expected-error@+1 {{expected an index for each dimension but the last of 'memref<?x?xi32>', got 2}}
  tile.prefetch %m[%i, %i] : memref<?x?xi32>
  return
}

// -----

func.func @prefetch_no_dimension(%m: memref<i32>) {
  // expected-error@+1 {{expected an index for each dimension but the last of 'memref<i32>', got 0}}
  tile.prefetch %m[] : memref<i32>
  return
}

// -----

func.func @load_runs_indices(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected indices or a region, got both}}
  %0 = tile.load %m[%i, %i, %i] dims [1, 2] runs 16 {
  ^bb0(%r: index):
    tile.yield %r, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_runs_divide(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected runs that divide the tile's 64 rows, got 24}}
  %0 = tile.load %m dims [1, 2] runs 24 {
  ^bb0(%r: index):
    tile.yield %r, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_runs_fragment(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a tile in shared memory whose rows a region places, got '!tile.fragment<64x64xbf16>'}}
  %0 = tile.load %m dims [1, 2] runs 16 {
  ^bb0(%r: index):
    tile.yield %r, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.fragment<64x64xbf16>
  return
}

// -----

func.func @load_runs_columns(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected the tile's columns along the last dimension, 2}}
  %0 = tile.load %m dims [2, 1] runs 16 {
  ^bb0(%r: index):
    tile.yield %r, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_runs_rank(%m: memref<?x?x64xbf16>, %i: index) {
  %0 = tile.load %m dims [1, 2] runs 16 {
  ^bb0(%r: index):
    // expected-error@+1 {{expected 2 indices, one for each dimension but the last, got 'index'}}
    tile.yield %i : index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_runs_yield(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a region that ends with tile.yield}}
  %0 = tile.load %m dims [1, 2] runs 16 {
  ^bb0(%r: index):
    %x = arith.addi %r, %r : index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_runs_element(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a tile of the memref's elements, 'bf16', got 'f16'}}
  %0 = tile.load %m dims [1, 2] runs 16 {
  ^bb0(%r: index):
    tile.yield %r, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xf16>
  return
}

// -----

func.func @load_runs_argument(%m: memref<?x?x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a region with a row, an index, as its argument}}
  %0 = tile.load %m dims [1, 2] runs 16 {
    tile.yield %i, %i : index, index
  } : memref<?x?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_whole_runs(%m: memref<?x64xbf16>, %i: index) {
  // expected-error@+1 {{has 'whole_runs', so it needs 'runs'}}
  %0 = tile.load %m[%i, %i] dims [0, 1] rows(%i, %i) whole_runs : memref<?x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_region(%m: memref<?x64xbf16>, %i: index) {
  // expected-error@+1 {{has a region, so it needs 'runs'}}
  %0 = "tile.load"(%m, %i, %i) ({
  ^bb0(%r: index):
    tile.yield %i : index
  }) {dims = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 2, 0>} : (memref<?x64xbf16>, index, index) -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @load_async_runs(%m: !tile.tensor_map<2 x !tile.shared<64x64xbf16, swizzle = 128>>, %g: !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>, %s: !tile.shared<64x64xbf16, swizzle = 128>, %i: index) {
  // expected-error@+1 {{by a tensor map expected runs of a multiple of 8 rows, got 4}}
  tile.load_async %m dims [0, 1] runs 4 {
  ^bb0(%r: index):
    tile.yield %r : index
  } into %s signals %g[%i] : !tile.tensor_map<2 x !tile.shared<64x64xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  return
}

// -----

func.func @load_async_runs_map(%m: !tile.tensor_map<2 x !tile.shared<64x64xbf16, swizzle = 128>>, %g: !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>, %s: !tile.shared<64x64xbf16, swizzle = 128>, %i: index) {
  // expected-error@+1 {{expected a tensor map of tiles '!tile.shared<16x64xbf16, swizzle = 128>', got '!tile.shared<64x64xbf16, swizzle = 128>'}}
  tile.load_async %m dims [0, 1] runs 16 {
  ^bb0(%r: index):
    tile.yield %r : index
  } into %s signals %g[%i] : !tile.tensor_map<2 x !tile.shared<64x64xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  return
}

// -----

func.func @map_yield(%a: !tile.fragment<8x8xf32>) {
  // expected-error@+1 {{expected the region to yield 'f32'}}
  %0 = tile.map ins(%a : !tile.fragment<8x8xf32>) {
  ^bb0(%x: f32, %i: index, %j: index):
    tile.yield %x, %x : f32, f32
  } -> !tile.fragment<8x8xf32>
  return
}

// -----

func.func @widen_type(%s: !tile.shared<64x32xi8>) {
  // expected-error@+1 {{expected bytes of f8E4M3FN, got 'f8E5M2'}}
  %r = tile.widen %s from f8E5M2 warps 4 : !tile.shared<64x32xi8> -> !tile.shared<64x32xf16>
  return
}

// -----

func.func @widen_bytes(%s: !tile.shared<64x32xf16>) {
  // expected-error@+1 {{expected a tile of i8 with columns in multiples of 8, got '!tile.shared<64x32xf16>'}}
  %r = tile.widen %s from f8E4M3FN warps 4 : !tile.shared<64x32xf16> -> !tile.shared<64x32xf16>
  return
}

// -----

func.func @widen_columns(%s: !tile.shared<64x20xi8>) {
  // expected-error@+1 {{expected a tile of i8 with columns in multiples of 8, got '!tile.shared<64x20xi8>'}}
  %r = tile.widen %s from f8E4M3FN warps 4 : !tile.shared<64x20xi8> -> !tile.shared<64x20xf16>
  return
}

// -----

func.func @widen_shape(%s: !tile.shared<64x32xi8>) {
  // expected-error@+1 {{expected a tile of the shape of '!tile.shared<64x32xi8>' with elements of f16 or bf16, got '!tile.shared<32x64xf16>'}}
  %r = tile.widen %s from f8E4M3FN warps 4 : !tile.shared<64x32xi8> -> !tile.shared<32x64xf16>
  return
}

// -----

func.func @widen_elements(%s: !tile.shared<64x32xi8>) {
  // expected-error@+1 {{expected a tile of the shape of '!tile.shared<64x32xi8>' with elements of f16 or bf16, got '!tile.shared<64x32xf32>'}}
  %r = tile.widen %s from f8E4M3FN warps 4 : !tile.shared<64x32xi8> -> !tile.shared<64x32xf32>
  return
}

// -----

func.func @widen_warps(%s: !tile.shared<64x32xi8>) {
  // expected-error@+1 {{expected warps in groups of 4, got 2}}
  %r = tile.widen %s from f8E4M3FN warps 2 : !tile.shared<64x32xi8> -> !tile.shared<64x32xf16>
  return
}

// -----

func.func @widen_into_shape(%s: !tile.shared<64x32xi8>, %o: !tile.shared<32x64xf16>, %r: !tile.ring<2 x !tile.shared<32x64xf16>>, %i: index) {
  // expected-error@+1 {{expected a tile of the shape of '!tile.shared<64x32xi8>' with elements of f16 or bf16, got '!tile.shared<32x64xf16>'}}
  tile.widen_into %s from f8E4M3FN warps 4 into %o signals %r[%i] : !tile.shared<64x32xi8>, !tile.ring<2 x !tile.shared<32x64xf16>>
  return
}

// -----

func.func @product_rows(%a: !tile.shared<64x32xf16>, %b: !tile.shared<16x32xf16>) {
  // expected-error@+1 {{expected rows of the result's 64, and no accumulator, beside rows 65}}
  %x = tile.mma %a, %b transpose_b rows 65 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16> -> !tile.fragment<64x16xf32>
  return
}

// -----

func.func @product_rows_of_sum(%a: !tile.shared<64x32xf16>, %b: !tile.shared<16x32xf16>, %acc: !tile.fragment<64x16xf32>) {
  // expected-error@+1 {{expected rows of the result's 64, and no accumulator, beside rows 4}}
  %x = tile.mma %a, %b into %acc transpose_b rows 4 : !tile.shared<64x32xf16>, !tile.shared<16x32xf16>, !tile.fragment<64x16xf32> -> !tile.fragment<64x16xf32>
  return
}

// -----

func.func @signal_type(%f: memref<?x4xi64>, %i: index) {
  // expected-error@+1 {{expected a memref of i32 of rank 1 or more, got 'memref<?x4xi64>'}}
  tile.signal %f[%i] : memref<?x4xi64>
  return
}

// -----

func.func @await_indices(%f: memref<?x4xi32>, %i: index) {
  // expected-error@+1 {{expected 1 indices, got 2}}
  tile.await %f[%i, %i] : memref<?x4xi32>
  return
}

// -----

func.func @signal_warps(%f: memref<?x4xi32>, %n: index) {
  tile.launch grid(%n) warps 8 outs(%f : memref<?x4xi32>) {
  ^bb0(%b: index, %F: memref<?x4xi32, strided<[?, 1], offset: ?>>):
    // expected-error@+1 {{expected a last dimension of 8, the warps that compute, got 'memref<?x4xi32}}
    tile.signal %F[%b] : memref<?x4xi32, strided<[?, 1], offset: ?>>
  }
  return
}

// -----

func.func @parts_arguments(%x: !tile.fragment<64xf32>) {
  // expected-error@+1 {{expected a region of the values of two parts, first those of the earlier one}}
  %0 = tile.combine_parts %x : !tile.fragment<64xf32> {
  ^bb0(%a: !tile.fragment<64xf32>):
    tile.yield %a : !tile.fragment<64xf32>
  }
  return
}

// -----

func.func @parts_yield(%x: !tile.fragment<64xf32>, %y: !tile.fragment<32xf32>) {
  // expected-error@+1 {{expected a region that yields values of the types of its operands}}
  %0 = tile.combine_parts %x : !tile.fragment<64xf32> {
  ^bb0(%a: !tile.fragment<64xf32>, %b: !tile.fragment<64xf32>):
    tile.yield %y : !tile.fragment<32xf32>
  }
  return
}

// -----

func.func @aligned_tile(%x: memref<?x64xf32>, %i: index) {
  // expected-error@+1 {{expected a fragment whose rows are aligned, got '!tile.shared<64x64xf32>'}}
  %0 = tile.load %x[%i, %i] dims [0, 1] aligned : memref<?x64xf32> -> !tile.shared<64x64xf32>
  return
}

// -----

func.func @rank_without_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{expected to stand in a launch of clusters}}
    %rank = tile.cluster_rank
  }
  return
}

// -----

func.func @ring_of_other_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 4 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{is filled by 2 blocks, in a launch whose clusters have 4}}
    %ring = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @groups_of_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{is filled by a cluster; expected no shared slots, and none of groups}}
    %ring = tile.ring groups 2 cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @shared_slots_of_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    %base = tile.ring : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    // expected-error@+1 {{is filled by a cluster; expected no shared slots, and none of groups}}
    %ring = tile.ring shares %base cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @panels_of_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{expected a number of panels that 2 blocks divide, got 1}}
    %ring = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x64xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @rows_of_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{is filled by a cluster; expected copies of whole tiles}}
    %ring = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    // expected-note@+1 {{used here}}
    tile.load_async %X[%c0, %c0] dims [0, 1] rows(%c0, %r) into %slot signals %ring[%c0] : memref<?x128xbf16, strided<[?, 1], offset: ?>>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @written_in_cluster(%x: memref<?x128xbf16>, %p: memref<?xf32>, %n: index) {
  tile.launch grid(%n) cluster 2 warps 4 ins(%x : memref<?x128xbf16>) outs(%p : memref<?xf32>) {
  ^bb0(%r: index, %X: memref<?x128xbf16, strided<[?, 1], offset: ?>>, %P: memref<?xf32, strided<[1], offset: ?>>):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{is filled by a cluster; expected copies of whole tiles}}
    %ring = tile.ring cluster 2 : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    %zero = arith.constant 0.0 : bf16
    %f = tile.fill %zero : !tile.fragment<64x128xbf16>
    %slot = tile.acquire %ring[%c0] : !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
    // expected-note@+1 {{used here}}
    tile.write %f into %slot signals %ring[%c0] : !tile.fragment<64x128xbf16>, !tile.ring<2 x !tile.shared<64x128xbf16, swizzle = 128>>
  }
  return
}

// -----

func.func @inner_power(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected 'inner' to be a power of two up to 64 that divides the tile's 48 rows, got 3}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 3 : memref<8x64x64xbf16> -> !tile.shared<48x64xbf16>
  return
}

// -----

func.func @inner_rest(%m: memref<8x64x64xbf16>, %f: !tile.fragment<36x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.store' op expected 'inner' to be a power of two up to 64 that divides the tile's 36 rows, got 8}}
  tile.store %f, %m[%i, %i, %i] dims [1, 0, 2] inner 8 : !tile.fragment<36x64xbf16>, memref<8x64x64xbf16>
  return
}

// -----

func.func @inner_of_groups(%m: memref<128x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected 'inner' to be a power of two up to 64 that divides the tile's 128 rows, got 128}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 128 : memref<128x64x64xbf16> -> !tile.shared<128x64xbf16>
  return
}

// -----

func.func @inner_positive(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{attribute 'inner' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 0 : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @inner_dimension(%t: !tile.shared<64x64xbf16>, %m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.store_async' op expected a dimension of the memref for each of the tile's 2, and one for 'inner', got 2}}
  tile.store_async %t, %m[%i, %i, %i] dims [1, 2] inner 4 : !tile.shared<64x64xbf16>, memref<8x64x64xbf16>
  return
}

// -----

func.func @used_rows(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected 'used' to be less than 'inner', 4, got 5}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 4 used 5 : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @used_all(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected 'used' to be less than 'inner', 4, got 4}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 4 used 4 : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @used_without_inner(%t: !tile.shared<64x64xbf16>, %m: memref<64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.store_async' op expected 'used' to be less than 'inner', 0, got 3}}
  tile.store_async %t, %m[%i, %i] dims [0, 1] used 3 : !tile.shared<64x64xbf16>, memref<64x64xbf16>
  return
}

// -----

func.func @used_clipped(%m: memref<8x64x64xbf16>) {
  // expected-error@+1 {{'tile.tensor_map' op has 'used', so it cannot be 'clipped': its rows are those of one place}}
  %map = tile.tensor_map clipped %m dims [1, 0, 2] inner 4 used 3 : memref<8x64x64xbf16> -> !tile.tensor_map<4 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @inner_map_dimension(%m: memref<8x64x64xbf16>) {
  // expected-error@+1 {{'tile.tensor_map' op expected a dimension of the memref for each of the tile's 2, and one for 'inner', got 2}}
  %map = tile.tensor_map %m dims [1, 2] inner 4 : memref<8x64x64xbf16> -> !tile.tensor_map<3 x !tile.shared<64x64xbf16>>
  return
}

// -----

// A dimension more is one too many without the attribute.
func.func @no_inner(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected a dimension of the memref for each of the tile's 2, got 3}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @inner_and_rows(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op has 'inner', so it can have neither 'rows' nor 'runs'}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 4 rows(%i, %i) : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @inner_and_runs(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op has 'inner', so it can have neither 'rows' nor 'runs'}}
  %t = tile.load %m dims [1, 0, 2] inner 4 runs 16 {
  ^bb0(%row: index):
    tile.yield %i, %row : index, index
  } : memref<8x64x64xbf16> -> !tile.shared<64x64xbf16>
  return
}

// -----

func.func @inner_and_rows_async(%m: memref<8x64x64xbf16>, %g: !tile.ring<1 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load_async' op has 'inner', so it can have neither 'rows' nor 'runs'}}
  tile.load_async %m[%i, %i, %i] dims [1, 0, 2] inner 4 rows(%i, %i) into %s signals %g[%i] : memref<8x64x64xbf16>, !tile.ring<1 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @inner_and_runs_async(%m: memref<8x64x64xbf16>, %g: !tile.ring<1 x !tile.shared<64x64xbf16>>, %s: !tile.shared<64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load_async' op has 'inner', so it can have neither 'rows' nor 'runs'}}
  tile.load_async %m dims [1, 0, 2] inner 4 runs 16 {
  ^bb0(%row: index):
    tile.yield %i, %row : index, index
  } into %s signals %g[%i] : memref<8x64x64xbf16>, !tile.ring<1 x !tile.shared<64x64xbf16>>
  return
}

// -----

func.func @inner_fragment(%m: memref<8x64x64xbf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op expected a tile in shared memory whose rows run along two dimensions, got '!tile.fragment<64x64xbf16>'}}
  %t = tile.load %m[%i, %i, %i] dims [1, 0, 2] inner 4 : memref<8x64x64xbf16> -> !tile.fragment<64x64xbf16>
  return
}
