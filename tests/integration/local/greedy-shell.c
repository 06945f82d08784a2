/* A /bin/sh of an image that takes what it can get, for 20 seconds at most: 40 processes and 64 MiB. It leaves a file behind. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  static const char *const MARKS[] = {"/ran-ahead", "/tmp/ran-ahead", "ran-ahead"};
  for (int i = 0; i < 3; i++) close(open(MARKS[i], O_WRONLY | O_CREAT, 0644));
  for (int i = 0; i < 40; i++)
    if (fork() == 0) {
      alarm(20);
      pause();
      _exit(0);
    }
  char *memory = malloc(64 << 20);
  if (memory) memset(memory, 1, 64 << 20);
  return 0;
}
