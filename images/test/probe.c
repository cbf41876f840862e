/* The only program of the image aido-test:static: it shows that a sandbox needs no shell and no library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  printf("uid=%d gid=%d args=%d\n", (int)getuid(), (int)getgid(), argc - 1);
  return argc > 2 && strcmp(argv[1], "exit") == 0 ? atoi(argv[2]) : 0;
}
