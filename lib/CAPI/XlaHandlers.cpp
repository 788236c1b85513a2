//===- XlaHandlers.cpp - Functions of a text as custom calls of XLA -------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handlers of XLA's foreign function interface. The structures are those of its
// C interface, whose layout is what both sides agree on, so that no header of
// XLA is needed and one library serves all versions of it.
//
//===----------------------------------------------------------------------===//

#include "fovea-c/fovea.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <mutex>
#include <optional>

//===----------------------------------------------------------------------===//
// XLA's structures
//===----------------------------------------------------------------------===//

namespace {
struct XlaExtension {
  size_t size;
  int32_t type;
  XlaExtension *next;
};
constexpr int32_t kMetadataExtension = 1;

struct XlaVersion {
  size_t size;
  XlaExtension *extensions;
  int32_t majorVersion;
  int32_t minorVersion;
};

struct XlaMetadata {
  size_t size;
  XlaVersion version;
  uint32_t traits;
};

struct XlaMetadataExtension {
  XlaExtension base;
  XlaMetadata *metadata;
};

struct XlaErrorArguments {
  size_t size;
  XlaExtension *extensions;
  const char *message;
  int32_t code;
};
constexpr int32_t kInvalidArgument = 3;
constexpr int32_t kInternal = 13;

struct XlaContext;

struct XlaStreamArguments {
  size_t size;
  XlaExtension *extensions;
  XlaContext *context;
  void *stream;
};

/// The members up to the last one that is used.
struct XlaApi {
  size_t size;
  XlaExtension *extensions;
  XlaVersion version;
  const void *internal;
  XLA_FFI_Error *(*createError)(XlaErrorArguments *);
  void *getMessage;
  void *destroyError;
  void *registerHandler;
  XLA_FFI_Error *(*getStream)(XlaStreamArguments *);
};

struct XlaBuffer {
  size_t size;
  XlaExtension *extensions;
  int32_t dtype;
  void *data;
  int64_t rank;
  const int64_t *dims;
};

/// Arguments or results.
struct XlaValues {
  size_t size;
  XlaExtension *extensions;
  int64_t count;
  const int32_t *types;
  XlaBuffer **buffers;
};

struct XlaSpan {
  const char *data;
  size_t length;
};

struct XlaScalar {
  int32_t dtype;
  void *value;
};
constexpr int32_t kScalar = 3;
constexpr int32_t kString = 4;

struct XlaAttributes {
  size_t size;
  XlaExtension *extensions;
  int64_t count;
  const int32_t *types;
  const XlaSpan **names;
  void **values;
};
} // namespace

struct XLA_FFI_CallFrame {
  size_t size;
  XlaExtension *extensions;
  const XlaApi *api;
  XlaContext *context;
  int32_t stage;
  XlaValues arguments;
  XlaValues results;
  XlaAttributes attributes;
};

/// XLA's numbers of element types.
namespace {
enum XlaType : int32_t {
  Pred = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  BF16 = 16
};
} // namespace

//===----------------------------------------------------------------------===//
// A call
//===----------------------------------------------------------------------===//

static std::optional<int32_t> getDType(int32_t type) {
  switch (type) {
  case Pred:
    return FOVEA_BOOL;
  case S8:
  case U8:
    return FOVEA_I8;
  case S16:
  case U16:
    return FOVEA_I16;
  case S32:
  case U32:
    return FOVEA_I32;
  case S64:
  case U64:
    return FOVEA_I64;
  case F16:
    return FOVEA_F16;
  case BF16:
    return FOVEA_BF16;
  case F32:
    return FOVEA_F32;
  case F64:
    return FOVEA_F64;
  default:
    return std::nullopt;
  }
}

namespace {
/// One call of a handler.
class Handler {
public:
  Handler(XLA_FFI_CallFrame &frame, bool gpu) : frame(frame), gpu(gpu) {}

  XLA_FFI_Error *run();

private:
  XLA_FFI_Error *fail(const llvm::Twine &message, int32_t code) {
    std::string text = message.str();
    XlaErrorArguments arguments = {sizeof(arguments), nullptr, text.c_str(),
                                   code};
    return frame.api->createError(&arguments);
  }
  XLA_FFI_Error *fail(fovea_status *status) {
    int32_t code = fovea_status_get_code(status) == FOVEA_RUNTIME_ERROR
                       ? kInternal
                       : kInvalidArgument;
    XLA_FFI_Error *error = fail(fovea_status_get_message(status), code);
    fovea_status_destroy(status);
    return error;
  }

  XLA_FFI_Error *readAttributes();
  XLA_FFI_Error *findModule();
  XLA_FFI_Error *readBuffer(const XlaBuffer &buffer, llvm::StringRef kind,
                            size_t index, const fovea_type &type,
                            fovea_tensor &tensor);
  XLA_FFI_Error *readBuffers();
  XLA_FFI_Error *checkShape(const fovea_tensor &result,
                            const fovea_tensor &memory);
  XLA_FFI_Error *call();
  XLA_FFI_Error *launch();

  XLA_FFI_CallFrame &frame;
  bool gpu;
  llvm::StringRef text;
  int64_t function = 0;
  /// A bit for each argument whose dimensions 1 and 2 change places.
  uint64_t swapped = 0;
  const fovea_module *module = nullptr;
  llvm::SmallVector<fovea_tensor, 8> operands;
  llvm::SmallVector<fovea_tensor, 4> results;
};
} // namespace

XLA_FFI_Error *Handler::readAttributes() {
  const XlaAttributes &attributes = frame.attributes;
  bool hasText = false, hasFunction = false;
  for (int64_t i = 0; i < attributes.count; ++i) {
    llvm::StringRef name(attributes.names[i]->data,
                         attributes.names[i]->length);
    if (name == "text" && attributes.types[i] == kString) {
      auto *span = static_cast<const XlaSpan *>(attributes.values[i]);
      text = llvm::StringRef(span->data, span->length);
      hasText = true;
      continue;
    }
    int64_t number = 0;
    if (attributes.types[i] == kScalar) {
      auto *scalar = static_cast<const XlaScalar *>(attributes.values[i]);
      if (scalar->dtype == S64) {
        std::memcpy(&number, scalar->value, sizeof(number));
        if (name == "function") {
          function = number;
          hasFunction = true;
        }
        if (name == "swapped")
          swapped = uint64_t(number);
      }
    }
  }
  if (!hasText || !hasFunction)
    return fail("expected the attributes text, a string, and function, an i64",
                kInvalidArgument);
  return nullptr;
}

/// Finds the module of a text, and compiles it at the first call with it.
/// Modules are kept for the life of the process, as XLA's executables may be.
XLA_FFI_Error *Handler::findModule() {
  static std::mutex mutex;
  static fovea_context *context = nullptr;
  static llvm::StringMap<fovea_module *> modules[2];
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!context) {
      if (fovea_status *status = fovea_context_create(&context))
        return fail(status);
    }
    if ((module = modules[gpu].lookup(text)))
      return nullptr;
  }
  fovea_options options = {};
  options.target = gpu ? "gpu" : "host";
  fovea_module *compiled = nullptr;
  if (fovea_status *status =
          fovea_compile(context, text.data(), text.size(), &options, &compiled))
    return fail(status);
  std::lock_guard<std::mutex> lock(mutex);
  auto [place, isNew] = modules[gpu].try_emplace(text, compiled);
  if (!isNew)
    fovea_module_destroy(compiled);
  module = place->second;
  return nullptr;
}

XLA_FFI_Error *Handler::readBuffer(const XlaBuffer &buffer,
                                   llvm::StringRef kind, size_t index,
                                   const fovea_type &type,
                                   fovea_tensor &tensor) {
  std::optional<int32_t> dtype = getDType(buffer.dtype);
  int64_t rank = buffer.rank;
  // Where JAX has no f64, one is two u32.
  if (type.dtype == FOVEA_F64 && buffer.dtype == U32 && rank > 0 &&
      buffer.dims[rank - 1] == 2) {
    dtype = FOVEA_F64;
    --rank;
  }
  if (!dtype || rank > FOVEA_MAX_RANK || *dtype != type.dtype ||
      rank != type.rank)
    return fail(
        llvm::formatv("{0} {1}: expected type {2} and rank {3} of Fovea, got a "
                      "buffer of XLA's type {4} and rank {5}",
                      kind, index, type.dtype, type.rank, buffer.dtype,
                      buffer.rank)
            .str(),
        kInvalidArgument);
  tensor = {};
  tensor.data = buffer.data;
  tensor.dtype = *dtype;
  tensor.rank = int32_t(rank);
  int64_t stride = 1;
  for (int64_t dim = rank; dim-- > 0; stride *= buffer.dims[dim]) {
    tensor.shape[dim] = buffer.dims[dim];
    tensor.strides[dim] = stride;
  }
  return nullptr;
}

XLA_FFI_Error *Handler::readBuffers() {
  size_t number = size_t(function);
  if (!fovea_module_get_function_name(module, number))
    return fail("there is no function " + llvm::Twine(function) +
                    " in the text",
                kInvalidArgument);
  size_t numOperands = fovea_module_get_num_operands(module, number);
  size_t numResults = fovea_module_get_num_results(module, number);
  if (size_t(frame.arguments.count) != numOperands ||
      size_t(frame.results.count) != numResults)
    return fail(llvm::formatv("@{0}: expected {1} arguments and {2} results, "
                              "got {3} and {4}",
                              fovea_module_get_function_name(module, number),
                              numOperands, numResults, frame.arguments.count,
                              frame.results.count)
                    .str(),
                kInvalidArgument);
  operands.resize(numOperands);
  results.resize(numResults);
  fovea_type type;
  for (size_t i = 0; i < numOperands; ++i) {
    if (fovea_status *status =
            fovea_module_get_operand_type(module, number, i, &type))
      return fail(status);
    if (type.is_scalar)
      return fail("argument " + llvm::Twine(i) +
                      " of the text is a number; expected tensors only",
                  kInvalidArgument);
    if (type.is_writable)
      return fail("argument " + llvm::Twine(i) +
                      " of the text is writable; XLA's buffers are only read",
                  kInvalidArgument);
    if (XLA_FFI_Error *error = readBuffer(*frame.arguments.buffers[i],
                                          "argument", i, type, operands[i]))
      return error;
    if (swapped >> i & 1) {
      std::swap(operands[i].shape[1], operands[i].shape[2]);
      std::swap(operands[i].strides[1], operands[i].strides[2]);
    }
  }
  for (size_t i = 0; i < numResults; ++i) {
    if (fovea_status *status =
            fovea_module_get_result_type(module, number, i, &type))
      return fail(status);
    if (XLA_FFI_Error *error = readBuffer(*frame.results.buffers[i], "result",
                                          i, type, results[i]))
      return error;
  }
  return nullptr;
}

/// Checks that a result has the shape that XLA knows it by.
XLA_FFI_Error *Handler::checkShape(const fovea_tensor &result,
                                   const fovea_tensor &memory) {
  for (int32_t dim = 0; dim < memory.rank; ++dim)
    if (result.shape[dim] != memory.shape[dim])
      return fail(llvm::formatv("dimension {0} of a result is {1}, but XLA's "
                                "memory has {2}",
                                dim, result.shape[dim], memory.shape[dim])
                      .str(),
                  kInvalidArgument);
  return nullptr;
}

/// Computes on the host, in memory of its own, and copies to XLA's.
XLA_FFI_Error *Handler::call() {
  llvm::SmallVector<fovea_tensor, 4> made(results.size());
  if (fovea_status *status =
          fovea_module_call(module, size_t(function), operands.data(),
                            operands.size(), made.data(), made.size()))
    return fail(status);
  XLA_FFI_Error *error = nullptr;
  for (auto [from, to] : llvm::zip_equal(made, results)) {
    if (!error)
      error = checkShape(from, to);
    size_t bytes = 1;
    for (int32_t dim = 0; dim < to.rank; ++dim)
      bytes *= size_t(to.shape[dim]);
    static constexpr size_t kSizes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8};
    if (!error && bytes)
      std::memcpy(to.data, from.data, bytes * kSizes[to.dtype]);
    fovea_tensor_release(&from);
  }
  return error;
}

/// Enqueues the kernels on XLA's stream; results go into XLA's memory.
XLA_FFI_Error *Handler::launch() {
  XlaStreamArguments arguments = {sizeof(arguments), nullptr, frame.context,
                                  nullptr};
  if (XLA_FFI_Error *error = frame.api->getStream(&arguments))
    return error;
  llvm::SmallVector<fovea_tensor, 4> memory = results;
  if (fovea_status *status = fovea_module_launch(
          module, size_t(function), operands.data(), operands.size(),
          arguments.stream, results.data(), results.size()))
    return fail(status);
  XLA_FFI_Error *error = nullptr;
  for (auto [result, room] : llvm::zip_equal(results, memory)) {
    if (!error)
      error = checkShape(result, room);
    // Memory of a result without elements, for which XLA has none.
    fovea_tensor_release(&result);
  }
  return error;
}

XLA_FFI_Error *Handler::run() {
  // XLA asks what the handler is before it calls it.
  if (XlaExtension *extension = frame.extensions;
      extension && extension->type == kMetadataExtension) {
    XlaMetadata &metadata =
        *reinterpret_cast<XlaMetadataExtension *>(extension)->metadata;
    // Any minor version will do: later ones add members behind those above.
    metadata.version = {sizeof(XlaVersion), nullptr, 0,
                        frame.api->version.minorVersion};
    metadata.traits = 0;
    return nullptr;
  }
  if (XLA_FFI_Error *error = readAttributes())
    return error;
  if (XLA_FFI_Error *error = findModule())
    return error;
  if (XLA_FFI_Error *error = readBuffers())
    return error;
  return gpu ? launch() : call();
}

XLA_FFI_Error *fovea_xla_host(XLA_FFI_CallFrame *frame) {
  return Handler(*frame, /*gpu=*/false).run();
}

XLA_FFI_Error *fovea_xla_gpu(XLA_FFI_CallFrame *frame) {
  return Handler(*frame, /*gpu=*/true).run();
}
