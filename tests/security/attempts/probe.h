/* Parts of the probe. An attempt returns 0 or more for success, -1 with errno for a failure. */
#pragma once

/* Looks a system call up by its name; -1 where this architecture has none. */
long call_number(const char *name);

/* Performs an attempt that takes more than one call; -2 for a name that is not in the list. */
long compound(const char *name, const char *argument);

long try_socket(int family, int type, int protocol);
long try_connect_path(const char *path);
long try_connect_abstract(const char *name);
long try_connect_tcp(int port);
