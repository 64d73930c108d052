// Independent pieces of work on several threads.
#ifndef ORRERY_BASE_PARALLEL_H_
#define ORRERY_BASE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace orrery {

// Threads that this machine runs at once, at least 1.
int HardwareThreads();

// Calls work(i) once for each i of [0, count), on up to `threads` threads, the calling one among them; returns when all
// are done. Calls for different i run concurrently and in any order: what one writes, no other may touch.
void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work);

}  // namespace orrery

#endif  // ORRERY_BASE_PARALLEL_H_
