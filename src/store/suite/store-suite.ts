import type { Store } from '../../core/ports/store/store.ts';
import { attemptCases } from './attempt-cases.ts';
import { dueCases } from './due-cases.ts';
import { eventCases } from './event-cases.ts';
import { hostCases } from './host-cases.ts';
import { keptCases } from './kept-cases.ts';
import { ledgerCases } from './ledger-cases.ts';
import { listCases } from './list-cases.ts';
import { outboxCases } from './outbox-cases.ts';
import { providerKeyCases } from './provider-key-cases.ts';
import { pruneCases } from './prune-cases.ts';
import { sandboxCases } from './sandbox-cases.ts';
import { snapshotCases } from './snapshot-cases.ts';
import type { StoreCase } from './store-case.ts';
import { tenancyCases } from './tenancy-cases.ts';
import { transactionCases } from './transaction-cases.ts';
import { uploadCases } from './upload-cases.ts';
import { webhookCases } from './webhook-cases.ts';

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

/** Tries the promises of `core/ports/store/` on one store. `open` gives an empty store each time. */
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
