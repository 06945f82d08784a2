/** Output and input types of a schema of the contract, without an import of the library that made it. */
export type OutputOf<S extends { readonly _zod: { readonly output: unknown } }> = S['_zod']['output'];
export type InputOf<S extends { readonly _zod: { readonly input: unknown } }> = S['_zod']['input'];
