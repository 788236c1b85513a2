//===- NpyTest.cpp - Reading .npy files that may be hostile ---------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Driver/Npy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace fovea;

namespace {

/// Returns a file of version 1 with this header and these bytes of elements.
std::string makeFile(llvm::StringRef header, llvm::StringRef elements,
                     char major = 1) {
  std::string file("\x93NUMPY", 6);
  file += major;
  file += '\0';
  uint32_t length = header.size();
  for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte)
    file += char(length >> (8 * byte));
  return file + header.str() + elements.str();
}

std::string makeHeader(llvm::StringRef descr, llvm::StringRef shape,
                       llvm::StringRef order = "False") {
  return ("{'descr': '" + descr + "', 'fortran_order': " + order +
          ", 'shape': " + shape + ", }\n")
      .str();
}

std::string getError(llvm::StringRef file, bool bf16Bits = false) {
  auto tensor = parseNpy(file, bf16Bits);
  if (tensor)
    return "";
  return llvm::toString(tensor.takeError());
}

TEST(Npy, ReadsEveryVersion) {
  for (char major : {1, 2, 3}) {
    auto tensor = parseNpy(
        makeFile(makeHeader("<i4", "(2,)"),
                 llvm::StringRef("\1\0\0\0\xff\xff\xff\xff", 8), major),
        false);
    ASSERT_TRUE(bool(tensor)) << llvm::toString(tensor.takeError());
    EXPECT_EQ(tensor->getType(), DType::I32);
    EXPECT_EQ(tensor->getShape(), llvm::ArrayRef<int64_t>({2}));
    EXPECT_EQ(tensor->read(0), 1);
    EXPECT_EQ(tensor->read(1), -1);
  }
}

TEST(Npy, ReadsRankZeroAndEmpty) {
  auto scalar = parseNpy(
      makeFile(makeHeader("<f2", "()"), llvm::StringRef("\0\x3c", 2)), false);
  ASSERT_TRUE(bool(scalar));
  EXPECT_EQ(scalar->getShape().size(), 0u);
  EXPECT_EQ(scalar->read(0), 1.0);
  auto empty = parseNpy(makeFile(makeHeader("<f4", "(3, 0, 2)"), ""), false);
  ASSERT_TRUE(bool(empty));
  EXPECT_EQ(empty->getNumElements(), 0);
}

TEST(Npy, ReadsFortranOrder) {
  auto tensor = parseNpy(makeFile(makeHeader("|i1", "(2, 3)", "True"),
                                  llvm::StringRef("\0\3\1\4\2\5", 6)),
                         false);
  ASSERT_TRUE(bool(tensor));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(tensor->read(i), i);
}

TEST(Npy, ReadsBigEndian) {
  auto tensor = parseNpy(makeFile(makeHeader(">f4", "(1,)"),
                                  llvm::StringRef("\x40\x49\x0f\xdb", 4)),
                         false);
  ASSERT_TRUE(bool(tensor));
  EXPECT_FLOAT_EQ(float(tensor->read(0)), 3.14159274f);
}

TEST(Npy, ReadsBools) {
  auto tensor = parseNpy(
      makeFile(makeHeader("|b1", "(3,)"), llvm::StringRef("\0\1\x7f", 3)),
      false);
  ASSERT_TRUE(bool(tensor));
  // Compiled code relies on 0 and 1.
  EXPECT_EQ(static_cast<char *>(tensor->getData())[2], 1);
}

TEST(Npy, ReadsBf16BitsOnlyWhereAsked) {
  std::string file =
      makeFile(makeHeader("<u2", "(1,)"), llvm::StringRef("\x80\x3f", 2));
  auto bits = parseNpy(file, true);
  ASSERT_TRUE(bool(bits));
  EXPECT_EQ(bits->getType(), DType::BF16);
  EXPECT_EQ(bits->read(0), 1.0);
  auto integers = parseNpy(file, false);
  ASSERT_TRUE(bool(integers));
  EXPECT_EQ(integers->getType(), DType::I16);
}

TEST(Npy, RejectsWhatIsNotNpy) {
  EXPECT_EQ(getError(""), "it is not an .npy file");
  EXPECT_EQ(getError("PK\3\4 and more of a zip file"),
            "it is not an .npy file");
  EXPECT_EQ(getError(makeFile("{}", "", 9)),
            "it is an .npy file of version 9; expected 1, 2 or 3");
}

TEST(Npy, RejectsTruncatedFiles) {
  std::string file = makeFile(makeHeader("<f4", "(4, 4)"), std::string(64, 0));
  ASSERT_EQ(getError(file), "");
  // Every shorter file is an error, and none is read beyond its end.
  for (size_t size = 0; size < file.size(); ++size) {
    std::unique_ptr<char[]> exact(new char[size]);
    memcpy(exact.get(), file.data(), size);
    EXPECT_NE(getError(llvm::StringRef(exact.get(), size)), "") << size;
  }
  EXPECT_EQ(getError(file + "x"),
            "it holds 65 bytes of elements; its shape (4x4) of f32 needs 64");
}

TEST(Npy, RejectsHostileHeaders) {
  struct {
    const char *header, *error;
  } cases[] = {
      {"", "its header is not a dictionary"},
      {"{", "its header is not a dictionary"},
      {"{}", "its header has no descr"},
      {"{'descr': '<f4', 'shape': (1,), }", "its header has no fortran_order"},
      {"{'descr': '<f4', 'descr': '<f4', }",
       "its header has an unexpected or repeated key"},
      {"{'descr': [('a', '<f4')], }",
       "its header has a dtype that is not a plain one"},
      {"{'descr': '<c8', }",
       "its header has the dtype '<c8'; expected bool, f2, f4, f8 or an "
       "integer"},
      {"{'descr': '\x1b[2J', }",
       "its header has the dtype '\\1B[2J'; expected bool, f2, f4, f8 or an "
       "integer"},
      {"{'fortran_order': 1, }",
       "its header has a fortran_order that is neither True nor False"},
      {"{'shape': 4, }", "its header has a shape that is not a tuple"},
      {"{'shape': (-4,), }",
       "its header has a shape whose sizes are not numbers below 2^63"},
      {"{'shape': (99999999999999999999,), }",
       "its header has a shape whose sizes are not numbers below 2^63"},
      {"{'shape': (4", "its header has a shape that does not end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
       "its header does not end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
       "its header goes on after its end"},
  };
  for (auto [header, error] : cases)
    EXPECT_EQ(getError(makeFile(header, "")), error) << header;
}

TEST(Npy, RejectsSizesThatOverflow) {
  EXPECT_EQ(
      getError(makeFile(makeHeader("<f8", "(4294967296, 4294967296)"), "")),
      "its shape 4294967296x4294967296 overflows");
  // A size of zero does not make the others harmless.
  EXPECT_EQ(
      getError(makeFile(makeHeader("<f8", "(0, 4611686018427387904)"), "")),
      "its shape 0x4611686018427387904 overflows");
  // The array is not allocated: the file is too short for it.
  EXPECT_EQ(getError(makeFile(makeHeader("<f8", "(1099511627776,)"), "")),
            "it holds 0 bytes of elements; its shape (1099511627776) of f64 "
            "needs 8796093022208");
  std::string shape = "(";
  for (int i = 0; i < 33; ++i)
    shape += "1, ";
  EXPECT_EQ(getError(makeFile(makeHeader("<f8", shape + ")"), "")),
            "its header has a shape of more than 32 dimensions");
}

TEST(Npy, WritesWhatItReads) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("fovea", "npy", path));
  llvm::FileRemover remover(path);
  for (DType type :
       {DType::F16, DType::BF16, DType::F32, DType::F64, DType::Bool, DType::I8,
        DType::I16, DType::I32, DType::I64}) {
    Tensor tensor(type, {2, 1, 2}, 4);
    for (int i = 0; i < 4; ++i)
      writeElement(tensor.getData(), type, i, i % 2);
    ASSERT_FALSE(bool(writeNpy(path, tensor)));
    auto read = readNpy(path, type == DType::BF16);
    ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
    EXPECT_EQ(read->getType(), type);
    EXPECT_EQ(read->getShape(), tensor.getShape());
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(read->read(i), i % 2);
    // The elements start at a multiple of 64 bytes.
    auto file = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(file));
    EXPECT_EQ(((*file)->getBufferSize() - tensor.getNumBytes()) % 64, 0u);
  }
}

TEST(Npy, NamesTheFile) {
  auto tensor = readNpy("/nowhere/x.npy", false);
  ASSERT_FALSE(bool(tensor));
  EXPECT_EQ(llvm::toString(tensor.takeError()),
            "cannot read '/nowhere/x.npy': No such file or directory");
}

} // namespace
