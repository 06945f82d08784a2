/** What `sand-boxer/extension` publishes: the contract with a backend, and what every backend needs to keep to it. */
export * from './ports/extension.ts';
export { refuseMisfit } from './routing/refuse-misfit.ts';
