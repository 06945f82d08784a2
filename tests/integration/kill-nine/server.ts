/** The real server, with a sink that tells every event to the test. */
import { request } from 'node:http';
import type { EventRecord } from '../../../src/core/events/event.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import { serve } from '../../../src/main/serve.ts';

const receiver = process.env.TEST_RECEIVER as string;

function post(event: EventRecord, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({
    seq: event.seq,
    subject: event.subject,
    subjectSeq: event.subjectSeq,
    type: event.type,
  });
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: receiver, method: 'POST', path: '/', signal }, (response) => {
      response.resume();
      response.on('end', () =>
        response.statusCode === 204 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const server = await serve({
  config: loadConfig(process.env),
  env: process.env,
  sinks: [{ id: 'test', maxTries: null, accepts: () => true, deliver: post }],
});
process.stdout.write('ready\n');
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
