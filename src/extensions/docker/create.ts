import { join } from 'node:path';
import type { ExtensionHeader } from '../../core/ports/extension.ts';
import { remediesOf } from '../shared/isolation/tried-levels.ts';
import { ownAgents, programFolder } from '../shared/own-programs.ts';
import { ChannelChoice } from './channel/channel-choice.ts';
import { capabilitiesOf } from './config.ts';
import { DockerInputs } from './containers/docker-inputs.ts';
import type { DockerOptions } from './containers/options.ts';
import { DEFAULTS } from './containers/options.ts';
import { isLocal, parseEndpoint } from './engine/endpoint.ts';
import { EngineClient } from './engine/engine-client.ts';
import { engineConnector } from './engine/engine-connector.ts';
import { findEngineFacts } from './engine/engine-facts.ts';
import { DockerExtension } from './extension.ts';
import definition from './index.ts';
import { findLevels, NO_LEVELS } from './inspect/levels.ts';

const FIND_MS = 3_000;

/**
 * Makes the extension for containers on a Docker or Podman engine. Its capabilities are queried once; the agent inside is the
 * channel.
 */
export async function createDockerExtension(options: DockerOptions): Promise<DockerExtension> {
  const endpoint = parseEndpoint(options.url, options.tls);
  const client = new EngineClient(engineConnector(endpoint, options.ssh), {
    timeoutMs: options.timeoutMs ?? DEFAULTS.timeoutMs,
  });
  const facts = await findEngineFacts(client, AbortSignal.timeout(FIND_MS)).catch(() => null);
  const theirs = ownAgents()[facts?.architecture ?? ''];
  const agentPath = options.agent ?? theirs ?? join(programFolder(), 'sandboxer-agent');
  const choice = new ChannelChoice(options, isLocal(endpoint), agentPath);
  const bare = choice.for('container', facts?.architecture ?? '') === 'exec';
  const levels = facts === null ? NO_LEVELS : await findLevels({ client, facts, options, agentPath });
  const header: ExtensionHeader = {
    id: definition.id,
    title: definition.title,
    handleVersion: definition.handle.version,
    capabilities: capabilitiesOf(facts, options, levels, bare),
    remedies: remediesOf(levels),
    inputs: DockerInputs.shape,
    price: null,
    provisionTimeoutSeconds: 600,
  };
  return new DockerExtension({ header, options, endpoint, client, facts, levels, agentPath, choice });
}
