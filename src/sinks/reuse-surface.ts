/** Publishes a registry to reuse-surface: at its hub over HTTP, or into a directory that it reads. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SandboxerError } from '../contract/errors/errors.ts';
import {
  CAPABILITY_DOMAIN,
  CAPABILITY_ID,
  CAPABILITY_OWNER,
  CAPABILITY_SUMMARY,
} from '../contract/extensions/capability-entry.ts';
import type { PublishedAs, RegistryFile, RegistryPublisher } from '../core/ports/published-registry.ts';

export interface ReuseSurfaceHubOptions {
  /** The hub, without `/v1`. */
  readonly url: string;
  /** The URL from which the hub fetches `registry/indexes/capabilities.yaml` of this project. */
  readonly indexUrl: string;
  /** Read for every publication, so that a new token is taken without a restart. */
  readonly tokenFile: string | null;
  readonly userAgent: string;
  readonly timeoutMs: number;
}

const MOST_INDEX_BYTES = 1_048_576;
const MOST_ANSWER_BYTES = 2_000;

function failed(detail: string, remedy: string, cause?: unknown): SandboxerError {
  return new SandboxerError('SBX_PUBLISH_FAILED', detail, { field: 'reuse_surface', remedy, cause });
}

/** Reads so much of a body and leaves the rest. */
async function textOf(response: Response, most: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > most) break;
  }
  return Buffer.concat(chunks).subarray(0, most).toString('utf8');
}

/** A hub keeps where the index of a project is, and fetches it from there. */
export class ReuseSurfaceHub implements RegistryPublisher {
  readonly target: string;
  readonly #options: ReuseSurfaceHubOptions;

  constructor(options: ReuseSurfaceHubOptions) {
    this.target = new URL(options.url).origin;
    this.#options = options;
  }

  async publish(_files: readonly RegistryFile[], signal: AbortSignal): Promise<PublishedAs> {
    await this.#requireIndex(signal);
    const registration = {
      url: this.#options.indexUrl,
      domain: CAPABILITY_DOMAIN,
      description: CAPABILITY_SUMMARY,
      enabled: true,
    };
    const updated = await this.#send('PATCH', `/v1/repos/${CAPABILITY_OWNER}`, registration, signal);
    if (updated !== 404) return 'updated';
    await this.#send('POST', '/v1/repos', { repo: CAPABILITY_OWNER, ...registration }, signal);
    return 'registered';
  }

  /** Fails unless the index can be fetched and lists this registration; without it, no search would find the registration. */
  async #requireIndex(signal: AbortSignal): Promise<void> {
    const { indexUrl } = this.#options;
    const response = await this.#fetch(indexUrl, {}, signal);
    const text = await textOf(response, MOST_INDEX_BYTES);
    if (response.ok && text.includes(CAPABILITY_ID)) return;
    const why = response.ok ? `It does not list ${CAPABILITY_ID}.` : `It answered ${response.status}.`;
    throw failed(
      `The index at ${indexUrl} is not that of this project. ${why}`,
      'Set reuse_surface.index_url to the published registry/indexes/capabilities.yaml.',
    );
  }

  /** Returns the status when it is a success, or 404 of an update. */
  async #send(method: 'PATCH' | 'POST', route: string, body: object, signal: AbortSignal): Promise<number> {
    const { url, userAgent } = this.#options;
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...(await this.#authorization()),
    };
    const at = `${url.replace(/\/+$/, '')}${route}`;
    const response = await this.#fetch(at, { method, headers, body: JSON.stringify(body) }, signal);
    const said = await textOf(response, MOST_ANSWER_BYTES);
    if (response.ok || (method === 'PATCH' && response.status === 404)) return response.status;
    if (response.status === 401 || response.status === 403)
      throw new SandboxerError('SBX_PUBLISH_FAILED', `${this.target} refused our token.`, {
        field: 'reuse_surface.token_file',
        retryable: false,
        remedy: 'Write a token that may register repositories into reuse_surface.token_file.',
      });
    throw failed(`${this.target} answered ${response.status}: ${said}`, 'See the answer of the hub.');
  }

  async #fetch(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(this.#options.timeoutMs)]);
    try {
      return await fetch(url, {
        ...init,
        redirect: init.method === undefined ? 'follow' : 'manual',
        signal: until,
      });
    } catch (cause) {
      if (signal.aborted) throw cause;
      const why =
        cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause);
      throw failed(`${url} gave no answer: ${why}`, 'See that it runs and that the address is right.', cause);
    }
  }

  async #authorization(): Promise<Record<string, string>> {
    const { tokenFile } = this.#options;
    if (tokenFile === null) return {};
    const token = (await readFile(tokenFile, 'utf8').catch(() => '')).trim();
    if (token === '')
      throw new SandboxerError('SBX_PUBLISH_FAILED', 'The token file cannot be read, or is empty.', {
        field: 'reuse_surface.token_file',
        retryable: false,
        remedy: 'Write the token of the hub into the file that reuse_surface.token_file names.',
      });
    return { authorization: `Bearer ${token}` };
  }
}

/** A checkout or mount that reuse-surface composes from. */
export class ReuseSurfaceFolder implements RegistryPublisher {
  readonly target: string;

  constructor(directory: string) {
    this.target = directory;
  }

  async publish(files: readonly RegistryFile[], signal: AbortSignal): Promise<PublishedAs> {
    // The index last: it lists nothing that is not there yet.
    const isIndex = ({ file }: RegistryFile) => file.startsWith('indexes/');
    const ordered = [...files.filter((each) => !isIndex(each)), ...files.filter(isIndex)];
    for (const { file, text } of ordered) {
      signal.throwIfAborted();
      await this.#write(path.join(this.target, file), text);
    }
    return 'written';
  }

  async #write(file: string, text: string): Promise<void> {
    const temporary = `${file}.${randomUUID()}`;
    try {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(temporary, text);
      await rename(temporary, file);
    } catch (cause) {
      await rm(temporary, { force: true }).catch(() => {});
      throw new SandboxerError(
        'SBX_PUBLISH_FAILED',
        `${file} cannot be written: ${(cause as Error).message}`,
        {
          field: 'reuse_surface.directory',
          retryable: false,
          remedy: 'Name a directory that the user of the server may write to.',
          cause,
        },
      );
    }
  }
}
