/** The longest time of one timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls back at `time`, however far ahead it lies. Returns a function that cancels the call. */
export function atTime(now: () => number, time: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const look = () => {
    const left = time - now();
    if (left <= 0) return callback();
    timer = setTimeout(look, Math.min(left, LONGEST_MS)).unref();
  };
  timer = setTimeout(look, 0).unref();
  return () => clearTimeout(timer);
}
