import type { Store } from '../core/ports/store/store.ts';
import { attemptCases } from './suite/attempt-cases.ts';
import { dueCases } from './suite/due-cases.ts';
import { eventCases } from './suite/event-cases.ts';
import { hostCases } from './suite/host-cases.ts';
import { keptCases } from './suite/kept-cases.ts';
import { ledgerCases } from './suite/ledger-cases.ts';
import { listCases } from './suite/list-cases.ts';
import { outboxCases } from './suite/outbox-cases.ts';
import { providerKeyCases } from './suite/provider-key-cases.ts';
import { pruneCases } from './suite/prune-cases.ts';
import { sandboxCases } from './suite/sandbox-cases.ts';
import { snapshotCases } from './suite/snapshot-cases.ts';
import type { StoreCase } from './suite/store-case.ts';
import { tenancyCases } from './suite/tenancy-cases.ts';
import { transactionCases } from './suite/transaction-cases.ts';
import { uploadCases } from './suite/upload-cases.ts';
import { webhookCases } from './suite/webhook-cases.ts';

/** The two functions of the test runner, so that the suite depends on none. */
export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
}

const CASES: Readonly<Record<string, readonly StoreCase[]>> = {
  transactions: transactionCases,
  sandboxes: sandboxCases,
  'lists of sandboxes': listCases,
  'what is due': dueCases,
  attempts: attemptCases,
  events: eventCases,
  outbox: outboxCases,
  snapshots: snapshotCases,
  hosts: hostCases,
  'meters, holds and transfers': ledgerCases,
  'tenants, profiles and settings': tenancyCases,
  'webhooks and audit': webhookCases,
  'provider keys': providerKeyCases,
  uploads: uploadCases,
  'images and volumes': keptCases,
  pruning: pruneCases,
};

/** What `core/store.ts` promises, tried on one store. `open` gives an empty one each time. */
export function storeSuite(name: string, open: () => Promise<Store>, { describe, it }: SuiteRunner): void {
  for (const [group, cases] of Object.entries(CASES)) {
    describe(`${name}: ${group}`, () => {
      for (const { name: title, run } of cases) {
        it(title, async () => {
          const store = await open();
          try {
            await run(store);
          } finally {
            await store.close();
          }
        });
      }
    });
  }
}
