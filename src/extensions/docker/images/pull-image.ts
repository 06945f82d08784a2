import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ExtensionContext, Progress } from '../../../core/ports/extension.ts';
import type { RegistryLogin } from '../containers/options.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, EngineError, failed } from '../engine/engine-error.ts';
import { PullLine } from '../engine/engine-replies.ts';
import { PullProgress } from './pull-progress.ts';

const PULL_MS = 1_800_000;
const LONGEST_LINE = 65_536;

interface From {
  readonly registry: string | null;
  readonly login: RegistryLogin | null;
}

/** Returns the login header of one call: no argument, log or error ever has the password. */
async function authentication(
  { registry, login }: From,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (login === null) return {};
  const value = JSON.stringify({
    username: login.username,
    password: await login.password(signal),
    serveraddress: registry ?? '',
  });
  // URL-safe alphabet with padding: engines ignore a login in any other encoding.
  const encoded = Buffer.from(value).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
  return { 'x-registry-auth': encoded };
}

async function* lines(answer: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const part of answer) {
    rest += part.toString('utf8');
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      yield rest.slice(0, end);
      rest = rest.slice(end + 1);
    }
    if (rest.length > LONGEST_LINE) throw notFetched('The engine’s progress is not understood.');
  }
  if (rest.trim() !== '') yield rest;
}

function notFetched(detail: string, remedy?: string): SandboxerError {
  return new SandboxerError('SBX_IMAGE_UNAVAILABLE', detail, {
    backend: BACKEND,
    creation: 'not_created',
    ...(remedy === undefined ? {} : { remedy }),
  });
}

function refusedPull(name: string, said: string): SandboxerError {
  if (/unauthorized|authentication required|denied|no basic auth/i.test(said)) {
    return new SandboxerError('SBX_IMAGE_UNAVAILABLE', `The registry refuses to give ${name}.`, {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Give this registry a login in extensions.docker.registries, or correct the one it has.',
    });
  }
  if (/verification failed|unexpected digest|does not match/i.test(said)) {
    return notFetched(
      `What the registry sent for ${name} is not what its digest says.`,
      'Trust neither: fetch it from where it was made, and find out who changed it.',
    );
  }
  if (/not found|manifest unknown|does not exist/i.test(said)) {
    return new SandboxerError('SBX_IMAGE_UNAVAILABLE', `There is no image ${name}.`, {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Correct the image’s name, tag or digest.',
    });
  }
  return notFetched(
    `The image ${name} could not be fetched: ${said}`,
    'See the detail; is the registry reachable from the engine?',
  );
}

interface PullContext {
  readonly context: ExtensionContext;
  readonly tell: (progress: Progress) => void;
}

/** Fetches an image to the engine and reports the progress at every step. */
export async function pullImage(
  client: EngineClient,
  name: string,
  from: From,
  { context: { signal, log }, tell }: PullContext,
): Promise<void> {
  const headers = await authentication(from, signal);
  const progress = new PullProgress();
  const told = (phase: Progress['phase']) => {
    tell({ stage: 'pull', subject: name, phase, bytes: progress.bytes, parts: progress.layers });
  };
  let answer: Awaited<ReturnType<EngineClient['stream']>>;
  log.info({ image: name }, 'an image is being pulled');
  told('begun');
  try {
    answer = await client.stream('POST', '/images/create', {
      query: { fromImage: name },
      headers,
      signal,
      timeoutMs: PULL_MS,
    });
  } catch (error) {
    if (error instanceof EngineError) throw refusedPull(name, error.message);
    throw failed(error, { creation: 'not_created' });
  }
  const stop = () => answer.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const line of lines(answer)) {
      const parsed = PullLine.safeParse(JSON.parse(line));
      if (!parsed.success) continue;
      if (parsed.data.error !== undefined)
        throw refusedPull(name, new EngineError(0, parsed.data.error).message);
      progress.note(parsed.data);
      told('going');
    }
  } catch (error) {
    if (error instanceof SandboxerError) throw error;
    if (signal.aborted) {
      throw new SandboxerError('SBX_CANCELLED', 'It was given up while its image was fetched.', {
        backend: BACKEND,
        creation: 'not_created',
      });
    }
    throw notFetched(`The engine broke off while it fetched ${name}.`);
  } finally {
    signal.removeEventListener('abort', stop);
    answer.destroy();
  }
  told('done');
  log.info({ image: name, bytes: progress.bytes.total }, 'an image was pulled');
}
