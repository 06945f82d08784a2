/** `sand-boxer/testing`: the conformance suite for extensions, and a backend in memory. */
export type { ConformanceOptions } from './conformance/conformance-options.ts';
export type { ConformanceTest } from './conformance/conformance-test.ts';
export type { TestRunner } from './conformance.ts';
export { conformanceSuite, describeConformance, runConformance } from './conformance.ts';
export type { ConformanceReport, ConformanceResult } from './conformance-report.ts';
export { formatReport, isConforming } from './conformance-report.ts';
export type { MemoryExtensionOptions } from './memory/memory-extension.ts';
export { createMemoryExtension } from './memory/memory-extension.ts';
