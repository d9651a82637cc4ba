/* A monotonic clock that goes on by a microsecond whenever it is read, preloaded by scripts/fuzz.sh:
 * what a program covers depends a little on how long its calls take, and what a fuzzer tries next
 * depends on what was covered. The time of day stays: an input that takes too long is noticed by it. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static unsigned long long microseconds;
    if (clock != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    unsigned long long at = __atomic_add_fetch(&microseconds, 1, __ATOMIC_RELAXED);
    now->tv_sec = (time_t)(at / 1000000);
    now->tv_nsec = (long)(at % 1000000) * 1000;
    return 0;
}
