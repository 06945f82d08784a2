import type { Reachability } from '../../../contract/sandboxes/sandbox.ts';
import type { SshHost } from './ssh-host.ts';

const SSH_PORT = 22;

/**
 * Returns the endpoint of a host for consumers, and the tunnel that leads to it. Behind a tunnel, the endpoint is the one that
 * the tunnel's own configuration resolves the registered name to.
 */
export async function hostReachability(host: SshHost): Promise<Pick<Reachability, 'ssh' | 'tunnel_ref'>> {
  const { destination, port, user, hostKeys, tunnel } = host.access;
  const host_key = hostKeys[0] ?? null;
  if (tunnel === undefined)
    return {
      ssh: { host: destination, port: port ?? SSH_PORT, user: user ?? '', host_key },
      tunnel_ref: null,
    };
  const config = await host.effectiveConfig();
  return {
    ssh: {
      host: config.get('hostname') ?? destination,
      port: Number(config.get('port') ?? port ?? SSH_PORT),
      user: config.get('user') ?? user ?? '',
      host_key,
    },
    tunnel_ref: `ops-bridge:${tunnel}`,
  };
}
