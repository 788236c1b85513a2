//===- Roles.cpp - Roles as branches on the warp --------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

#include "Patterns.h"

#include "fovea/Dialect/Tile/IR/TensorMaps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tile;

//===----------------------------------------------------------------------===//
// Warps and threads
//===----------------------------------------------------------------------===//

WarpNumbers::WarpNumbers(gpu::GPUModuleOp module) {
  for (auto kernel : module.getOps<gpu::GPUFuncOp>()) {
    WalkResult result = kernel.walk([](Operation *op) {
      auto product = dyn_cast<MmaOp>(op);
      bool needsWarp = isa<RolesOp, MmaAsyncOp>(op) ||
                       (product && product.getKind() == MmaKind::Wgmma);
      return needsWarp ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!result.wasInterrupted())
      continue;
    Location loc = kernel.getLoc();
    auto builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value thread =
        NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
    Value warp = arith::DivUIOp::create(builder, loc, thread,
                                        getI32(builder, loc, kWarpSize));
    warps[kernel] = shuffle(builder, loc, warp, NVVM::ShflKind::idx,
                            getI32(builder, loc, 0));
  }
}

Value WarpNumbers::getInBlock(Operation *op) const {
  return warps.lookup(op->getParentOfType<gpu::GPUFuncOp>());
}

/// Returns the first warp of `role`.
static int64_t getFirstWarp(RoleOp role) {
  int64_t first = 0;
  for (Operation *other = role->getPrevNode(); other;
       other = other->getPrevNode())
    first += cast<RoleOp>(other).getWarps();
  return first;
}

Value WarpNumbers::getInRole(OpBuilder &builder, Operation *op) const {
  Value warp = getInBlock(op);
  auto role = op->getParentOfType<RoleOp>();
  int64_t first = role ? getFirstWarp(role) : 0;
  if (!first)
    return warp;
  Location loc = op->getLoc();
  return arith::SubIOp::create(builder, loc, warp, getI32(builder, loc, first));
}

Value WarpNumbers::getGroup(OpBuilder &builder, Operation *op) const {
  Location loc = op->getLoc();
  return arith::ShRUIOp::create(
      builder, loc, getInRole(builder, op),
      getI32(builder, loc, llvm::Log2_64(kGroupWarps)));
}

bool fovea::tile::isOneThread(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  return role && role.getSingle();
}

/// Emits `body` for the threads whose `number` is 0.
static void emitInFirst(OpBuilder &builder, Location loc, Value number,
                        function_ref<void(OpBuilder &)> body) {
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        number, getI32(builder, loc, 0));
  scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &nested, Location) {
    body(nested);
    scf::YieldOp::create(nested, loc);
  });
}

void fovea::tile::emitInOneThread(OpBuilder &builder, Operation *op,
                                  function_ref<void(OpBuilder &)> body) {
  if (isOneThread(op))
    return body(builder);
  emitInFirst(builder, op->getLoc(), getThread(builder, op), body);
}

void fovea::tile::emitInFirstLane(OpBuilder &builder, Operation *op,
                                  function_ref<void(OpBuilder &)> body) {
  emitInFirst(builder, op->getLoc(), getLane(builder, op), body);
}

bool fovea::tile::isInCluster(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<gpu::GPUFuncOp>();
  return kernel->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName());
}

Operation *fovea::tile::getProgram(Operation *op) {
  if (auto role = op->getParentOfType<RoleOp>())
    return role;
  return op->getParentOfType<gpu::GPUFuncOp>();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Moves the body of `role` to the insertion point of `builder`.
static void lowerRole(ImplicitLocOpBuilder &builder, RoleOp role) {
  OpBuilder::InsertionGuard guard(builder);
  if (role.getSingle()) {
    Value thread = NVVM::ThreadIdXOp::create(builder, builder.getI32Type());
    Value isFirst = arith::CmpIOp::create(
        builder, arith::CmpIPredicate::eq, thread,
        getI32(builder, role.getLoc(), getFirstWarp(role) * kWarpSize));
    auto branch = scf::IfOp::create(builder, isFirst);
    builder.setInsertionPoint(branch.thenYield());
  }
  Block &body = role.getBody().front();
  body.getTerminator()->erase();
  builder.getInsertionBlock()->getOperations().splice(
      builder.getInsertionPoint(), body.getOperations());
}

/// Emits `body` for each of `items`, in a branch of the warps up to its
/// `getEnd`; the last one needs no branch.
template <typename Item>
static void emitBranches(ImplicitLocOpBuilder &builder, Value warp,
                         ArrayRef<Item> items,
                         function_ref<int64_t(const Item &)> getEnd,
                         function_ref<void(const Item &)> body) {
  OpBuilder::InsertionGuard guard(builder);
  for (const Item &item : items.drop_back()) {
    Value isHere =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, warp,
                              getI32(builder, builder.getLoc(), getEnd(item)));
    auto branch = scf::IfOp::create(builder, isHere, /*withElseRegion=*/true);
    builder.setInsertionPoint(branch.thenYield());
    body(item);
    builder.setInsertionPoint(branch.elseYield());
  }
  body(items.back());
}

/// Roles that share warp groups, whose budget is set by one instruction for all
/// warps of a group (`setmaxnreg`, PTX ISA 9.7.19.5).
using Sharers = SmallVector<RoleOp>;

/// Groups roles that share a warp group; other roles are groups of one.
static SmallVector<Sharers> groupRoles(ArrayRef<RoleOp> roles) {
  SmallVector<Sharers> groups;
  for (RoleOp role : roles) {
    if (groups.empty() || getFirstWarp(role) % kGroupWarps == 0 ||
        !role.getRegisters())
      groups.emplace_back();
    groups.back().push_back(role);
  }
  return groups;
}

/// Returns the first warp behind `role`.
static int64_t getEndWarp(const RoleOp &role) {
  return getFirstWarp(role) + static_cast<int64_t>(RoleOp(role).getWarps());
}

/// Moves the bodies of roles, whose threads start with `atStart` registers, to
/// the insertion point of `builder`.
static void lowerSharers(ImplicitLocOpBuilder &builder, Value warp,
                         const Sharers &roles, int64_t atStart) {
  int64_t registers = RoleOp(roles.front()).getRegisters().value_or(atStart);
  if (registers != atStart)
    NVVM::SetMaxRegisterOp::create(builder, registers,
                                   registers > atStart
                                       ? NVVM::SetMaxRegisterAction::increase
                                       : NVVM::SetMaxRegisterAction::decrease);
  emitBranches<RoleOp>(builder, warp, roles, getEndWarp,
                       [&](const RoleOp &role) { lowerRole(builder, role); });
}

static LogicalResult lowerRoles(RolesOp op, Value warp) {
  SmallVector<RoleOp> roles(op.getBody().getOps<RoleOp>());
  int64_t warps = 0;
  for (RoleOp role : roles)
    warps += role.getWarps();
  int64_t registers = machine::getGpuOrDefault(op).getRegistersPerCore();
  // The budgets are those of one block on a multiprocessor.
  int64_t atStart = machine::getEqualShare(registers, warps * kWarpSize);
  int64_t budget = 0;
  for (RoleOp role : roles)
    budget += role.getWarps() * kWarpSize *
              static_cast<int64_t>(role.getRegisters().value_or(atStart));
  if (budget > registers)
    return op.emitOpError("expected register budgets of at most ")
           << registers << " registers in all threads together, got " << budget;

  // The registers that a thread starts with hold for one block on a
  // multiprocessor.
  if (llvm::any_of(roles, [](RoleOp role) { return !!role.getRegisters(); }))
    op->getParentOfType<gpu::GPUFuncOp>()->setAttr(
        NVVM::NVVMDialect::getMinctasmAttrName(),
        Builder(op.getContext()).getI32IntegerAttr(1));
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  emitBranches<Sharers>(
      builder, warp, groupRoles(roles),
      [](const Sharers &sharers) { return getEndWarp(sharers.back()); },
      [&](const Sharers &sharers) {
        lowerSharers(builder, warp, sharers, atStart);
      });
  op.erase();
  return success();
}

namespace {
struct GroupLowering final : WarpPattern<GroupOp> {
  using WarpPattern::WarpPattern;

  LogicalResult
  matchAndRewrite(GroupOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::IndexCastOp>(
        op, rewriter.getIndexType(), warps.getGroup(rewriter, op));
    return success();
  }
};

/// What holds for all rows holds where all threads take one path.
struct OfRowsLowering final : OpConversionPattern<OfRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(OfRowsOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op.getWhole());
    return success();
  }
};
} // namespace

void fovea::tile::populateRolePatterns(const TileTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       const WarpNumbers &warps) {
  patterns.add<GroupLowering>(converter, patterns.getContext(), warps);
  patterns.add<OfRowsLowering>(converter, patterns.getContext());
}

LogicalResult fovea::tile::lowerRoles(gpu::GPUModuleOp module,
                                      const WarpNumbers &warps) {
  SmallVector<RolesOp> ops;
  module.walk([&](RolesOp op) { ops.push_back(op); });
  for (RolesOp op : ops)
    if (failed(::lowerRoles(op, warps.getInBlock(op))))
      return failure();
  return success();
}
