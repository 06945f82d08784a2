/*
 * Keeps a runtime loaded. Loading crun takes more than half as long as its work: a dozen libraries are linked, and some query the
 * processor's features, which a virtual machine answers slowly. With this library, crun stops before its main function and
 * becomes a zygote; each child of the zygote goes on there, with the name of its own container. The runtime itself is not
 * changed. Where this library cannot be loaded (another C library, a static runtime) the runtime reports a missing configuration
 * and ends, and is then loaded anew for each sandbox.
 */
#define _GNU_SOURCE
#include "../birth.h"

#include "../../spawner.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static main_function *runtime_main;

static int keep_loaded(int argc, char **argv, char **unused) {
  static struct birth birth;
  int fds[PASSED_MAX];
  (void)unused;
  unsetenv("LD_PRELOAD");
  unsetenv(KEEPER_VARIABLE);
  close(KEEPER_PRELOAD);
  keeper_serve(&birth, fds);
  birth_settle(&birth, fds);
  birth_tell_mounts();
  prctl(PR_SET_NAME, "crun");
  strcpy(argv[argc - 1], birth.name);
  return runtime_main(argc, argv, environ);
}

start_function __libc_start_main __attribute__((visibility("default")));
int __libc_start_main(main_function *function, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end) {
  start_function *start;
  *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  runtime_main = function;
  return start(getenv(KEEPER_VARIABLE) ? keep_loaded : function, argc, argv, init, fini, linker_fini, stack_end);
}
