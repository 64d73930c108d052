// Whole files in and out. Every error names the path and says what is wrong with it.
#ifndef ORRERY_BASE_FILE_H_
#define ORRERY_BASE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orrery {

// The status of a system call on `path` that failed with this errno. `doing`: "read", "write".
absl::Status SystemError(const std::string& path, int error, std::string_view doing);

// The contents of a regular file of at most `max_bytes` bytes. Errors: kNotFound (no such file), kPermissionDenied,
// kInvalidArgument (a directory, a device, a pipe or a socket), kResourceExhausted (larger than `max_bytes`),
// kUnavailable (the system refused for another reason, which is quoted). Never blocks on a pipe and never reads more
// than it may.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::int64_t max_bytes);

// Writes a file so that either the old or the new contents stand there at any time: into a temporary file beside it,
// flushed, then renamed over it. Keeps an existing file's mode and follows a symbolic link. An existing device or pipe
// (/dev/null, /dev/stdout) is written to as it is. Errors as above.
absl::Status WriteFile(const std::string& path, std::string_view contents);

// `contents` in gzip format (RFC 1952), without a name and with modification time 0: equal contents, equal bytes.
std::string Gzip(std::string_view contents);

// WriteFile of Gzip.
absl::Status WriteGzip(const std::string& path, std::string_view contents);

}  // namespace orrery

#endif  // ORRERY_BASE_FILE_H_
