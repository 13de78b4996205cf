// A BPF program runs on no machine of its own, so these headers, which the kernel's others ask for,
// are the generic ones. Where a system keeps those of its machine is then no concern.
#include <asm-generic/types.h>
