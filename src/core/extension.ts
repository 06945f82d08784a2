/**
 * The published module `sand-boxer/extension`: the contract with a backend, and the parts that every backend needs to keep to it.
 */
export * from './ports/extension.ts';
export { refuseMisfit } from './routing/refuse-misfit.ts';
