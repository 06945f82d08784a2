import { describe, expect, it } from 'vitest';
import { CreateSandboxRequest } from './sandbox.ts';

/** SPEC §12, letter by letter. */
const REQUESTS = [
  `{ "profile":"profile.agent-dev", "scope":"session", "workspace":{"mode":"mirror","access":"rw"},
     "consumer":{"actor":"agt","harness":"glas-harness","session_id":"s1"} }`,
  `{ "profile":"profile.compose-e2e", "inputs":{"repo_ref":"…","compose_bundle_ref":"…"}, "ttl":"2h",
     "consumer":{"actor":"atm","harness":"wise-validator","run_id":"r1"} }`,
  `{ "profile":"profile.build", "setup_metadata":{"instructions_ref":"…","secret_refs":["name"]},
     "consumer":{"actor":"agt","harness":"snuggle-inventor","job_id":"j1"} }`,
];

describe("the consumers' requests", () => {
  it.each(REQUESTS)('%s is accepted', (text) => {
    expect(CreateSandboxRequest.parse(JSON.parse(text)).consumer.harness).toBeTypeOf('string');
  });

  it('a consumer request without a profile defaults to the canary', () => {
    expect(CreateSandboxRequest.parse({}).profile).toBe('profile.sandbox-canary');
  });

  it('a consumer request may write "remote" for "remote-canonical"', () => {
    expect(CreateSandboxRequest.parse({ workspace: { mode: 'remote' } }).workspace?.mode).toBe(
      'remote-canonical',
    );
  });
});
