/* The process between the supervisor and a command: it reaps what the command leaves behind, and tells of its end. */
#ifndef AIDO_SHEPHERD_H
#define AIDO_SHEPHERD_H

#include "agent.h"

/* Where a shepherd or a tool tells the supervisor: closed by execve, and above what the command inherits. */
enum { STATUS_FD = 3 };

/* What a new process gets in the place of its standard descriptors, and of STATUS_FD. */
struct ends {
  int input, output[2], status;
};

/* Puts them there. */
void wear(const struct ends *ends);
void unblock_signals(void);
void tell(const struct report *report);
_Noreturn void shepherd_main(const struct exec_request *request);

/* The pid of the one that has taken the command; 0 when none does, and the command has not been begun. */
pid_t spare_take(const struct exec_request *request, const struct ends *child);

#endif
