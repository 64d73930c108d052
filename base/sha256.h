// SHA-256 (FIPS 180-4), by OpenSSL.
#ifndef ORRERY_BASE_SHA256_H_
#define ORRERY_BASE_SHA256_H_

#include <string>
#include <string_view>

namespace orrery {

// The digest of `data` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view data);

}  // namespace orrery

#endif  // ORRERY_BASE_SHA256_H_
