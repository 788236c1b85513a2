//===- TextChecks.cpp - Checks beyond parser and verifier -----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fovea;

llvm::Error fovea::checkNesting(llvm::StringRef text, llvm::StringRef name) {
  constexpr int64_t kDeepest = 256;
  int64_t depth = 0, line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
    } else if (c == '"') {
      // Continues to the end of the string, which may be on no other line.
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      line += i < text.size() && text[i] == '\n';
    } else if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text.substr(i).starts_with("->") ||
               text.substr(i).starts_with(">=")) {
      ++i;
    } else if (llvm::StringRef("({[<").contains(c)) {
      if (++depth > kDeepest)
        return llvm::createStringError(
            llvm::formatv("{0}:{1}: error: brackets nest more than {2} deep",
                          name, line, kDeepest));
    } else if (llvm::StringRef(")}]>").contains(c)) {
      depth = std::max<int64_t>(depth - 1, 0);
    }
  }
  return llvm::Error::success();
}

mlir::LogicalResult fovea::checkDivisions(mlir::ModuleOp module) {
  using namespace mlir::arith;
  return mlir::failure(
      module
          ->walk([](mlir::Operation *op) -> mlir::WalkResult {
            if (!mlir::isa<DivSIOp, DivUIOp, RemSIOp, RemUIOp, CeilDivSIOp,
                           CeilDivUIOp, FloorDivSIOp>(op) ||
                !mlir::matchPattern(op->getOperand(1), mlir::m_Zero()))
              return mlir::WalkResult::advance();
            return op->emitOpError(
                "divides by the constant 0; expected another divisor");
          })
          .wasInterrupted());
}
