import type { AttemptClass } from './attempt.ts';
import { attempt, each, forRoot } from './attempt.ts';

const [ATTACH, SEIZE, TRACEME] = [16, 0x4206, 0];
const FILES =
  '/proc/1/mem /proc/1/environ /proc/1/maps /proc/1/smaps /proc/1/fd/0 /proc/1/fd/3 /proc/1/exe /proc/1/root/etc/shadow /proc/1/cwd/. /proc/1/auxv /proc/1/stack /proc/1/syscall /proc/1/personality /proc/1/io /proc/1/pagemap /proc/1/map_files /proc/1/ns/mnt /proc/1/fdinfo';

/** Where there is one id inside and outside, the agent has it, too; its memory stays closed. */
const SAME_ID = { oneId: 'own' } as const;
const REFUSED = { withoutWall: 'is refused' } as const;

export const processes: AttemptClass = {
  title: 'Other processes',
  why: 'the memory, descriptors and files of the agent, which holds the secrets of the sandbox, or of a process of the host',
  policy: 'held',
  attempts: [
    attempt('ptrace: attach to the first process', `call ptrace ${ATTACH} 1`, {}, REFUSED),
    attempt('ptrace: seize the first process', `call ptrace ${SEIZE} 1`),
    attempt('ptrace: be traced', `call ptrace ${TRACEME}`, { policy: 'own', docker: 'own' }),
    attempt('ptrace: a child', 'trace-child', { policy: 'own', docker: 'own' }),
    attempt('process_vm_readv: the first process', 'read-memory 1'),
    attempt('process_vm_writev: the first process', 'write-memory 1'),
    attempt('pidfd_getfd: the first process', 'take-descriptor 1'),
    attempt('kcmp: the first process', 'call kcmp 1 1 0'),
    attempt('process_madvise', 'call process_madvise -1 & 1 4 0', { policy: 'open', docker: 'open' }),
    attempt('migrate_pages: the first process', 'call migrate_pages 1 1 & &'),
    attempt('move_pages: the first process', 'call move_pages 1 1 & & & 2'),
    attempt('limits of the first process', 'limits 1', { ...forRoot('own'), docker: 'own', oneId: 'own' }),
    ...each('read', FILES),
    ...each('write', '/proc/1/mem /proc/1/exe /proc/1/setgroups'),
    ...each('read', '/proc/1/fd', SAME_ID),
    ...each('write', '/proc/1/oom_score_adj /proc/1/clear_refs /proc/1/autogroup /proc/1/uid_map', SAME_ID),
    attempt('timers of the first process', 'put /proc/1/timerslack_ns 50000'),
    attempt('label of the first process', 'put /proc/1/attr/current unconfined', {}, REFUSED),
    attempt('descriptors that were left open', 'inherited-descriptors', {}, REFUSED),
    attempt('its own map of ids', 'put /proc/self/uid_map 0', {}, REFUSED),
    attempt('its own rights: setgroups', 'put /proc/self/setgroups allow'),
    attempt('out of memory: never this one', 'put /proc/self/oom_score_adj -1000', {}, REFUSED),
    attempt('real time: FIFO', 'realtime 1'),
    attempt('real time: round robin', 'realtime 2'),
    attempt('before all others: nice -20', 'call setpriority 0 0 -20'),
    attempt('before all others: I/O in real time', 'call ioprio_set 1 0 8192'),
    attempt('core dumps', 'core-limit', { policy: 'held' }),
  ],
};
