#!/bin/sh
# Prints the compiler flags that harden a program of ours, of those that the compiler knows: hardened-flags.sh CC
set -eu

cc=$1
common='-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack'

knows() { echo 'int main(void) { return 0; }' | $cc -O2 -Werror "$1" -x c -S -o /dev/null - 2>/dev/null; }

flags=$common
# The last two are those of one processor each: shadow stacks and jump targets of x86-64, signed returns of arm64.
for flag in -fstack-clash-protection -fcf-protection -mbranch-protection=standard; do
  if knows "$flag"; then flags="$flags $flag"; fi
done
printf '%s\n' "$flags"
