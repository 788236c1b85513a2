//===- Simulation.h - Runs a text in the interpreter ------------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_UNITTESTS_INTERPRETER_SIMULATION_H
#define FOVEA_UNITTESTS_INTERPRETER_SIMULATION_H

#include "fovea/Dialect/Tile/IR/Tile.h"
#include "fovea/Interpreter/Interpreter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fovea {

/// An f32 tensor in row-major order.
struct Floats {
  llvm::SmallVector<int64_t> shape;
  std::vector<float> data;
};

class SimulationTest : public ::testing::Test {
protected:
  SimulationTest() {
    context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect,
                        mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                        mlir::math::MathDialect, mlir::memref::MemRefDialect,
                        mlir::scf::SCFDialect, tile::TileDialect>();
    context.printOpOnDiagnostic(false);
  }

  /// Runs the function of a text. Errors, notes after `|`, are in `errors`.
  llvm::SmallVector<SimulationResult>
  run(llvm::StringRef text, llvm::ArrayRef<SimulationOperand> operands,
      const SimulationOptions &options = {}) {
    errors.clear();
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          errors += diagnostic.str();
          for (mlir::Diagnostic &note : diagnostic.getNotes())
            errors += " | " + note.str();
          return mlir::success();
        });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << errors;
      return {};
    }
    auto functions = module->getOps<mlir::func::FuncOp>();
    auto results = simulate(*functions.begin(), operands, options);
    if (failed(results))
      return {};
    return std::move(*results);
  }

  /// The same on f32 tensors and index numbers, for f32 results.
  std::vector<std::vector<float>>
  runFloats(llvm::StringRef text, llvm::ArrayRef<Floats> tensors,
            llvm::ArrayRef<int64_t> numbers = {},
            const SimulationOptions &options = {}) {
    std::vector<llvm::SmallVector<int64_t>> strides(tensors.size());
    llvm::SmallVector<SimulationOperand> operands;
    for (auto [tensor, steps] : llvm::zip_equal(tensors, strides)) {
      steps.assign(tensor.shape.size(), 1);
      for (size_t dim = steps.size(); dim-- > 1;)
        steps[dim - 1] = steps[dim] * tensor.shape[dim];
      operands.push_back({tensor.data.data(), tensor.shape, steps});
    }
    for (const int64_t &number : numbers)
      operands.push_back({&number, {}, {}});
    std::vector<std::vector<float>> values;
    for (const SimulationResult &result : run(text, operands, options)) {
      values.emplace_back(result.data.size() / sizeof(float));
      std::memcpy(values.back().data(), result.data.data(), result.data.size());
    }
    return values;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string errors;
};

} // namespace fovea

#endif // FOVEA_UNITTESTS_INTERPRETER_SIMULATION_H
