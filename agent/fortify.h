/*
 * Checked copies and prints for a C library without _FORTIFY_SOURCE (musl): where the compiler knows the size of the object
 * that is written, more than that ends the program. scripts/build-agent.sh includes this header before every source file.
 */
#pragma once

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#if !defined(__GLIBC__) && defined(_FORTIFY_SOURCE) && defined(__OPTIMIZE__)

/* Returns the size itself; ends the program where the object has less room. */
static inline __attribute__((always_inline)) size_t fortified(size_t size, size_t room) {
  if (size > room) __builtin_trap();
  return size;
}

/* The room of an object; the largest number where the compiler does not know it. */
#define FORTIFY_ROOM(object) __builtin_object_size(object, 0)

#define memcpy(to, from, size) memcpy(to, from, fortified(size, FORTIFY_ROOM(to)))
#define memmove(to, from, size) memmove(to, from, fortified(size, FORTIFY_ROOM(to)))
#define memset(to, byte, size) memset(to, byte, fortified(size, FORTIFY_ROOM(to)))
#define snprintf(to, size, ...) snprintf(to, fortified(size, FORTIFY_ROOM(to)), __VA_ARGS__)
#define vsnprintf(to, size, format, list) vsnprintf(to, fortified(size, FORTIFY_ROOM(to)), format, list)
#define read(fd, to, size) read(fd, to, fortified(size, FORTIFY_ROOM(to)))
#define recv(fd, to, size, flags) recv(fd, to, fortified(size, FORTIFY_ROOM(to)), flags)
#define readlink(path, to, size) readlink(path, to, fortified(size, FORTIFY_ROOM(to)))
#define readlinkat(at, path, to, size) readlinkat(at, path, to, fortified(size, FORTIFY_ROOM(to)))

static inline __attribute__((always_inline)) char *fortified_strcpy(char *to, const char *from, size_t room) {
  size_t size = strlen(from) + 1;
  return memcpy(to, from, fortified(size, room));
}
#define strcpy(to, from) fortified_strcpy(to, from, FORTIFY_ROOM(to))

#endif
