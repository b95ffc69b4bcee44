/* SPDX-License-Identifier: Apache-2.0 */
/* A library that does what BAD_LIBRARY says when it is loaded: crash, abort, exit=N, hang, which no
   signal but SIGKILL ends, or close, which hangs with every file closed; anything else: nothing. It
   exports nothing. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(void) {
  int number;
  for (number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
  for (;;) sleep(1000);
}

__attribute__((constructor)) static void load(void) {
  const char* fault = getenv("BAD_LIBRARY");
  int file;
  if (fault == NULL) return;
  if (strcmp(fault, "crash") == 0) raise(SIGSEGV);
  if (strcmp(fault, "abort") == 0) abort();
  if (strncmp(fault, "exit=", 5) == 0) _exit(atoi(fault + 5));
  if (strcmp(fault, "hang") == 0) hang();
  if (strcmp(fault, "close") == 0) {
    for (file = 0; file < 256; ++file) close(file);
    hang();
  }
}
