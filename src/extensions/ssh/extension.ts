import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type {
  CleanupReport,
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  Owned,
  ProvisionSpec,
  Ready,
  ResolvedSecret,
  TeardownTarget,
  Unowned,
} from '../../core/ports/extension.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import type { AgentSession } from '../shared/agent-session/agent-session.ts';
import { connectAgent } from '../shared/agent-session/connect-agent.ts';
import { hostReachability } from '../shared/ssh/host-reachability.ts';
import type { SshHost } from '../shared/ssh/ssh-host.ts';
import { SshHosts } from '../shared/ssh/ssh-hosts.ts';
import { forgetAgent, uploadAgent } from '../shared/ssh/upload-agent.ts';
import type { SshOptions } from './config.ts';
import { DIRECTORY } from './config.ts';
import { DirectorySession } from './directory-session.ts';
import { handles } from './handle.ts';
import { ENVIRONMENT, EXIT, LIST, PROVISION, TEARDOWN } from './remote-scripts.ts';

interface Listed {
  readonly attemptId: string;
  readonly markedBy: string | null;
  readonly sandboxUid: string | null;
  readonly createdAt: number | null;
  readonly path: string;
}

const CONNECT_MS = 60_000;
const SECRET_NAME = /^[A-Za-z_]\w{0,127}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/** Backend of a directory and a user on a registered host: it isolates nothing, and claims no isolation. */
export class SshExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #options: SshOptions;
  readonly #hosts: SshHosts;
  readonly #homes = new WeakMap<SshHost, Promise<string>>();

  constructor(header: ExtensionHeader, options: SshOptions) {
    this.header = header;
    this.#options = options;
    this.#hosts = new SshHosts(options.ssh);
  }

  async probe({ clock }: ExtensionContext): Promise<ExtensionHealth> {
    const found = Object.keys(this.#options.agents).length > 0;
    return {
      status: found ? 'healthy' : 'undetected',
      detail: found ? 'Each host is probed apart.' : 'The agent is not built: run scripts/build-agent.sh.',
      checked_at: isoTime(clock.now()),
      checks: [],
    };
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    refuseMisfit(this.header, spec);
    const host = this.#host(ctx);
    const { stamp } = spec;
    const directory = await this.#base(host, ctx.signal);
    const agent = await uploadAgent(host, `${directory}/bin`, this.#options.agents, ctx.signal);
    const { isolation, resources, variables } = spec.recipe;
    const level = isolation === 'policy' ? 'policy' : 'none';
    const files = resources.open_files === null ? '' : String(resources.open_files);
    const argv = ['sh', '-c', PROVISION, 'sh', directory, nameOf(stamp.attemptId), agent, level, files];
    const stdin = given(spec, ctx.clock.now());
    const { code, stdout, stderr } = await host.run(argv, { stdin, signal: ctx.signal });
    if (code === EXIT.root || code === EXIT.cannotConfine) throw noPolicy(host, code, stderr);
    if (code !== 0) {
      forgetAgent(host, `${directory}/bin`);
      throw failed(host, 'The directory could not be made', stderr);
    }
    const said = (name: string) => new RegExp(`^${name} (.+)$`, 'm').exec(stdout.toString())?.[1] ?? '';
    const place = `${directory}/s/${nameOf(stamp.attemptId)}`;
    const secrets = { directory: said('secrets'), environment: spec.secrets.some(byEnvironment) };
    const byFile = spec.secrets.filter(({ delivery }) => delivery === 'file');
    return handles.write({
      attemptId: stamp.attemptId,
      directory,
      agent,
      isolation: level,
      files: said('files') === 'yes',
      secrets: spec.secrets.length === 0 ? null : secrets,
      variables: {
        ...(level === 'policy' ? { HOME: `${place}/work`, TMPDIR: `${place}/tmp` } : {}),
        ...variables,
        ...Object.fromEntries(byFile.map(({ name }) => [`${name}_FILE`, `${secrets.directory}/${name}`])),
      },
    });
  }

  async waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready> {
    const session = await this.connect(handle, ctx);
    try {
      const process = await session.spawn({
        argv: ['true'],
        env: {},
        cwd: null,
        user: null,
        timeoutSeconds: 30,
        terminal: null,
        stdin: false,
        background: false,
      });
      for await (const _ of process.output);
      await process.exit;
    } finally {
      await session.close();
    }
    const { isolation, files } = handles.read(handle);
    return {
      reachability: {
        exec_url: null,
        ...(await hostReachability(this.#host(ctx))),
        endpoints: [],
        services: [],
      },
      isolation,
      notes: [
        isolation === 'policy'
          ? 'Programs run as a user of the host; the kernel lets them write nowhere but in this directory.'
          : 'Programs run as a user of the host and reach what that user reaches.',
        ...(files ? [] : ['The kernel of the host cannot keep paths inside: there are no files.']),
      ],
    };
  }

  async connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession> {
    const { attemptId, directory, agent, variables, files, secrets } = handles.read(handle);
    const place = `${directory}/s/${nameOf(attemptId)}`;
    const host = this.#host(ctx);
    const environment = secrets?.environment
      ? await secretEnvironment(host, secrets.directory, ctx.signal)
      : {};
    const programs = await this.#agent(host, agent, `${place}/a`, ctx.signal);
    return new DirectorySession(
      programs,
      { ...variables, ...environment },
      files ? () => this.#agent(host, agent, `${place}/f`, AbortSignal.timeout(CONNECT_MS)) : null,
    );
  }

  async #agent(host: SshHost, agent: string, socket: string, signal: AbortSignal): Promise<AgentSession> {
    const { process, exit, kill } = await host.open([agent, '--relay', socket]);
    const stream = process.duplex();
    stream.on('error', () => {});
    try {
      const session = await connectAgent(stream, { backend: this.header.id, signal });
      void session.ended.then(kill);
      return session;
    } catch (error) {
      kill();
      signal.throwIfAborted();
      if (process.stderr.includes('cannot reach the agent'))
        throw new SandboxerError('SBX_BACKEND_LOST', 'Nothing answers in the directory any more.', {
          backend: this.header.id,
        });
      await exit.catch(() => {});
      throw error;
    }
  }

  async teardown({ stamp }: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport> {
    const host = this.#host(ctx);
    const directory = await this.#base(host, ctx.signal);
    const attempt = nameOf(stamp.attemptId);
    const { stdout, stderr } = await host.run(['sh', '-c', TEARDOWN, 'sh', directory, attempt, stamp.owner], {
      signal: ctx.signal,
    });
    const what = `${host.id}:${directory}/s/${attempt}`;
    const said = stdout.toString().trim();
    if (said === 'gone') return { gone: true, removed: [what], remaining: [] };
    // No sandbox has this stamp: the directory there carries another owner's mark.
    if (said === 'foreign') return { gone: true, removed: [], remaining: [] };
    const reason = said === 'unmarked' ? 'it has no marker' : stderr.slice(-300) || 'it could not be removed';
    return { gone: false, removed: [], remaining: [{ what, reason }] };
  }

  async *listOwned(owner: string, ctx: ExtensionContext): AsyncGenerator<Owned> {
    for (const { attemptId, markedBy, sandboxUid, createdAt, path } of await this.#list(ctx)) {
      if (markedBy !== owner || sandboxUid === null) continue;
      const parts = [`directory ${path}`];
      yield { stamp: { owner, sandboxUid, attemptId }, handle: null, createdAt, parts };
    }
  }

  async *listUnowned(owner: string, ctx: ExtensionContext): AsyncGenerator<Unowned> {
    for (const { attemptId, markedBy, sandboxUid, createdAt, path } of await this.#list(ctx)) {
      if (markedBy === owner && sandboxUid !== null) continue;
      yield { owner: markedBy, what: attemptId, parts: [`directory ${path}`], createdAt };
    }
  }

  async close(): Promise<void> {
    await this.#hosts.close();
  }

  async #list(ctx: ExtensionContext): Promise<Listed[]> {
    const host = this.#host(ctx);
    const directory = await this.#base(host, ctx.signal);
    const options = { signal: ctx.signal, maxOutputBytes: 16_777_216 };
    const { stdout, truncated } = await host.run(['sh', '-c', LIST, 'sh', directory], options);
    if (truncated) throw failed(host, 'There are too many sandboxes to list', '');
    return stdout
      .toString()
      .split('\n')
      .flatMap((line) => {
        const [attemptId, markedBy = null, sandboxUid = null, createdAt] = line.trim().split(' ');
        if (!attemptId) return [];
        const path = `${directory}/s/${attemptId}`;
        return [{ attemptId, markedBy, sandboxUid, createdAt: Number(createdAt) || null, path }];
      });
  }

  #host({ host }: ExtensionContext): SshHost {
    if (host?.ssh) return this.#hosts.get(host.id, host.ssh);
    throw new SandboxerError('SBX_UNSUPPORTED', `${this.header.id} runs on registered hosts only.`, {
      creation: 'not_created',
      remedy: 'Register a host: sandboxer hosts add --help',
    });
  }

  /** Returns the backend's directory on the host, as an absolute path. */
  #base(host: SshHost, signal: AbortSignal): Promise<string> {
    const known = this.#homes.get(host);
    if (known) return known;
    const { directory = DIRECTORY } = this.#options;
    const script = 'case $1 in /*) printf %s "$1";; *) printf %s/%s "$(cd && pwd -P)" "$1";; esac';
    const looking = host
      .run(['sh', '-c', script, 'sh', directory], { signal, creation: 'not_created' })
      .then(({ stdout }) => stdout.toString());
    this.#homes.set(host, looking);
    looking.catch(() => this.#homes.delete(host));
    return looking;
  }
}

function byEnvironment({ delivery }: ResolvedSecret): boolean {
  return delivery === 'env';
}

/** Returns the marker, and a line for each secret: secrets travel only on this way. */
function given({ stamp, secrets }: ProvisionSpec, now: number): string {
  const misnamed = secrets.find(({ name }) => !SECRET_NAME.test(name));
  if (misnamed !== undefined)
    throw new SandboxerError('SBX_INVALID_REQUEST', `${misnamed.name} cannot be the name of a secret here.`, {
      creation: 'not_created',
      field: 'secret_refs',
      remedy: 'Use letters, digits and "_".',
    });
  const lines = secrets.map(
    ({ name, delivery, value }) => `${delivery} ${name} ${Buffer.from(value).toString('base64')}`,
  );
  return [stamp.owner, stamp.sandboxUid, String(now), ...lines, ''].join('\n');
}

async function secretEnvironment(
  host: SshHost,
  directory: string,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { stdout } = await host.run(['sh', '-c', ENVIRONMENT, 'sh', directory], { signal });
  const lines = stdout.toString().split('\n').filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', value = ''] = line.split(' ');
      return [name, Buffer.from(value, 'base64').toString()];
    }),
  );
}

function noPolicy(host: SshHost, code: number, said: string): SandboxerError {
  const lacking = /cannot confine: ([^\n]{1,200})/.exec(said)?.[1] ?? 'the kernel cannot confine programs';
  const why =
    code === EXIT.root
      ? {
          what: 'logs us in as root, whom nothing holds',
          remedy: 'Register it with a user that is not root.',
        }
      : {
          what: `cannot hold programs back (${lacking})`,
          remedy:
            'Use a host with Linux 6.2 or newer, Landlock and seccomp, on x86-64 or arm64; or isolation none.',
        };
  return new SandboxerError(
    'SBX_UNSUPPORTED',
    `${host.id} ${why.what}: isolation policy cannot be had there.`,
    {
      creation: 'not_created',
      remedy: why.remedy,
    },
  );
}

function nameOf(attemptId: string): string {
  if (NAME.test(attemptId)) return attemptId;
  throw new SandboxerError('SBX_INVALID_REQUEST', 'The attempt has no name for a directory.', {
    creation: 'not_created',
  });
}

function failed(host: SshHost, what: string, stderr: string): SandboxerError {
  const why = stderr
    .replaceAll(/[\p{C}]+/gu, ' ')
    .trim()
    .slice(-300);
  return new SandboxerError('SBX_EXTENSION_FAILED', `${what} on ${host.id}${why === '' ? '' : `: ${why}`}`, {
    creation: 'maybe_created',
  });
}
