/** Resolves when everything was written, or could not be; error listeners of the stream have been called by then. */
export async function flushed(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
  // A failed write calls back before its error event.
  await new Promise((resolve) => setImmediate(resolve));
}
