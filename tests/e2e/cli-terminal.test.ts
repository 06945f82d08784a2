/** `sandboxer shell` and `run` in a real terminal: its size and its changes, keys as they are, lines as the program ends them, the exit code. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const launcher = join(import.meta.dirname, '..', '..', 'sandboxer');
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const canRun = process.getuid?.() === 0 && ['crun', 'python3', 'stty'].every(has);

/** Types each line once the screen shows what comes before it; prints all that was shown, and the exit code. */
const DRIVER = `
import fcntl, json, os, pty, select, struct, sys, termios, time
steps, words = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0: os.execvp(words[0], words)
seen = b''
def until(text):
    global seen
    end = time.time() + 45
    while text not in seen:
        if time.time() > end: raise SystemExit('never saw %r in %r' % (text, seen))
        if not select.select([fd], [], [], 1)[0]: continue
        try: seen += os.read(fd, 65536)
        except OSError: return
def size(rows, cols): fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))
size(40, 100)
shown = b''
for step in steps:
    until(step['after'].encode())
    shown, seen = shown + seen, b''
    if 'size' in step: size(*step['size'])
    if 'signal' in step: os.kill(pid, step['signal'])
    if 'hangup' in step: os.close(fd); break
    os.write(fd, step['type'].encode())
else: until(b'nothing that is ever shown')
print(json.dumps({'shown': (shown + seen).decode(errors='replace'), 'code': os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}))
`;

describe.runIf(canRun)('a shell in a terminal', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sandboxer-terminal-'));
  const env = {
    ...process.env,
    SANDBOXER_STATE_DIR: join(dir, 'state'),
    SANDBOXER_LOCAL: '1',
    SANDBOXER_DOCKER: '0',
  };
  const run = (program: string, ...args: string[]) =>
    spawnSync(program, args, { env, encoding: 'utf8', timeout: 150_000 });
  const typed = (steps: object[], ...words: string[]) => {
    const { status, stdout, stderr } = run(
      'python3',
      '-c',
      DRIVER,
      JSON.stringify(steps),
      launcher,
      ...words,
    );
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as { shown: string; code: number };
  };

  beforeAll(() => {
    const made = run(launcher, 'create', '--profile', 'agent-dev', '--id', 'box');
    if (made.status !== 0) throw new Error(made.stderr);
  });
  afterAll(() => {
    run(launcher, 'destroy', 'box');
    run(launcher, 'daemon', 'stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('a shell in a terminal has the size of ours, follows it, takes Ctrl-C, and ends with the shell’s exit code', () => {
    const { shown, code } = typed(
      [
        { after: '$ ', type: 'echo size $(stty size)\n' },
        { after: 'size 40 100', type: 'sleep 500; echo after:$?\n', size: [50, 120] },
        { after: 'sleep 500', type: '\u0003' },
        { after: '^C', type: 'until [ "$(stty size)" = "50 120" ]; do sleep 0.1; done; echo gr""own\n' },
        { after: 'grown', type: 'exit 6\n' },
      ],
      'shell',
      'box',
    );
    expect(code).toBe(6);
    expect(shown).not.toContain('after:0');
    // A line ends as the program inside ended it: ours adds nothing.
    expect(shown).not.toContain('\r\r\n');
  });

  it('a shell restores the terminal as it was', () => {
    const { shown, code } = typed(
      [{ after: 'ready', type: '\n' }],
      ...['exec', '-t', 'box', '--', 'sh', '-c', 'echo ready; read line; exit 3'],
    );
    expect(shown).toContain('ready\r\n');
    expect(code).toBe(3);
    const before =
      'stty -g > before; "$0" "$@"; code=$?; stty -g > after; cmp before after && exit $code; exit 99';
    const script = ['-c', `cd ${dir}; ${before}`, launcher, 'exec', '-t', 'box', '--', 'sh', '-c', 'exit 4'];
    const python = `import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["sh", *sys.argv[1:]])))`;
    expect(run('python3', '-c', python, ...script).status).toBe(4);
  });

  const left = () => JSON.parse(run(launcher, 'list', '--label', 'by=run', '--json').stdout).items.length;
  const nothingLeft = async () => {
    for (const until = Date.now() + 30_000; left() > 0 && Date.now() < until; ) await sleep(200);
    expect(left()).toBe(0);
  };
  const runs = ['run', '--profile', 'agent-dev', '--label', 'by=run'];

  it('a program run in a terminal gets its size, its keys and its exit code', async () => {
    const script = 'test -t 0 && test -t 1 && test -t 2 && echo size $(stty size) $TERM; read line; exit 7';
    const { shown, code } = typed(
      [
        { after: 'size 40 100', type: '\u001a' }, // Ctrl-Z is the program's: there is no shell to go back to.
        { after: '^Z', type: 'x\n' },
      ],
      ...runs,
      ...['--', 'sh', '-c', script],
    );
    expect(shown).toContain(`size 40 100 ${process.env.TERM ?? 'xterm-256color'}`);
    expect(code).toBe(7);
    const interrupted = typed(
      [{ after: 'ready', type: '\u0003' }],
      ...runs,
      ...['--', 'sh', '-c', 'trap "exit 9" INT; echo ready; while :; do sleep 0.05; done'],
    );
    expect(interrupted.code).toBe(9);
    expect(typed([], ...runs, '-T', '--', 'sh', '-c', 'test -t 1 || exit 8').code).toBe(8);
    await nothingLeft();
  });

  it('a shell ends, and its sandbox with it, by a signal and by the end of the terminal', async () => {
    const program = ['--', 'sh', '-c', 'echo ready; exec sleep 1000'];
    const ended = typed([{ after: 'ready', type: '', signal: 15 }], ...runs, ...program);
    expect(ended.code).toBe(143);
    await nothingLeft();
    expect(typed([{ after: 'ready', type: '', hangup: true }], ...runs, ...program).code).toBe(129);
    await nothingLeft();
  });

  it('a shell without a terminal on input or output passes bytes through as they are', async () => {
    const bytes = randomBytes(3_000_000);
    const piped = spawnSync(launcher, [...runs, '--', 'cat'], { env, input: bytes, maxBuffer: 1e8 });
    expect(piped.status).toBe(0);
    expect(piped.stdout.equals(bytes)).toBe(true);
    const closed = run('sh', '-c', `"$0" "$@" | head -1; true`, launcher, ...runs, '--', 'yes');
    expect(closed.stdout).toBe('y\n');
    const full = run('sh', '-c', '"$0" "$@" > /dev/full', launcher, ...runs, '--', 'yes');
    expect([full.status, full.stderr]).toEqual([125, expect.stringContaining('ENOSPC')]);
    await nothingLeft();
  });
});
