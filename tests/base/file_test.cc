#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::int64_t kLimit = 1 << 20;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "orrery_file_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t FilesInFolder() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::string folder_;
};

TEST_F(FileTest, WhatIsWrittenIsReadAndNothingElseIsLeft) {
  const std::string contents("one\0two\n", 8);
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  ASSERT_TRUE(WriteFile(Path("a"), contents).ok());
  EXPECT_EQ(*ReadFile(Path("a"), kLimit), contents);
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(FileTest, ReadErrorsSayWhatIsWrong) {
  EXPECT_EQ(ReadFile(Path("none"), kLimit).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadFile(Path("none"), kLimit).status().message()),
              EndsWith("/none: no such file or directory"));

  EXPECT_EQ(ReadFile(Path(""), kLimit).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ReadFile(Path(""), kLimit).status().message()), HasSubstr("is a directory"));

  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);  // must not wait for a writer
  EXPECT_THAT(std::string(ReadFile(Path("pipe"), kLimit).status().message()), HasSubstr("is not a regular file"));
  EXPECT_THAT(std::string(ReadFile("/dev/zero", kLimit).status().message()), HasSubstr("is not a regular file"));
}

TEST_F(FileTest, TheLimitIsInclusive) {
  ASSERT_TRUE(WriteFile(Path("a"), "12345").ok());
  EXPECT_EQ(*ReadFile(Path("a"), 5), "12345");
  EXPECT_EQ(ReadFile(Path("a"), 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(ReadFile(Path("a"), 4).status().message()), HasSubstr("larger than the limit of 4 bytes"));
  // A file of /proc says that it is empty; the limit holds for what is read.
  EXPECT_EQ(ReadFile("/proc/self/status", 4).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FileTest, AnUnreadableFileIsAPermissionError) {
  ASSERT_TRUE(WriteFile(Path("secret"), "x").ok());
  ASSERT_EQ(::chmod(Path("secret").c_str(), 0), 0);
  // Root may read everything; look at the file as a user who owns nothing here.
  constexpr uid_t kNobody = 65534;
  const uid_t self = ::geteuid();
  if (self == 0) {
    ASSERT_EQ(::chmod(Path("").c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const absl::Status read = ReadFile(Path("secret"), kLimit).status();
  const absl::Status write = WriteFile(Path("secret"), "y");
  if (self == 0) {
    ASSERT_EQ(::seteuid(self), 0);
  }
  EXPECT_EQ(read.code(), absl::StatusCode::kPermissionDenied) << read;
  EXPECT_THAT(std::string(read.message()), EndsWith("/secret: no permission to read it"));
  EXPECT_EQ(write.code(), absl::StatusCode::kPermissionDenied) << write;
}

TEST_F(FileTest, WriteErrorsLeaveNothingBehind) {
  EXPECT_EQ(WriteFile(Path("none/a"), "x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(WriteFile(Path(""), "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FilesInFolder(), 0u);
}

TEST_F(FileTest, KeepsTheModeFollowsLinksAndWritesDevicesInPlace) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  ASSERT_EQ(::chmod(Path("a").c_str(), 0640), 0);
  ASSERT_EQ(::symlink("a", Path("link").c_str()), 0);
  ASSERT_TRUE(WriteFile(Path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(*ReadFile(Path("a"), kLimit), "new");
  struct stat info {};
  ASSERT_EQ(::stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0640u);

  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

std::string Gunzip(const std::string& compressed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string contents(1 << 22, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(contents.data());
  stream.avail_out = static_cast<uInt>(contents.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  contents.resize(contents.size() - stream.avail_out);
  inflateEnd(&stream);
  return contents;
}

TEST_F(FileTest, GzipReadsBackAndHasNoTimeInIt) {
  std::string contents;
  for (int i = 0; i < 200'000; ++i) contents += std::to_string(i * 7919 % 100'003) + "\n";
  ASSERT_TRUE(WriteGzip(Path("a.gz"), contents).ok());
  const std::string compressed = *ReadFile(Path("a.gz"), kLimit);
  EXPECT_EQ(Gunzip(compressed), contents);
  EXPECT_EQ(compressed.substr(0, 3), "\x1f\x8b\x08");        // RFC 1952: magic, deflate
  EXPECT_EQ(compressed.substr(3, 5), std::string(5, '\0'));  // no flags (no name), modification time 0
  EXPECT_EQ(Gunzip(Gzip("")), "");
}

}  // namespace
}  // namespace orrery
