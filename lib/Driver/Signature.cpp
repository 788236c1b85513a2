//===- Signature.cpp - Functions as callers see them ----------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fovea;

/// Returns the name that a location carries, or `%name` where an operand is
/// declared in the text, without the `%`.
static std::string readName(llvm::StringRef text, mlir::Location location) {
  if (auto named = mlir::dyn_cast<mlir::NameLoc>(location))
    return named.getName().str();
  auto place = location->findInstanceOf<mlir::FileLineColLoc>();
  if (!place)
    return "";
  for (unsigned line = 1; line < place.getLine(); ++line)
    text = text.split('\n').second;
  text = text.split('\n').first.substr(place.getColumn() - 1);
  if (!text.consume_front("%"))
    return "";
  return text
      .take_while([](char c) {
        return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
      })
      .str();
}

/// Describes a value, or returns the reason why it cannot cross.
static std::optional<ValueType> describeType(mlir::Type type) {
  std::optional<DType> element = getDType(type);
  if (!element)
    return std::nullopt;
  ValueType value = {"", *element, {}, /*scalar=*/true};
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type)) {
    value.scalar = false;
    for (int64_t size : tensor.getShape())
      value.shape.push_back(mlir::ShapedType::isDynamic(size) ? -1 : size);
  }
  return value;
}

Signature fovea::describe(mlir::func::FuncOp function, llvm::StringRef text) {
  Signature signature;
  signature.name = function.getName().str();
  auto object = [&](const llvm::Twine &what, mlir::Type type) {
    if (signature.obstacle.empty())
      signature.obstacle =
          llvm::formatv("{0} of @{1} is {2}; only tensors and numbers of f16, "
                        "bf16, f32, f64, index and signless integers can be "
                        "passed, and only tensors returned",
                        what.str(), signature.name, type);
  };
  for (mlir::BlockArgument argument : function.getArguments()) {
    std::optional<ValueType> value = describeType(argument.getType());
    if (!value) {
      object("operand " + llvm::Twine(argument.getArgNumber()),
             argument.getType());
      continue;
    }
    value->name = readName(text, argument.getLoc());
    auto writable = function.getArgAttrOfType<mlir::BoolAttr>(
        argument.getArgNumber(),
        mlir::bufferization::BufferizationDialect::kWritableAttrName);
    value->writable = !value->scalar && writable && writable.getValue();
    signature.operands.push_back(std::move(*value));
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    std::optional<ValueType> value = describeType(type);
    if (!value || value->scalar)
      object("result " + llvm::Twine(index), type);
    else
      signature.results.push_back(std::move(*value));
  }
  return signature;
}

std::string fovea::formatType(const ValueType &type) {
  if (type.scalar)
    return (getName(type.type) + " number").str();
  if (type.shape.empty())
    return (getName(type.type) + " tensor of rank 0").str();
  return (getName(type.type) + " tensor of shape ").str() +
         formatShape(type.shape);
}

std::string fovea::formatOperand(const Signature &function, size_t index) {
  const std::string &name = function.operands[index].name;
  return llvm::formatv("operand {0}{1} of @{2}", index,
                       name.empty() ? "" : " (%" + name + ")", function.name);
}

llvm::Expected<size_t> fovea::findFunction(llvm::ArrayRef<Signature> functions,
                                           llvm::StringRef name) {
  size_t index = 0;
  if (name.empty() && functions.size() != 1) {
    if (functions.empty())
      return llvm::createStringError("the module has no public function");
    return llvm::createStringError(
        "the module has several functions; name one of " +
        llvm::join(llvm::map_range(functions,
                                   [](const Signature &function) {
                                     return "@" + function.name;
                                   }),
                   ", "));
  }
  if (!name.empty()) {
    auto found = llvm::find_if(functions, [&](const Signature &function) {
      return function.name == name;
    });
    if (found == functions.end())
      return llvm::createStringError("the module has no public function @" +
                                     name);
    index = found - functions.begin();
  }
  if (!functions[index].obstacle.empty())
    return llvm::createStringError(functions[index].obstacle);
  return index;
}
