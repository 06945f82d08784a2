/** What a schema of the contract gives and takes, told without importing the library that made it. */
export type OutputOf<S extends { readonly _zod: { readonly output: unknown } }> = S['_zod']['output'];
export type InputOf<S extends { readonly _zod: { readonly input: unknown } }> = S['_zod']['input'];
