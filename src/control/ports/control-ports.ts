import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { SecretRef } from '../../contract/profiles/secret.ts';
import type { Ledger } from '../../core/credits/ledger/ledger.ts';
import type { ConfiguredSink } from '../../core/events/event-sink.ts';
import type { WebhookPort } from '../../core/events/webhook.ts';
import type { HealthBook } from '../../core/health/health-book.ts';
import type { HostPort } from '../../core/hosts/host.ts';
import type { ProfileCatalogue } from '../../core/ports/catalogue.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { ResolvedSecret } from '../../core/ports/extension.ts';
import type { Identifiers } from '../../core/ports/identifiers.ts';
import type { InputPort } from '../../core/ports/inputs.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PublishedRegistry } from '../../core/ports/published-registry.ts';
import type { ExtensionRegistry } from '../../core/ports/registry.ts';
import type { SecretBox } from '../../core/ports/secret-box.ts';
import type { Store } from '../../core/ports/store/store.ts';
import type { UseBook } from '../../core/routing/learned-use.ts';
import type { ControlSettings } from './settings.ts';

/** The ports through which the use-cases reach the world. `main/wire.ts` fills them, and so does the simulation. */
export interface ControlPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly extensions: ExtensionRegistry;
  /** Holds what our own attempts show of each backend. */
  readonly health: HealthBook;
  /** Holds what our own sandboxes show of how each profile is used. */
  readonly uses: UseBook;
  readonly settings: ControlSettings;
  /** The name of this installation: stamped on every backend object. */
  readonly owner: string;
  /** The name of this process, which holds leases. A new one at every start. */
  readonly instance: string;
  /** The profiles that a workspace sees, as they are now. */
  catalogue(workspaceId: string): ProfileCatalogue;
  /** A profile was pushed: `catalogue` shows it when this resolves. */
  profilesChanged(): Promise<void>;
  /** A workspace's own secrets, for one backend. */
  resolveSecrets(
    workspaceId: string,
    refs: readonly SecretRef[],
    capabilities: Pick<CapabilityVector, 'credentials'>,
    signal: AbortSignal,
  ): Promise<readonly ResolvedSecret[]>;
  /** Stages the file trees of requests. Without it, uploads are refused and repositories not fetched. */
  readonly inputs?: InputPort;
  /** Reaches registered hosts. Without it, no host is registered. */
  readonly hosts?: HostPort;
  /** Seals stored secrets. Without it, no provider key is stored or used. */
  readonly secretBox?: SecretBox;
  /** Sends to webhooks. Without it, webhooks are neither made nor delivered. */
  readonly webhooks?: WebhookPort;
  /** The receivers of events that the configuration knows, configured or not. */
  readonly sinks?: readonly ConfiguredSink[];
  /** The capability entry of this installation, and the federation that it is published to. */
  readonly publishedRegistry?: PublishedRegistry;
  /** Has them look at their place in the log anew. */
  readonly wakeSinks?: () => void;
}
