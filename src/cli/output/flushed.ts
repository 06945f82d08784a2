/** Resolves when everything was written, or could not be; whoever listens to the errors of the stream has heard of it then. */
export async function flushed(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
  // A failed write calls back first and is told afterwards.
  await new Promise((resolve) => setImmediate(resolve));
}
