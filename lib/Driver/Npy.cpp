//===- Npy.cpp - Tensors in .npy files ------------------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Npy.h"
#include "fovea/Driver/Output.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace fovea;

namespace fs = llvm::sys::fs;

static constexpr llvm::StringLiteral kMagic("\x93NUMPY");
static constexpr size_t kMaxRank = 32;

namespace {
struct Header {
  DType type;
  bool swapped = false;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t, 4> shape;
};
} // namespace

/// Makes text from outside safe to print.
static std::string escape(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream stream(escaped);
  llvm::printEscapedString(text.take_front(40), stream);
  return escaped;
}

namespace {
/// Reads the header, which is a dictionary as Python writes it.
class HeaderParser {
public:
  HeaderParser(llvm::StringRef text, bool bf16Bits)
      : text(text), bf16Bits(bf16Bits) {}

  llvm::Expected<Header> parse();

private:
  llvm::Error fail(const llvm::Twine &message) {
    return llvm::createStringError("its header " + message);
  }
  bool accept(char c) {
    text = text.ltrim();
    return text.consume_front(llvm::StringRef(&c, 1));
  }
  std::optional<llvm::StringRef> parseString();
  llvm::Error parseValue(llvm::StringRef key, Header &header);
  llvm::Error parseType(llvm::StringRef descr, Header &header);
  llvm::Error parseShape(Header &header);

  llvm::StringRef text;
  bool bf16Bits;
};
} // namespace

std::optional<llvm::StringRef> HeaderParser::parseString() {
  char quote = accept('\'') ? '\'' : accept('"') ? '"' : 0;
  size_t end = text.find(quote);
  if (!quote || end == llvm::StringRef::npos)
    return std::nullopt;
  llvm::StringRef string = text.take_front(end);
  text = text.drop_front(end + 1);
  return string;
}

llvm::Error HeaderParser::parseType(llvm::StringRef descr, Header &header) {
  // Byte order, kind, and size, such as `<f4`.
  char order = descr.empty() ? 0 : descr.front();
  llvm::StringRef kind = descr.drop_front(order ? 1 : 0);
  std::optional<DType> type;
  if (bf16Bits && (kind == "u2" || kind == "V2"))
    type = DType::BF16;
  else if (kind == "f2")
    type = DType::F16;
  else if (kind == "f4")
    type = DType::F32;
  else if (kind == "f8")
    type = DType::F64;
  else if (kind == "b1")
    type = DType::Bool;
  else if (kind == "i1" || kind == "u1")
    type = DType::I8;
  else if (kind == "i2" || kind == "u2")
    type = DType::I16;
  else if (kind == "i4" || kind == "u4")
    type = DType::I32;
  else if (kind == "i8" || kind == "u8")
    type = DType::I64;
  if (!type || !llvm::StringRef("<>|=").contains(order))
    return fail("has the dtype '" + escape(descr) +
                "'; expected bool, f2, f4, f8 or an integer");
  header.type = *type;
  header.swapped = order == (llvm::sys::IsLittleEndianHost ? '>' : '<');
  return llvm::Error::success();
}

llvm::Error HeaderParser::parseShape(Header &header) {
  if (!accept('('))
    return fail("has a shape that is not a tuple");
  while (!accept(')')) {
    text = text.ltrim();
    uint64_t size;
    if (text.consumeInteger(10, size) || size > INT64_MAX)
      return fail("has a shape whose sizes are not numbers below 2^63");
    text.consume_front("L");
    header.shape.push_back(int64_t(size));
    if (header.shape.size() > kMaxRank)
      return fail("has a shape of more than " + llvm::Twine(kMaxRank) +
                  " dimensions");
    if (!accept(',')) {
      if (!accept(')'))
        return fail("has a shape that does not end");
      break;
    }
  }
  return llvm::Error::success();
}

llvm::Error HeaderParser::parseValue(llvm::StringRef key, Header &header) {
  if (key == "descr") {
    std::optional<llvm::StringRef> descr = parseString();
    if (!descr)
      return fail("has a dtype that is not a plain one");
    return parseType(*descr, header);
  }
  if (key == "shape")
    return parseShape(header);
  text = text.ltrim();
  header.fortranOrder = text.consume_front("True");
  if (!header.fortranOrder && !text.consume_front("False"))
    return fail("has a fortran_order that is neither True nor False");
  return llvm::Error::success();
}

llvm::Expected<Header> HeaderParser::parse() {
  Header header;
  llvm::SmallVector<llvm::StringRef, 3> missing = {"descr", "fortran_order",
                                                   "shape"};
  if (!accept('{'))
    return fail("is not a dictionary");
  while (!accept('}')) {
    std::optional<llvm::StringRef> key = parseString();
    if (!key || !accept(':'))
      return fail("is not a dictionary");
    auto *found = llvm::find(missing, *key);
    if (found == missing.end())
      return fail("has an unexpected or repeated key");
    missing.erase(found);
    if (llvm::Error error = parseValue(*key, header))
      return error;
    if (!accept(',')) {
      if (!accept('}'))
        return fail("does not end");
      break;
    }
  }
  if (!missing.empty())
    return fail("has no " + missing.front());
  if (!text.trim().empty())
    return fail("goes on after its end");
  return header;
}

/// The largest size of the part before the text of the header.
static constexpr size_t kMaxPrefix = kMagic.size() + 2 + 4;
/// The limit on a header's length, more than any writer needs for 32 sizes.
static constexpr uint64_t kMaxHeader = 1 << 20;

/// Takes the part before the text of the header from the front of `rest`, and
/// returns the length of that text.
static llvm::Expected<uint64_t> takeHeaderLength(llvm::StringRef &rest) {
  if (!rest.consume_front(kMagic) || rest.size() < 2)
    return llvm::createStringError("it is not an .npy file");
  unsigned major = uint8_t(rest[0]);
  if (major < 1 || major > 3)
    return llvm::createStringError("it is an .npy file of version " +
                                   llvm::Twine(major) + "; expected 1, 2 or 3");
  rest = rest.drop_front(2);
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (rest.size() < lengthBytes)
    return llvm::createStringError("it ends within its header");
  uint64_t length = major == 1 ? llvm::support::endian::read16le(rest.data())
                               : llvm::support::endian::read32le(rest.data());
  rest = rest.drop_front(lengthBytes);
  if (length > kMaxHeader)
    return llvm::createStringError(llvm::formatv(
        "its header has {0} bytes; expected at most {1}", length, kMaxHeader));
  return length;
}

/// Moves `source`, which is in file order, to row-major order.
static void reorder(const Header &header, llvm::StringRef source,
                    Tensor &tensor) {
  int64_t size = getSize(header.type);
  int64_t elements = tensor.getNumElements();
  char *target = static_cast<char *>(tensor.getData());
  if (!header.fortranOrder) {
    std::memcpy(target, source.data(), source.size());
    return;
  }
  // In Fortran order the first index runs fastest.
  llvm::SmallVector<int64_t, 4> index(header.shape.size(), 0);
  llvm::SmallVector<int64_t, 4> strides(header.shape.size(), 1);
  for (size_t i = 1; i < strides.size(); ++i)
    strides[i] = strides[i - 1] * header.shape[i - 1];
  for (int64_t element = 0; element < elements; ++element) {
    int64_t offset = 0;
    for (auto [i, stride] : llvm::zip_equal(index, strides))
      offset += i * stride;
    llvm::StringRef moved = source.substr(offset * size, size);
    std::memcpy(target + element * size, moved.data(), moved.size());
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < header.shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

static llvm::StringRef getDescr(DType type) {
  switch (type) {
  case DType::F16:
    return "<f2";
  case DType::BF16:
    return "<u2";
  case DType::F32:
    return "<f4";
  case DType::F64:
    return "<f8";
  case DType::Bool:
    return "|b1";
  case DType::I8:
    return "|i1";
  case DType::I16:
    return "<i2";
  case DType::I32:
    return "<i4";
  case DType::I64:
    return "<i8";
  }
  llvm_unreachable("unknown type");
}

/// Takes the header from the front of `rest`.
static llvm::Expected<Header> takeHeader(llvm::StringRef &rest, bool bf16Bits) {
  auto length = takeHeaderLength(rest);
  if (!length)
    return length.takeError();
  if (rest.size() < *length)
    return llvm::createStringError("it ends within its header");
  llvm::StringRef text = rest.take_front(*length);
  rest = rest.drop_front(*length);
  return HeaderParser(text, bf16Bits).parse();
}

/// Returns the number of bytes of the elements that a header promises.
static llvm::Expected<uint64_t> countBytes(const Header &header) {
  std::optional<int64_t> elements = countElements(header.shape, header.type);
  if (!elements)
    return llvm::createStringError("its shape " + formatShape(header.shape) +
                                   " overflows");
  return uint64_t(*elements) * getSize(header.type);
}

llvm::Expected<Tensor> fovea::parseNpy(llvm::StringRef contents,
                                       bool bf16Bits) {
  llvm::StringRef rest = contents;
  auto header = takeHeader(rest, bf16Bits);
  if (!header)
    return header.takeError();
  auto bytes = countBytes(*header);
  if (!bytes)
    return bytes.takeError();
  if (rest.size() != *bytes)
    return llvm::createStringError(
        llvm::formatv("it holds {0} bytes of elements; its shape ({1}) of {2} "
                      "needs {3}",
                      rest.size(), formatShape(header->shape),
                      getName(header->type), *bytes));

  int64_t elements = int64_t(*bytes) / getSize(header->type);
  Tensor tensor(header->type, header->shape, elements);
  if (!tensor.getData())
    return llvm::createStringError("out of memory for its " +
                                   llvm::Twine(*bytes) + " bytes");
  reorder(*header, rest, tensor);
  char *data = static_cast<char *>(tensor.getData());
  int64_t size = getSize(header->type);
  if (header->swapped)
    for (int64_t i = 0; i < elements; ++i)
      std::reverse(data + i * size, data + (i + 1) * size);
  if (header->type == DType::Bool)
    for (int64_t i = 0; i < elements; ++i)
      data[i] = data[i] != 0;
  return tensor;
}

/// Reads on until there are `size` bytes or the end is reached.
static llvm::Error extend(fs::file_t file, llvm::SmallString<0> &bytes,
                          uint64_t size) {
  constexpr uint64_t kChunk = 1 << 20;
  while (bytes.size() < size) {
    size_t start = bytes.size();
    bytes.resize_for_overwrite(start + std::min(size - start, kChunk));
    auto count = fs::readNativeFile(
        file, llvm::MutableArrayRef(bytes.data(), bytes.size()).slice(start));
    bytes.truncate(start + (count ? *count : 0));
    if (!count)
      return count.takeError();
    if (!*count)
      break;
  }
  return llvm::Error::success();
}

/// Reads a tensor from a stream that may never end, and no more than the
/// tensor.
static llvm::Expected<Tensor> readStream(fs::file_t file, bool bf16Bits) {
  llvm::SmallString<0> bytes;
  if (llvm::Error error = extend(file, bytes, kMaxPrefix))
    return error;
  llvm::StringRef rest = bytes;
  auto length = takeHeaderLength(rest);
  if (!length)
    return length.takeError();
  uint64_t end = bytes.size() - rest.size() + *length;
  if (llvm::Error error = extend(file, bytes, end))
    return error;
  rest = bytes;
  auto header = takeHeader(rest, bf16Bits);
  if (!header)
    return header.takeError();
  auto elements = countBytes(*header);
  if (!elements)
    return elements.takeError();
  if (llvm::Error error = extend(file, bytes, end + *elements))
    return error;
  return parseNpy(bytes, bf16Bits);
}

llvm::Expected<Tensor> fovea::readNpy(llvm::StringRef path, bool bf16Bits) {
  auto tensor = [&]() -> llvm::Expected<Tensor> {
    auto file = fs::openNativeFileForRead(path);
    if (!file)
      return file.takeError();
    llvm::scope_exit closer([&] { fs::closeFile(*file); });
    fs::file_status status;
    if (std::error_code code = fs::status(*file, status))
      return llvm::errorCodeToError(code);
    if (!fs::is_regular_file(status))
      return readStream(*file, bf16Bits);
    auto buffer =
        llvm::MemoryBuffer::getOpenFile(*file, path, status.getSize(),
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return llvm::errorCodeToError(buffer.getError());
    return parseNpy((*buffer)->getBuffer(), bf16Bits);
  }();
  if (!tensor)
    return llvm::createStringError("cannot read '" + path +
                                   "': " + llvm::toString(tensor.takeError()));
  return tensor;
}

llvm::Error fovea::writeNpy(llvm::StringRef path, const Tensor &tensor) {
  std::string header;
  llvm::raw_string_ostream stream(header);
  stream << "{'descr': '" << getDescr(tensor.getType())
         << "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.getShape())
    stream << size << ", ";
  stream << "), }";
  // The elements start at a multiple of 64 bytes.
  size_t prefix = kMagic.size() + 4;
  size_t length = llvm::alignTo(prefix + header.size() + 1, 64) - prefix;
  header.resize(length - 1, ' ');
  header += '\n';
  return writeOutput(path, [&](llvm::raw_ostream &file) {
    char sizes[4] = {1, 0};
    llvm::support::endian::write16le(sizes + 2, uint16_t(length));
    file << kMagic << llvm::StringRef(sizes, 4) << header;
    file.write(static_cast<const char *>(tensor.getData()),
               tensor.getNumBytes());
  });
}
