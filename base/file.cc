#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/format.h"
#include "base/status_macros.h"

namespace orrery {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Close(); }
  int get() const { return descriptor_; }
  int Close() {
    const int result = descriptor_ >= 0 ? ::close(descriptor_) : 0;
    descriptor_ = -1;
    return result;
  }

 private:
  int descriptor_;
};

absl::Status TooLarge(const std::string& path, std::int64_t max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": is larger than the limit of ", FormatCount(max_bytes), " bytes"));
}

absl::Status WriteAll(int descriptor, const std::string& path, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(path, errno, "write");
    }
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteInPlace(const std::string& path, std::string_view contents) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path, errno, "write");
  return WriteAll(file.get(), path, contents);
}

// Creates `temporary` with `mode` (0: the default of new files) and writes and flushes `contents` to it.
// Errors name `path`, which the user knows, not the temporary file beside it.
absl::Status WriteTemporary(const std::string& temporary, const std::string& path, mode_t mode,
                            std::string_view contents) {
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) return SystemError(path, errno, "create");
  if (mode != 0 && ::fchmod(file.get(), mode) != 0) return SystemError(path, errno, "change the mode of");
  ABSL_RETURN_IF_ERROR(WriteAll(file.get(), path, contents));
  if (::fsync(file.get()) != 0 || file.Close() != 0) return SystemError(path, errno, "write");
  return absl::OkStatus();
}

}  // namespace

absl::Status SystemError(const std::string& path, int error, std::string_view doing) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(path, ": no such file or directory"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(absl::StrCat(path, ": no permission to ", View(doing), " it"));
    case EISDIR:
      return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; expected a file"));
    default:
      return absl::UnavailableError(
          absl::StrCat(path, ": cannot ", View(doing), " it: ", std::generic_category().message(error)));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, std::int64_t max_bytes) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENXIO) return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));  // a socket
    return SystemError(path, errno, "read");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return SystemError(path, errno, "read");
  if (S_ISDIR(info.st_mode)) return SystemError(path, EISDIR, "read");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file (a device or a pipe)"));
  }
  if (info.st_size > max_bytes) return TooLarge(path, max_bytes);

  // The size is a hint only: the file may grow meanwhile, and files of /proc claim to be empty.
  std::string contents;
  contents.reserve(static_cast<std::size_t>(info.st_size));
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count == 0) return contents;
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemError(path, errno, "read");
    }
    contents.append(buffer.data(), static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(contents.size()) > max_bytes) return TooLarge(path, max_bytes);
  }
}

absl::Status WriteFile(const std::string& path, std::string_view contents) {
  std::string target = path;
  mode_t mode = 0;
  if (struct stat info{}; ::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return SystemError(path, EISDIR, "write");
    if (!S_ISREG(info.st_mode)) return WriteInPlace(path, contents);
    if (::access(path.c_str(), W_OK) != 0) return SystemError(path, errno, "write");
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    if (resolved == nullptr) return SystemError(path, errno, "write");
    target = resolved.get();
    mode = info.st_mode & 07777u;
  }
  const std::string temporary = absl::StrCat(target, ".", ::getpid(), ".part");
  absl::Status status = WriteTemporary(temporary, path, mode, contents);
  if (status.ok() && std::rename(temporary.c_str(), target.c_str()) != 0) status = SystemError(path, errno, "write");
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

std::string Gzip(std::string_view contents) {
  z_stream stream{};
  constexpr int kWindowBits = 15;  // the largest window
  constexpr int kGzipFormat = 16;  // zlib's way to ask for the gzip header
  constexpr int kMemoryLevel = 8;  // zlib's default
  ORRERY_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzipFormat, kMemoryLevel,
                            Z_DEFAULT_STRATEGY) == Z_OK);
  std::string compressed;
  std::array<char, 1 << 16> buffer;
  // zlib counts input in 32 bits: feed it in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (stream.avail_in == 0 && !contents.empty()) {
      const std::string_view piece = contents.substr(0, kPiece);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      contents.remove_prefix(piece.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = deflate(&stream, contents.empty() ? Z_FINISH : Z_NO_FLUSH);
    ORRERY_CHECK(result == Z_OK || result == Z_STREAM_END);
    compressed.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return compressed;
}

absl::Status WriteGzip(const std::string& path, std::string_view contents) { return WriteFile(path, Gzip(contents)); }

}  // namespace orrery
